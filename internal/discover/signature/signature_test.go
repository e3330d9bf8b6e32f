package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

var update = flag.Bool("update", false, "write the goldens anew")

const (
	digest      = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	otherDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000002"
	repository  = "registry.example/acme/web"
)

// signer signs as cosign does with a key of its kind.
type signer struct {
	private crypto.Signer
	hash    crypto.Hash // 0: what is signed is the data itself
}

func newSigner(t testing.TB, kind string) signer {
	t.Helper()
	var private crypto.Signer
	var err error
	hash := crypto.SHA256
	switch kind {
	case "p256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "p384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "p384 with its own hash":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		hash = crypto.SHA384
	case "p521 with its own hash":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
		hash = crypto.SHA512
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
		hash = 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer{private, hash}
}

func (s signer) sign(t testing.TB, data []byte) []byte {
	t.Helper()
	if s.hash != 0 {
		h := s.hash.New()
		h.Write(data)
		data = h.Sum(nil)
	}
	out, err := s.private.Sign(rand.Reader, data, s.hash)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pem is the public key.
func (s signer) pem(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func (s signer) policy(t testing.TB, signedAs ...string) *Policy {
	t.Helper()
	key, err := ParseKey("keys/web.pub", s.pem(t))
	if err != nil {
		t.Fatal(err)
	}
	return &Policy{Key: key, SignedAs: signedAs}
}

// claim is what cosign signs of an image.
func claim(digest, reference string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, reference, digest)
}

// attest is what cosign's bundles attest of an image.
func attest(digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
}

// bundle is a sigstore bundle of a statement.
func (s signer) bundle(t testing.TB, payload []byte) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"mediaType": BundleType + ".v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": "h"}},
		"dsseEnvelope": map[string]any{"payload": payload, "payloadType": payloadType,
			"signatures": []any{map[string]any{"sig": s.sign(t, dsse.PAE(payloadType, payload))}}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSignaturesCount holds that signatures of all kinds of keys count, in both forms.
func TestSignaturesCount(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"p256", "p384", "p384 with its own hash", "p521 with its own hash", "rsa", "ed25519"} {
		s := newSigner(t, kind)
		p, of := s.policy(t), Image{repository, digest}
		payload := claim(digest, repository)
		if err := p.CheckPayload(payload, base64.StdEncoding.EncodeToString(s.sign(t, payload)), of); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := p.CheckBundle(s.bundle(t, attest(digest, SignPredicate)), of); err != nil {
			t.Errorf("%s in a bundle: %v", kind, err)
		}
	}
}

// TestRepositories holds of which repositories a signature may be.
func TestRepositories(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "ed25519")
	for name, c := range map[string]struct {
		own, reference string
		signedAs       []string
		want           bool
	}{
		"the same":             {repository, repository, nil, true},
		"with a tag":           {repository, repository + ":1.0", nil, true},
		"with a digest":        {repository, repository + "@" + digest, nil, true},
		"none":                 {repository, "", nil, true},
		"another":              {repository, "registry.example/acme/api", nil, false},
		"another registry":     {repository, "other.example/acme/web", nil, false},
		"one that is let in":   {repository, "ci.example:5000/acme/web:1", []string{"ci.example:5000/acme/*"}, true},
		"one that isn't":       {repository, "ci.example:5000/other/web", []string{"ci.example:5000/acme/*"}, false},
		"Docker Hub":           {"index.docker.io/library/nginx", "nginx", nil, true},
		"Docker Hub in full":   {"index.docker.io/library/nginx", "docker.io/library/nginx:1", nil, true},
		"Docker Hub's other":   {"index.docker.io/acme/web", "acme/web", nil, true},
		"Docker Hub let in":    {repository, "index.docker.io/acme/web", []string{"docker.io/acme/*"}, true},
		"this machine's own":   {repository, "localhost:5000/acme/web", []string{"localhost:5000/**"}, true},
		"one with a port":      {"registry.example:5000/web", "registry.example/web", nil, false},
		"one in other letters": {repository, "Registry.Example/acme/web", nil, true},
	} {
		payload := claim(digest, c.reference)
		err := s.policy(t, c.signedAs...).CheckPayload(payload, base64.StdEncoding.EncodeToString(s.sign(t, payload)), Image{c.own, digest})
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSignaturesAreRefused holds what is said of each signature that doesn't count.
func TestSignaturesAreRefused(t *testing.T) {
	t.Parallel()
	s, other := newSigner(t, "p256"), newSigner(t, "p256")
	p, of := s.policy(t), Image{repository, digest}
	payload := claim(digest, repository)
	encode := base64.StdEncoding.EncodeToString
	flip := func(data []byte, at int) []byte {
		out := slices.Clone(data)
		out[(at+len(out))%len(out)] ^= 1
		return out
	}
	change := func(data []byte, old, new string) []byte {
		if !strings.Contains(string(data), old) {
			t.Fatalf("%s isn't in %s", old, data)
		}
		return []byte(strings.Replace(string(data), old, new, 1))
	}
	statement := attest(digest, SignPredicate)
	good := s.bundle(t, statement)
	twice := change(good, `"signatures":[`, `"signatures":[{"sig":"`+encode(other.sign(t, dsse.PAE(payloadType, statement)))+`"},`)
	var text strings.Builder
	for _, c := range []struct {
		name string
		err  error
	}{
		{"one bit of what is signed is another", p.CheckPayload(flip(payload, 60), encode(s.sign(t, payload)), of)},
		{"one bit of the signature is another", p.CheckPayload(payload, encode(flip(s.sign(t, payload), -1)), of)},
		{"another key", p.CheckPayload(payload, encode(other.sign(t, payload)), of)},
		{"another digest", p.CheckPayload(claim(otherDigest, repository), encode(s.sign(t, claim(otherDigest, repository))), of)},
		{"another repository's signature was copied", p.CheckPayload(claim(digest, "registry.example/acme/api"),
			encode(s.sign(t, claim(digest, "registry.example/acme/api"))), of)},
		{"something else was signed", p.CheckPayload([]byte("{}"), encode(s.sign(t, []byte("{}"))), of)},
		{"text was signed", p.CheckPayload([]byte("text"), encode(s.sign(t, []byte("text"))), of)},
		{"no signature", p.CheckPayload(payload, "", of)},
		{"no base64", p.CheckPayload(payload, "!", of)},
		{"a signature of nothing", p.CheckPayload(nil, encode(s.sign(t, nil)), of)},
		{"a large payload", p.CheckPayload(make([]byte, MaxPayload+1), encode(s.sign(t, payload)), of)},
		{"bundle: one bit of what is signed is another", p.CheckBundle(change(good, encode(statement), encode(flip(statement, 80))), of)},
		{"bundle: another key", p.CheckBundle(other.bundle(t, statement), of)},
		{"bundle: another digest", p.CheckBundle(s.bundle(t, attest(otherDigest, SignPredicate)), of)},
		{"bundle: provenance by the key", p.CheckBundle(s.bundle(t, attest(digest, "https://slsa.dev/provenance/v1")), of)},
		{"bundle: another type of payload", p.CheckBundle(change(good, payloadType, "text/plain"), of)},
		{"bundle: two signatures", p.CheckBundle(twice, of)},
		{"bundle: none of a thing", p.CheckBundle(s.bundle(t, []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"`+SignPredicate+`"}`)), of)},
		{"bundle: no statement", p.CheckBundle(s.bundle(t, payload), of)},
		{"bundle: of a file", p.CheckBundle([]byte(`{"mediaType":"`+BundleType+`.v0.3+json","messageSignature":{"signature":"AA=="}}`), of)},
		{"bundle: another kind", p.CheckBundle(change(good, BundleType, "application/x"), of)},
		{"bundle: no JSON", p.CheckBundle([]byte("{"), of)},
		{"bundle: a large one", p.CheckBundle(make([]byte, MaxBundle+1), of)},
	} {
		var refusal *Refusal
		if !errors.As(c.err, &refusal) || refusal.Rank == 0 {
			t.Errorf("%s: it counts, or %v", c.name, c.err)
			continue
		}
		fmt.Fprintf(&text, "%s:\n  %s\n", c.name, c.err)
	}
	if err := p.CheckBundle(good, of); err != nil {
		t.Errorf("the one that the others were made of: %v", err)
	}
	const golden = "testdata/refused.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), text.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestKeysAreRefused holds what is said of what can't be a key, and that nothing of it is shown.
func TestKeysAreRefused(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "p256")
	private, err := x509.MarshalPKCS8PrivateKey(s.private)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	for name, c := range map[string]struct{ text, want string }{
		"text":          {"secret", "it is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----"},
		"a private key": {block("PRIVATE KEY", private), "it is a private key: remove it from the repository, make another pair, and write the public key"},
		"cosign's":      {block("ENCRYPTED SIGSTORE PRIVATE KEY", private), "it is a private key: remove it from the repository, make another pair, and write the public key"},
		"a certificate": {block("CERTIFICATE", private), "it is a certificate: write the public key in it, as openssl x509 -pubkey prints it"},
		"two":           {string(s.pem(t)) + string(s.pem(t)), "there is more behind the first key, and one key counts: remove the rest"},
		"a small one":   {string(signer{private: small}.pem(t)), "it is no public key by which signatures are verified: take ECDSA, Ed25519, or RSA with 2048, 3072 or 4096 bits"},
		"nonsense":      {block("PUBLIC KEY", []byte("secret")), "it is no public key by which signatures are verified: take ECDSA, Ed25519, or RSA with 2048, 3072 or 4096 bits"},
		"a large text":  {strings.Repeat(" ", MaxKey+1), "it has more than 16384 bytes, which no public key has"},
	} {
		if key, err := ParseKey("k", []byte(c.text)); err == nil || err.Error() != c.want || key != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, err := ParseKey("", s.pem(t))
	if err != nil || !strings.HasPrefix(key.String(), "sha256:") || (&Policy{Key: key}).ID() == (&Policy{Key: key, SignedAs: []string{"a"}}).ID() {
		t.Errorf("%s, %v", key, err)
	}
}

// FuzzSignatures holds that nothing counts that the key's owner didn't sign, whatever lies in a registry, and that each
// refusal is one line.
func FuzzSignatures(f *testing.F) {
	s, other := newSigner(f, "ed25519"), newSigner(f, "ed25519")
	p, of := s.policy(f), Image{repository, digest}
	payload := claim(digest, repository)
	f.Add(payload, base64.StdEncoding.EncodeToString(other.sign(f, payload)), repository)
	f.Add(other.bundle(f, attest(digest, SignPredicate)), "", "nginx:1@sha256:a")
	f.Add([]byte(`{"critical":{"image":{"docker-manifest-digest":"`+digest+"\\n"+`"}}}`), "AA==", "")
	f.Fuzz(func(t *testing.T, data []byte, encoded, reference string) {
		for _, err := range []error{p.CheckPayload(data, encoded, of), p.CheckBundle(data, of)} {
			var refusal *Refusal
			if !errors.As(err, &refusal) || strings.ContainsAny(refusal.Text, "\r\n") {
				t.Fatalf("%q", err)
			}
		}
		if strings.Contains(string(data), `\u`) {
			return // it may have the digest in another spelling
		}
		// What the key's owner signs by mistake counts for no other image either.
		signed := s.sign(t, data)
		if err := p.CheckPayload(data, base64.StdEncoding.EncodeToString(signed), of); err == nil && !strings.Contains(string(data), digest) {
			t.Fatalf("%q counts", data)
		}
		if err := p.CheckBundle(s.bundle(t, data), of); err == nil && !strings.Contains(string(data), digest[7:]) {
			t.Fatalf("%q counts in a bundle", data)
		}
		if once := repositoryOf(reference); repositoryOf(once) != once && !strings.ContainsAny(reference, ":@") {
			t.Fatalf("%q is %q and then %q", reference, once, repositoryOf(once))
		}
	})
}
