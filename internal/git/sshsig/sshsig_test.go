package sshsig

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func encodeKey(t *testing.T, key any, passphrase string) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	publicKey, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	authorized := ssh.MarshalAuthorizedKey(publicKey)
	for _, c := range []struct {
		name string
		data []byte
		want string // in the error; empty: it is a key
	}{
		{"OpenSSH's format", encodeKey(t, private, ""), ""},
		{"PKCS#8", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), ""},
		{"passphrase", encodeKey(t, private, "open sesame"), "has a passphrase"},
		{"another kind", encodeKey(t, other, ""), "isn't an ed25519 key"},
		{"public", authorized, "is a public key"},
		{"something else", []byte("hunter2-hunter2"), "isn't a private key"},
		{"nothing", nil, "isn't a private key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key, err := ParseKey(c.data)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := key.PublicKey(), strings.TrimSpace(string(authorized)); got != want {
				t.Errorf("the public key is %s, want %s", got, want)
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s"} {
				if got := fmt.Sprintf(verb, key); got != ssh.FingerprintSHA256(publicKey) {
					t.Errorf("%s prints %s", verb, got)
				}
			}
		})
	}
}

func TestSignCommitNeedsAHeader(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(encodeKey(t, private, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.SignCommit([]byte("tree of nothing")); err == nil {
		t.Error("what is no commit was signed")
	}
}
