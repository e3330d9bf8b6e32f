package fieldedit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestRemoteRefs carries the refs of remote bases from dev to prod: only those bytes are edited.
func TestRemoteRefs(t *testing.T) {
	const base = "https://git.example/acme/build//config/default"
	dev := func(entries ...string) string { return "resources:\n- " + strings.Join(entries, "\n- ") + "\n" }
	for _, c := range []struct {
		name      string
		dev, prod string
		want      string // of prod
		refused   string
	}{
		{name: "at another place of the list", dev: dev("namespace.yaml", base+"?ref=v2"),
			prod: "resources:\n  - quota.yaml   # ours\n  - namespace.yaml\n  - " + base + "?ref=v1 # pinned\n",
			want: "resources:\n  - quota.yaml   # ours\n  - namespace.yaml\n  - " + base + "?ref=v2 # pinned\n"},
		{name: "among other parameters", dev: dev(base + "?ref=1f0c2a&timeout=90"),
			prod: dev(base + "?submodules=false&ref=0e1d3b&timeout=120"), want: dev(base + "?submodules=false&ref=1f0c2a&timeout=120")},
		{name: "by its other word", dev: dev(base + "?ref=v2"), prod: dev(base + "?version=v1"), want: dev(base + "?version=v2")},
		{name: "as it is written", dev: dev(base + "?ref=release%2Fv2"), prod: dev(base + "?ref=release/v1"), want: dev(base + "?ref=release%2Fv2")},
		{name: "in quotes", dev: dev(base + "?ref=v2"), prod: dev(`"`+base+`?ref=v1&timeout=9"`, "'x'"), want: dev(`"`+base+`?ref=v2&timeout=9"`, "'x'")},
		{name: "in a flow list", dev: dev(base + "?ref=v2"), prod: "{resources: [a.yaml, '" + base + "?ref=v1']}\n", want: "{resources: [a.yaml, '" + base + "?ref=v2']}\n"},
		{name: "with other line breaks", dev: dev(base + "?ref=v2"), prod: strings.ReplaceAll(dev(base+"?ref=v1"), "\n", "\r\n"), want: strings.ReplaceAll(dev(base+"?ref=v2"), "\n", "\r\n")},
		{name: "components, and bases as the resources that they are", dev: "resources: [\"" + base + "?ref=v2\"]\ncomponents: [\"" + base + "?ref=c2\"]\n",
			prod: "bases:\n- " + base + "?ref=v1\ncomponents:\n- " + base + "?ref=c1\n", want: "bases:\n- " + base + "?ref=v2\ncomponents:\n- " + base + "?ref=c2\n"},
		{name: "others' remotes stay", dev: dev(base+"?ref=v2", "https://other.example/x?ref=o2"), prod: dev("https://other.example/x?ref=o1", base+"?ref=v1"),
			want: dev("https://other.example/x?ref=o1", base+"?ref=v2")},
		{name: "the same already", dev: dev(base + "?ref=v2"), prod: dev(base + "?timeout=1&ref=v2")},
		{name: "a base that isn't there", dev: dev(base+"?ref=v2", "https://git.example/acme/x?ref=v2"), prod: dev(base + "?ref=v1"),
			refused: "prod/kustomization.yaml: resources[https://git.example/acme/x].ref isn't there: add the remote base with its ref by hand"},
		{name: "a base without a ref", dev: dev(base + "?ref=v2"), prod: dev(base + "?timeout=9"),
			refused: "prod/kustomization.yaml: resources[" + base + "].ref isn't there: add the remote base with its ref by hand"},
		{name: "a base more", dev: dev(base + "?ref=v2"), prod: dev(base+"?ref=v1", "https://git.example/acme/x?ref=v2"),
			refused: "the environment carries what the release doesn't: prod/kustomization.yaml:3: resources[https://git.example/acme/x].ref"},
		{name: "twice", dev: dev(base + "?ref=v2"), prod: dev(base+"?ref=v1", base+"?ref=v1"),
			refused: "prod/kustomization.yaml:3: resources[" + base + "].ref: the remote base is there twice (also on line 2): remove one"},
		{name: "both words", dev: dev(base + "?ref=v2"), prod: dev(base + "?ref=v1&version=v1"),
			refused: "prod/kustomization.yaml:2: resources[" + base + "].ref: the remote base has several of ref= and version=: keep one"},
		{name: "an alias", dev: dev(base + "?ref=v2"), prod: "x: &x " + base + "?ref=v1\nresources: [*x]\n", refused: "it is reached through the alias *x"},
		{name: "escapes", dev: dev(base + "?ref=v2"), prod: "resources: [\"" + base + "?ref\\u003dv1\"]\n", refused: "it is written with escapes: write it plainly"},
		{name: "a template", dev: dev(base + "?ref=v2"), prod: dev(base + "?ref=v{{x}}"), refused: "it is a template ({{ … }}), not a value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := newTree(map[string]string{"dev/kustomization.yaml": c.dev, "prod/kustomization.yaml": c.prod})
			carry := []pipeline.Carry{{KustomizeRefs: []string{"https://git.example/acme/**"}}}
			at := Overlay{Roots: []string{"prod"}, Carry: carry}
			release := mustRead(t, tree, carry, "dev")
			edits, err := Compose(tree, at, release, nil)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got %v, %v", edits, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			landed := applyToMap(tree, edits)
			if c.want == "" {
				c.want = c.prod
			}
			if diff := cmp.Diff(c.want, string(landed["prod/kustomization.yaml"].Data)); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			// The way back, in a file that somebody else changed meanwhile: other parameters are theirs.
			theirs := func(text string) string { return "# later\n" + strings.ReplaceAll(text, "timeout=", "timeout=1") }
			now := applyToMap(landed, []Edit{{File: "prod/kustomization.yaml", After: []byte(theirs(c.want))}})
			back, err := Restore(tree, landed, now, []string{"prod/kustomization.yaml"}, at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(theirs(c.prod), string(applyToMap(now, back)["prod/kustomization.yaml"].Data)); diff != "" {
				t.Fatalf("undone (-want +got)\n%s", diff)
			}
		})
	}
}

// TestRemoteRefOfARelease refuses values that would be another parameter, or none.
func TestRemoteRefOfARelease(t *testing.T) {
	tree := newTree(map[string]string{"prod/kustomization.yaml": "resources:\n- https://git.example/acme/x?ref=v1\n"})
	at := Overlay{Roots: []string{"prod"}, Carry: []pipeline.Carry{{KustomizeRefs: []string{"**"}}}}
	for name, value := range map[string]string{"another parameter": "v2&submodules=true", "a line": "v2\n- x.yaml", "a comment": "v2 #x"} {
		t.Run(name, func(t *testing.T) {
			edits, err := Compose(tree, at, Release{Fields: []Field{{Kind: KindRef, File: "kustomization.yaml", Path: "resources[https://git.example/acme/x].ref", Value: value}}}, nil)
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Errorf("got %v, %v", edits, err)
			}
		})
	}
	for address, want := range map[string]string{"https://git.example/acme/build//config": "https://git.example/acme/build", "https://git.example/acme/build/config/default": "https://git.example/acme/build",
		"github.com/acme/build": "://github.com/acme/build", "git@git.example:acme/build.git/config": "://git@git.example:acme/build", "ssh://git@git.example/group/acme/build.git/config": "ssh://git@git.example/group/acme/build"} {
		if got := (RemoteRef{Address: address}).Repository(); got != want {
			t.Errorf("%s lies in %s, not in %s", address, got, want)
		}
	}
	for _, path := range []string{"crds[https://git.example/acme/x].ref", "resources[].ref", "resources[x].tag", "resources"} {
		if _, err := addressOf(Field{Kind: KindRef, Path: path}); err == nil {
			t.Errorf("%s is taken for a remote base's field", path)
		}
	}
}
