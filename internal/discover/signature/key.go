package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	sigstore "github.com/sigstore/sigstore/pkg/signature"
)

// MaxKey bounds the text of a public key, in bytes: one of RSA with 4,096 bits has 800.
const MaxKey = 16 << 10

// Key is a public key by which signatures are verified. It may be used concurrently.
type Key struct {
	name      string // for people
	id        string
	der       []byte // as SPKI has it
	verifiers []sigstore.Verifier
}

// IsText says that a text has a key in itself, rather than naming a file with one.
func IsText(text string) bool { return strings.Contains(text, "-----BEGIN") }

// ParseKey reads one public key in PEM: ECDSA on P-256, P-384 or P-521, Ed25519, or RSA with 2,048 bits or more. name is
// for people; empty: the key's own identity. No error has any of the text.
func ParseKey(name string, text []byte) (*Key, error) {
	if len(text) > MaxKey {
		return nil, fmt.Errorf("it has more than %d bytes, which no public key has", MaxKey)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("it is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----")
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New("it is a private key: remove it from the repository, make another pair, and write the public key")
	case block.Type == "CERTIFICATE":
		return nil, errors.New("it is a certificate: write the public key in it, as openssl x509 -pubkey prints it")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is more behind the first key, and one key counts: remove the rest")
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil || !isStrong(public) {
		return nil, errors.New("it is no public key by which signatures are verified: take ECDSA, Ed25519, or RSA with 2048, 3072 or " +
			"4096 bits")
	}
	out := &Key{name: name}
	for _, hash := range hashesOf(public) {
		verifier, err := sigstore.LoadVerifier(public, hash)
		if err != nil {
			return nil, fmt.Errorf("take the public key: %w", err)
		}
		out.verifiers = append(out.verifiers, verifier)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("take the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	out.der = der
	out.id = hex.EncodeToString(sum[:])
	if out.name == "" {
		out.name = "sha256:" + out.id[:12]
	}
	return out, nil
}

// isStrong says that signatures by a key prove something: it is of a kind, and as long, as sigstore takes them (sigstore:
// pkg/cryptoutils/goodkey).
func isStrong(public crypto.PublicKey) bool {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return slices.Contains([]int{2048, 3072, 4096}, key.N.BitLen()) && key.E >= minExponent
	case *ecdsa.PublicKey:
		return slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve)
	case ed25519.PublicKey:
		return true
	}
	return false
}

// minExponent is the least exponent of a key of RSA's: smaller ones are known to be weak.
const minExponent = 65537

// hashesOf are the hashes that signatures by a key may be of. cosign takes SHA-256 with every key that it is given, and
// bundles take the one that belongs to the key's curve (sigstore: pkg/signature/algorithm_registry.go).
func hashesOf(public crypto.PublicKey) []crypto.Hash {
	out := []crypto.Hash{crypto.SHA256}
	if key, is := public.(*ecdsa.PublicKey); is {
		switch key.Curve {
		case elliptic.P384():
			out = append(out, crypto.SHA384)
		case elliptic.P521():
			out = append(out, crypto.SHA512)
		}
	}
	return out
}

// String names the key for people.
func (k *Key) String() string { return k.name }

// ID is the sha256 of the key as SPKI has it in DER, in hex.
func (k *Key) ID() string { return k.id }

// PEM is the key's text.
func (k *Key) PEM() []byte { return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der}) }

// Signed says that the key's owner signed the data.
func (k *Key) Signed(data, signature []byte) bool {
	for _, verifier := range k.verifiers {
		if verifier.VerifySignature(bytes.NewReader(signature), bytes.NewReader(data)) == nil {
			return true
		}
	}
	return false
}
