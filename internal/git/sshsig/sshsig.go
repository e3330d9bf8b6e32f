// Package sshsig signs commits with an SSH key, as git verifies them with gpg.format=ssh.
//
// Only ed25519 keys are taken: their signatures are a function of the key and the content (RFC
// 8032, section 5.1.6). So the same commit, written again after an interruption, is the same.
package sshsig

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// namespace is git's: a signature that was made for something else is none of a commit.
	namespace = "git"
	hashName  = "sha512"
	// lineLength is that of the lines in base64, as ssh-keygen writes them.
	lineLength = 70
)

// Key is a private key that signs. It is safe for concurrent use, and whatever prints it prints its
// fingerprint.
type Key struct {
	signer ssh.Signer
}

// ParseKey reads a private key as ssh-keygen writes it, or as PKCS#8, in PEM. It must be an ed25519
// key without a passphrase. Its errors never show the key.
func ParseKey(data []byte) (*Key, error) {
	raw, err := ssh.ParseRawPrivateKey(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, errors.New("the key has a passphrase, which nobody could enter when the server starts; make one without: ssh-keygen " +
			"-t ed25519 -N ''")
	case err != nil && strings.HasPrefix(strings.TrimSpace(string(data)), "ssh-"):
		return nil, errors.New("it is a public key; the private one is in the file of the same name without .pub")
	case err != nil:
		return nil, errors.New("it isn't a private key as ssh-keygen writes it; make one: ssh-keygen -t ed25519 -N ''")
	}
	var private ed25519.PrivateKey
	switch k := raw.(type) {
	case *ed25519.PrivateKey: // in OpenSSH's format
		private = *k
	case ed25519.PrivateKey: // in PKCS#8
		private = k
	default:
		return nil, errors.New("it isn't an ed25519 key, whose signatures are the only ones that come out the same every time; make one: " +
			"ssh-keygen -t ed25519 -N ''")
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, fmt.Errorf("use the key to sign: %w", err)
	}
	return &Key{signer}, nil
}

// PublicKey is the public half on one line, as forges and git's allowed signers want it.
func (k *Key) PublicKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}

// Fingerprint is that of the public key, as forges show it: SHA256:…
func (k *Key) Fingerprint() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// Format prints the fingerprint for every verb; without it some would show the key.
func (k *Key) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, k.Fingerprint()) // a failing writer is the caller's to notice
}

// preamble begins both what is signed and the signature (OpenSSH's PROTOCOL.sshsig).
var preamble = [6]byte{'S', 'S', 'H', 'S', 'I', 'G'}

// SignCommit puts a signature of a commit object that has none into its header.
func (k *Key) SignCommit(commit []byte) ([]byte, error) {
	head, message, ok := strings.Cut(string(commit), "\n\n")
	if !ok {
		return nil, errors.New("sign a commit: it has no end of its header")
	}
	signature, err := k.sign(commit)
	if err != nil {
		return nil, fmt.Errorf("sign a commit: %w", err)
	}
	return []byte(head + "\ngpgsig " + strings.ReplaceAll(signature, "\n", "\n ") + "\n\n" + message), nil
}

// sign makes an armored signature, without a newline at its end.
func (k *Key) sign(message []byte) (string, error) {
	hash := sha512.Sum512(message)
	signature, err := k.signer.Sign(rand.Reader, ssh.Marshal(struct {
		Preamble                  [6]byte
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{preamble, namespace, "", hashName, hash[:]}))
	if err != nil {
		return "", err
	}
	blob := base64.StdEncoding.EncodeToString(ssh.Marshal(struct {
		Preamble                  [6]byte
		Version                   uint32
		PublicKey                 []byte
		Namespace, Reserved, Hash string
		Signature                 []byte
	}{preamble, 1, k.signer.PublicKey().Marshal(), namespace, "", hashName, ssh.Marshal(signature)}))
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for len(blob) > lineLength {
		b.WriteString(blob[:lineLength] + "\n")
		blob = blob[lineLength:]
	}
	b.WriteString(blob + "\n-----END SSH SIGNATURE-----")
	return b.String(), nil
}
