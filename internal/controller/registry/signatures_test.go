package registry

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/liftlock/liftlock/internal/discover/signature"
)

var update = flag.Bool("update", false, "write the goldens anew")

// testSigner signs images as cosign sign --key does.
type testSigner struct {
	t       *testing.T
	private ed25519.PrivateKey
}

func newTestSigner(t *testing.T) *testSigner {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &testSigner{t, private}
}

func (s *testSigner) policy() *signature.Policy {
	s.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.private.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := signature.ParseKey("web.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	if err != nil {
		s.t.Fatal(err)
	}
	return &signature.Policy{Key: key}
}

// payload is one layer of signatures: what is signed, with its signature beside it.
func (s *testSigner) payload(repository, digest string) mutate.Addendum {
	signed := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, repository, digest)
	return mutate.Addendum{Layer: static.NewLayer(signed, simpleSigning),
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(ed25519.Sign(s.private, signed))}}
}

// bundle is one layer with a sigstore bundle.
func (s *testSigner) bundle(digest string) mutate.Addendum {
	s.t.Helper()
	const kind = "application/vnd.in-toto+json"
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q}`,
		strings.TrimPrefix(digest, "sha256:"), signature.SignPredicate)
	signed := fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
	data, err := json.Marshal(map[string]any{"mediaType": signature.BundleType + ".v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": "h"}},
		"dsseEnvelope": map[string]any{"payload": []byte(payload), "payloadType": kind,
			"signatures": []any{map[string]any{"sig": ed25519.Sign(s.private, []byte(signed))}}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return mutate.Addendum{Layer: static.NewLayer(data, types.MediaType(signature.BundleType+".v0.3+json"))}
}

// attach puts signatures under the tag that cosign makes for those of a digest.
func (t *testRegistry) attach(digest string, layers ...mutate.Addendum) {
	t.t.Helper()
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	t.must(err)
	t.push(strings.Replace(digest, ":", "-", 1)+signatureTag, image)
}

// refer puts signatures there that refer to a digest.
func (t *testRegistry) refer(digest, artifact string, layers ...mutate.Addendum) {
	t.t.Helper()
	ref, err := name.NewDigest(t.host + "/acme/web@" + digest)
	t.must(err)
	subject, err := remote.Head(ref)
	t.must(err)
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	t.must(err)
	image = mutate.Subject(mutate.ConfigMediaType(image, types.MediaType(artifact)), *subject).(v1.Image)
	own, err := image.Digest()
	t.must(err)
	t.must(remote.Write(ref.Context().Digest(own.String()), image))
}

// TestVerifySignatures holds which signatures count of what lies beside an image, and what is said of the others.
func TestVerifySignatures(t *testing.T) {
	t.Parallel()
	const emptyConfig = "application/vnd.oci.empty.v1+json"
	s, other := newTestSigner(t), newTestSigner(t)
	p := s.policy()
	var text strings.Builder
	for _, c := range []struct {
		name      string
		referrers bool // the registry lists what refers to an image
		attach    func(r *testRegistry, repository, digest, older string)
		counts    bool
	}{
		{"none", true, func(*testRegistry, string, string, string) {}, false},
		{"none, and no list of referrers", false, func(*testRegistry, string, string, string) {}, false},
		{"by the key", false, func(r *testRegistry, repository, digest, _ string) { r.attach(digest, s.payload(repository, digest)) }, true},
		{"by the key, beside another", false, func(r *testRegistry, repository, digest, _ string) {
			r.attach(digest, other.payload(repository, digest), s.payload(repository, digest))
		}, true},
		{"a bundle", true, func(r *testRegistry, _, digest, _ string) {
			r.refer(digest, signature.BundleType+".v0.3+json", s.bundle(digest))
		}, true},
		{"a bundle under the tag of referrers", false, func(r *testRegistry, _, digest, _ string) { r.refer(digest, emptyConfig, s.bundle(digest)) }, true},
		{"a referring signature", true, func(r *testRegistry, repository, digest, _ string) {
			r.refer(digest, signatureArtifact, s.payload(repository, digest))
		}, true},
		{"a bundle beside one of another key", true, func(r *testRegistry, repository, digest, _ string) {
			r.attach(digest, other.payload(repository, digest))
			r.refer(digest, emptyConfig, other.bundle(digest))
			r.refer(digest, emptyConfig, s.bundle(digest))
		}, true},
		{"by another key", false, func(r *testRegistry, repository, digest, _ string) {
			r.attach(digest, other.payload(repository, digest))
		}, false},
		{"an older image's, copied", false, func(r *testRegistry, repository, digest, older string) {
			r.attach(digest, s.payload(repository, older))
		}, false},
		{"another repository's, copied", false, func(r *testRegistry, _, digest, _ string) {
			r.attach(digest, s.payload("registry.example/acme/api", digest))
		}, false},
		{"an older image's bundle, copied", true, func(r *testRegistry, _, digest, older string) { r.refer(digest, emptyConfig, s.bundle(older)) }, false},
		{"many others before it", false, func(r *testRegistry, repository, digest, _ string) {
			var layers []mutate.Addendum
			for n := range maxSignatures {
				layers = append(layers, other.payload(fmt.Sprint(repository, ":", n), digest))
			}
			r.attach(digest, append(layers, s.payload(repository, digest))...)
		}, false},
		{"a large one", false, func(r *testRegistry, repository, digest, _ string) {
			r.attach(digest, mutate.Addendum{Layer: static.NewLayer(make([]byte, signature.MaxPayload+1), simpleSigning)})
		}, false},
		{"something else", true, func(r *testRegistry, repository, digest, _ string) {
			r.attach(digest, mutate.Addendum{Layer: static.NewLayer([]byte("text"), "text/plain")})
			r.refer(digest, "application/spdx+json", mutate.Addendum{Layer: static.NewLayer([]byte("{}"), "application/spdx+json")})
		}, false},
		{"an index in its place", false, func(r *testRegistry, repository, digest, _ string) {
			r.push(strings.Replace(digest, ":", "-", 1)+signatureTag, indexOf(nil))
		}, false},
		{"another blob than the manifest says", false, func(r *testRegistry, repository, digest, _ string) {
			r.attach(digest, s.payload(repository, digest))
			r.setFault(func(w http.ResponseWriter, req *http.Request) bool {
				if strings.Contains(req.URL.Path, "/blobs/") {
					fmt.Fprint(w, "{}")
					return true
				}
				return false
			})
		}, false},
		{"a registry that has no word for referrers", false, func(r *testRegistry, _, digest, _ string) {
			r.refer(digest, emptyConfig, s.bundle(digest))
			r.setFault(func(w http.ResponseWriter, req *http.Request) bool {
				if strings.Contains(req.URL.Path, "/referrers/") {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return true
				}
				return false
			})
		}, true},
	} {
		r := newTestRegistry(t, memory.WithReferrersSupport(c.referrers))
		_, older, _ := strings.Cut(r.push("1.0.0", labelled(t, nil)), "@")
		_, digest, _ := strings.Cut(r.push("1.1.0", labelled(t, map[string]string{"version": "1.1.0"})), "@")
		c.attach(r, r.host+"/acme/web", digest, older)
		got, err := r.images("", "").VerifySignatures(t.Context(), r.host+"/acme/web", digest, p)
		if err != nil || (got.By != "") != c.counts || got.Digest != digest || got.Pending == c.counts || (got.Why == "") != c.counts {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		fmt.Fprintf(&text, "%s:\n  %s%s\n", c.name, got.By, strings.NewReplacer(older, "OLDER", digest[:19], "DIGEST").Replace(got.Why))
	}
	shown := text.String()
	const golden = "testdata/signatures.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), shown); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestSignaturesAreRemembered holds for how long what was found counts, and that a signature may follow a push.
func TestSignaturesAreRemembered(t *testing.T) {
	t.Parallel()
	r, s := newTestRegistry(t), newTestSigner(t)
	p, i := s.policy(), r.images("", "")
	_, digest, _ := strings.Cut(r.push("1.1.0", labelled(t, nil)), "@")
	verify := func(want string, pending bool) {
		t.Helper()
		got, err := i.VerifySignatures(t.Context(), r.host+"/acme/web", digest, p)
		if err != nil || got.By != want || got.Pending != pending {
			t.Errorf("%+v, %v", got, err)
		}
	}
	verify("", true)
	r.now = r.now.Add(signingTime)
	verify("", false)
	r.attach(digest, s.payload(r.host+"/acme/web", digest))
	verify("", false) // remembered
	r.now = r.now.Add(failedAge)
	verify("the key web.pub", false)
	calls := r.calls.Load()
	verify("the key web.pub", false)
	if r.calls.Load() != calls {
		t.Errorf("%d more calls", r.calls.Load()-calls)
	}
	p = newTestSigner(t).policy()
	verify("", true) // of another policy nothing is known
}

// TestSignaturesOfHostileRegistries holds that an answer that isn't one says nothing of signatures.
func TestSignaturesOfHostileRegistries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		answer func(w http.ResponseWriter)
		want   error
	}{
		"away":             {".sig", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, ErrAway},
		"refused":          {".sig", func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, ErrRefused},
		"a large list":     {"/referrers/", func(w http.ResponseWriter) { sendLarge(w, string(types.OCIImageIndex)) }, ErrUnread},
		"a large manifest": {".sig", func(w http.ResponseWriter) { sendLarge(w, string(types.OCIManifestSchema1)) }, ErrUnread},
		"a list of text": {"/referrers/", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", string(types.OCIImageIndex))
			fmt.Fprint(w, "[")
		}, ErrUnread},
		"too many calls": {"/referrers/", func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, ErrAway},
	} {
		r := newTestRegistry(t, memory.WithReferrersSupport(true))
		_, digest, _ := strings.Cut(r.push("1.1.0", labelled(t, nil)), "@")
		r.setFault(func(w http.ResponseWriter, req *http.Request) bool {
			if strings.Contains(req.URL.Path, c.path) {
				c.answer(w)
				return true
			}
			return false
		})
		got, err := r.images("", "").VerifySignatures(t.Context(), r.host+"/acme/web", digest, newTestSigner(t).policy())
		if !errors.Is(err, c.want) || got.By != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	r := newTestRegistry(t)
	for _, digest := range []string{"", "sha256:", "sha512:" + strings.Repeat("0", 128), "latest"} {
		if _, err := r.images("", "").VerifySignatures(t.Context(), r.host+"/acme/web", digest, newTestSigner(t).policy()); !errors.Is(err, ErrUnread) {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

// sendLarge sends more than is read.
func sendLarge(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
	chunk := make([]byte, 1<<20)
	for range 8 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}
