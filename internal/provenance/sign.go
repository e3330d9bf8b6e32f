package provenance

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/liftlock/liftlock/internal/discover/signature"
)

// SigningKey is a private key by which statements are signed. It may be used concurrently. Neither its text nor any error
// has a byte of the private part.
type SigningKey struct {
	private crypto.Signer
	public  *signature.Key
}

// ParseSigningKey reads one private key in PEM without a password: ed25519 or ECDSA on P-256, as PKCS#8 ("BEGIN PRIVATE KEY")
// or SEC1 ("BEGIN EC PRIVATE KEY"). No error has any of the text.
func ParseSigningKey(text []byte) (*SigningKey, error) {
	if len(text) > signature.MaxKey {
		return nil, fmt.Errorf("it has more than %d bytes, which no private key has", signature.MaxKey)
	}
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // openssl ecparam -genkey writes these first
		block, rest = pem.Decode(rest)
	}
	switch {
	case block == nil:
		return nil, errors.New("it is no private key in PEM, which begins with -----BEGIN PRIVATE KEY-----")
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return nil, errors.New("it is a private key with a password, which a server can't be asked for: write it without, as " +
			"openssl pkey does")
	case !strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New("it is no private key: a public one, which only verifies, goes under public")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is more behind the first key, and one key counts: write each in its own file")
	}
	private, err := parsePrivate(block)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, errors.New("its public key can't be written")
	}
	public, err := signature.ParseKey("", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	if err != nil {
		return nil, errors.New("its public key can't be used")
	}
	return &SigningKey{private: private, public: public}, nil
}

func parsePrivate(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	if block.Type == "EC PRIVATE KEY" {
		key, err = x509.ParseECPrivateKey(block.Bytes)
	} else {
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, errors.New("it is no private key that can be read: take PKCS#8 or SEC1, as openssl genpkey writes them")
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	}
	return nil, errors.New("it is a private key of another kind: take ed25519 or ECDSA on P-256")
}

// Public is its public part.
func (s *SigningKey) Public() *signature.Key { return s.public }

// String names the key by its identity, and never has the key.
func (s *SigningKey) String() string { return s.public.String() }

// GoString keeps %#v from the private part.
func (s *SigningKey) GoString() string { return s.String() }

// Sign signs a statement's JSON and gives the envelope's. The same key and statement give the same bytes.
func (s *SigningKey) Sign(statement []byte) ([]byte, error) {
	signed := dsse.PAE(PayloadType, statement)
	var sig []byte
	var err error
	if _, isCurve := s.private.(*ecdsa.PrivateKey); isCurve {
		sum := sha256.Sum256(signed)
		// Without a source of randomness Go's are deterministic, as RFC 6979 has it.
		sig, err = s.private.Sign(nil, sum[:], crypto.SHA256)
	} else {
		sig, err = s.private.Sign(nil, signed, crypto.Hash(0))
	}
	if err != nil {
		return nil, fmt.Errorf("sign a statement with the key %s: the key refuses", s)
	}
	out, err := json.Marshal(dsse.Envelope{
		PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(statement),
		Signatures: []dsse.Signature{{KeyID: s.public.ID(), Sig: base64.StdEncoding.EncodeToString(sig)}},
	})
	if err != nil {
		return nil, fmt.Errorf("write an envelope: %w", err)
	}
	return out, nil
}
