package discovery

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// testKey is a public key in PEM.
func testKey(t *testing.T) []byte {
	t.Helper()
	public := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// TestFindSigned holds what comes in where images have to be signed, and which digest is written.
func TestFindSigned(t *testing.T) {
	t.Parallel()
	const kustomization, values = "dev/kustomization.yaml", "dev/values.yaml"
	const rule = `{image: "r/*", choose: {semver: "*"}, verify: {cosign: {key: web.pub}}`
	tag, pinned, reference := "images: [{name: r/web, newTag: 1.0.0}]", "images: [{name: r/web, newTag: 1.0.0, digest: 'sha256:a'}]", "sidecar: {image: 'r/web:1.0.0'}"
	of := func(digests string) map[string]discover.Details {
		out := map[string]discover.Details{}
		for i, d := range strings.Fields(digests) {
			out[fmt.Sprintf("1.%d.0", i+1)] = discover.Details{Digest: "sha256:" + d}
			out["sha256:"+d] = discover.Details{Digest: "sha256:" + d, Platforms: []string{"linux/amd64"}}
		}
		return out
	}
	signed := func(digests ...string) map[string]string {
		out := map[string]string{}
		for _, d := range digests {
			out["sha256:"+d] = "the key web.pub"
		}
		return out
	}
	for name, c := range map[string]struct {
		rule, file, text string
		source           testSource
		want             string
		fields           string
		unsigned         string
		calls            []string // nil: not looked at
	}{
		"signed": {rule + "}", kustomization, tag, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b"), signed: signed("b")},
			"r/web: sha256:b, signed with the key web.pub, is 1.1.0, the highest version in *", "images[r/web].newTag=1.1.0", "", []string{"tags of r/web", "digest of r/web:1.1.0", "signatures of r/web@sha256:b"}},
		"not signed": {rule + "}", kustomization, tag, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b")},
			"r/web: no tag that may come in is newer than 1.0.0", "", "1.1.0 isn't signed as it has to be: there is no signature", nil},
		"an older one that is signed": {rule + "}", kustomization, tag, testSource{tags: map[string]string{"r/web": "1.1.0 1.2.0 1.3.0"}, details: of("b c d"), signed: signed("b", "c")},
			"r/web: sha256:c, signed with the key web.pub, is 1.2.0, the highest version in *", "images[r/web].newTag=1.2.0", "1.3.0 isn't signed as it has to be: there is no signature", nil},
		"only what is there is signed": {rule + "}", kustomization, tag, testSource{tags: map[string]string{"r/web": "1.0.0 1.1.0"}, details: of("b"), signed: signed("a")},
			"r/web: 1.0.0 is there, the highest version in *", "", "1.1.0 isn't signed as it has to be: there is no signature", nil},
		"with a digest beside it": {rule + "}", kustomization, pinned, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b"), signed: signed("b")},
			"r/web: sha256:b, signed with the key web.pub, is 1.1.0, the highest version in *", "images[r/web].digest=sha256:b images[r/web].newTag=1.1.0", "", nil},
		"pinned": {rule + ", pin: digest}", kustomization, pinned, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b"), signed: signed("b")},
			"r/web: sha256:b, signed with the key web.pub, is 1.1.0, the highest version in *", "images[r/web].digest=sha256:b images[r/web].newTag=1.1.0", "", nil},
		"a reference that is pinned": {rule + ", pin: digest}", values, reference, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b"), signed: signed("b")},
			"r/web: sha256:b, signed with the key web.pub, is 1.1.0, the highest version in *", "sidecar.image=r/web:1.1.0@sha256:b", "", nil},
		"a reference that isn't": {rule + "}", values, reference, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b"), signed: signed("b")},
			"r/web: sha256:b, signed with the key web.pub, is 1.1.0, the highest version in *", "sidecar.image=r/web:1.1.0", "", nil},
		"pinned without a signature": {`{image: "r/*", choose: {semver: "*"}, pin: digest}`, values, reference, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b")},
			"r/web: 1.1.0, the highest version in *", "sidecar.image=r/web:1.1.0@sha256:b", "", []string{"tags of r/web", "1 of r/web"}},
		"no place for a digest": {rule + ", pin: digest}", kustomization, tag, testSource{},
			"r/web! pin: digest has no place to write to: no carried field at dev/kustomization.yaml:1 has a digest; add digest beside the tag, and carry it", "", "", nil},
		"for a platform, pushed over since it was looked into": {`{image: "r/*", choose: {semver: "*"}, platforms: [linux/amd64], verify: {cosign: {key: web.pub}}}`, kustomization, tag,
			testSource{tags: map[string]string{"r/web": "1.1.0"}, details: map[string]discover.Details{"1.1.0": {Digest: "sha256:b", Platforms: []string{"linux/amd64"}}, "sha256:b": {Digest: "sha256:b", Platforms: []string{"linux/arm64"}}},
				signed: signed("b"), stale: map[string]discover.Details{"1.1.0": {Digest: "sha256:a", Platforms: []string{"linux/amd64"}}}},
			"r/web: no tag that may come in is newer than 1.0.0", "", "", []string{"tags of r/web", "1 of r/web", "digest of r/web:1.1.0", "1 of r/web", "signatures of r/web@sha256:b"}},
		"a digest that is followed": {`{image: "r/*", choose: {digest: {tag: 1.1.0}}, verify: {cosign: {key: web.pub}}}`, kustomization, pinned, testSource{details: of("b"), signed: signed("b")},
			"r/web: sha256:b, signed with the key web.pub, is what the tag 1.1.0 has now", "images[r/web].digest=sha256:b", "", nil},
		"a digest that isn't signed": {`{image: "r/*", choose: {digest: {tag: 1.1.0}}, verify: {cosign: {key: web.pub}}}`, kustomization, pinned, testSource{details: of("b")},
			"r/web: sha256:b, what the tag 1.1.0 has now, doesn't come in", "", "1.1.0 isn't signed as it has to be: there is no signature", nil},
		"a key that isn't there": {strings.Replace(rule, "web.pub", "keys/other.pub", 1) + "}", kustomization, tag, testSource{},
			"r/web! the key keys/other.pub of verify can't be read beside the pipeline file, so nothing counts as signed: file does not exist", "", "", nil},
		"a key that is none": {strings.Replace(rule, "web.pub", "text.pub", 1) + "}", kustomization, tag, testSource{},
			"r/web! the key text.pub of verify can't be taken, so nothing counts as signed: it is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----", "", "", nil},
		"a registry that is away": {rule + "}", kustomization, tag, testSource{tags: map[string]string{"r/web": "1.1.0"}, details: of("b"), err: passingError{}}, "r/web~ it is asked again", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, fields, err := findIn(t, c.rule, c.file, c.text, &c.source)
			if err != nil || f.Refused != "" || len(f.Versions) != 1 {
				t.Fatalf("%v, %s, %d versions", err, f.Refused, len(f.Versions))
			}
			v := &f.Versions[0]
			got := v.Reason()
			if v.Err != "" {
				got = v.Name + map[bool]string{true: "~ ", false: "! "}[v.Passing] + v.Err
			}
			var unsigned []string
			for _, u := range v.Unsigned {
				unsigned = append(unsigned, u.Tag+" "+u.Why)
			}
			if diff := cmp.Diff([]string{c.want, c.fields, c.unsigned}, []string{got, fields, strings.Join(unsigned, "; ")}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.calls != nil {
				if diff := cmp.Diff(c.calls, c.source.calls); diff != "" {
					t.Errorf("the source is asked for (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// findIn looks at one file with one entry. The fields are those that change.
func findIn(t *testing.T, rule, file, text string, source *testSource) (f Found, fields string, err error) {
	t.Helper()
	all, err := pipeline.Parse("p", []byte(pipelineHead+"        - "+rule+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, at := all[0], &history.Environment{Component: "web", Name: "dev", Roots: []string{"dev"}}
	tree := fstest.MapFS{file: {Data: []byte(text + "\n")}}
	current, err := fieldedit.Read(tree, at.Overlay(p))
	if err != nil {
		t.Fatal(err)
	}
	err = f.Find(t.Context(), &Query{Pipeline: p, Environment: &p.Spec.Environments[0], At: at, Tree: tree, Current: current,
		Rules: fstest.MapFS{"web.pub": {Data: testKey(t)}, "text.pub": {Data: []byte("text")}},
		Past:  func() ([]fieldedit.Release, error) { return nil, nil }}, source)
	var changed []string
	for _, d := range fieldedit.Compare(current, f.Want) {
		changed = append(changed, d.Path+"="+d.New)
	}
	return f, strings.Join(changed, " "), err
}

// TestManyUnsigned holds that a registry full of tags that aren't signed costs a few looks, and brings nothing in.
func TestManyUnsigned(t *testing.T) {
	t.Parallel()
	s := testSource{details: map[string]discover.Details{}, tags: map[string]string{}}
	for n := range 500 {
		tag := fmt.Sprintf("1.%d.0", n+1)
		s.tags["r/web"] += " " + tag
		s.details[tag] = discover.Details{Digest: "sha256:" + tag, Platforms: []string{"linux/amd64"}}
	}
	f, fields, err := findIn(t, `{image: r/web, platforms: [linux/amd64], choose: {semver: "*"}, verify: {cosign: {key: web.pub}}}`, "dev/kustomization.yaml",
		"images: [{name: r/web, newTag: 1.0.0}]", &s)
	v := &f.Versions[0]
	if err != nil || fields != "" || f.Unfinished || len(v.Unsigned) != discover.MaxUnsigned || len(s.calls) > 1+3*discover.MaxUnsigned {
		t.Errorf("%q, %v, %d unsigned after %d calls", fields, err, len(v.Unsigned), len(s.calls))
	}
	if want := "the 20 newest tags that may come in aren't signed as they have to be; older ones aren't looked at"; v.Choice.Why != want {
		t.Errorf("%s", v.Choice.Why)
	}
}

// TestHasMoved holds that a tag has to be what was verified until it is committed, unless its digest is written.
func TestHasMoved(t *testing.T) {
	t.Parallel()
	for _, pin := range []string{"", ", pin: digest"} {
		s := testSource{tags: map[string]string{"r/web": "1.1.0"}, signed: map[string]string{"sha256:b": "the key web.pub"},
			details: map[string]discover.Details{"1.1.0": {Digest: "sha256:b"}, "sha256:b": {Digest: "sha256:b"}}}
		f, _, err := findIn(t, `{image: r/web, choose: {semver: "*"}, verify: {cosign: {key: web.pub}}`+pin+"}", "dev/values.yaml", "sidecar: {image: 'r/web:1.0.0'}", &s)
		if err != nil {
			t.Fatal(err)
		}
		if tag, err := f.HasMoved(t.Context(), &s); tag != "" || err != nil {
			t.Errorf("%s, %v", tag, err)
		}
		s.details["1.1.0"] = discover.Details{Digest: "sha256:c"}
		want := "r/web:1.1.0"
		if pin != "" {
			want = ""
		}
		if tag, err := f.HasMoved(t.Context(), &s); tag != want || err != nil {
			t.Errorf("%s, %v", tag, err)
		}
		s.err = errors.New("it refuses")
		if _, err := f.HasMoved(t.Context(), &s); (err != nil) != (pin == "") {
			t.Errorf("%v", err)
		}
	}
}
