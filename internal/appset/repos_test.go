package appset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSymbolicLinks(t *testing.T) {
	contents := map[string]string{}
	for name, f := range directoriesTree() {
		contents[name] = string(f.Data)
	}
	dir := checkout(t, contents)
	must(t, os.Mkdir(filepath.Join(dir, "sets"), 0o755))
	for name, to := range map[string]string{"in": "../argocd/shop.yaml", "out": "../../outside", "absolute": dir + "/argocd/shop.yaml", "loop": "loop.yaml", "dangling": "nothing"} {
		must(t, os.Symlink(to, filepath.Join(dir, "sets", name+".yaml")))
		f := mustResolve(t, input(os.DirFS(dir), shop("sets/"+name+".yaml")))
		if name == "in" {
			if len(f.Problems) > 0 || len(f.Targets) != 4 {
				t.Errorf("%+v", f)
			}
			continue
		}
		if len(f.Problems) == 0 || len(f.Targets) > 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestDoublestarGlobbing(t *testing.T) {
	set := strings.Replace(filesSet, "clusters/*/config.json", "clusters/**/config.json", 1)
	tree := files(map[string]string{"sets/helm.yaml": set, "clusters/eu/dev/config.json": `{"cluster": {"name": "a"}}`})
	p := shop("sets/helm.yaml")
	p.Spec.Component, p.Spec.Environment = "web", "dev"
	for globbing, want := range map[string]int{GlobbingDoublestar: 1, GlobbingGit: 1} {
		in := input(tree, p)
		in.Globbing = globbing
		if f := mustResolve(t, in); len(f.Targets) != want {
			t.Errorf("%s: %+v", globbing, f)
		}
	}
	tree["sets/helm.yaml"].Data = []byte(strings.Replace(set, "clusters/**/config.json", "clusters/*", 1))
	in := input(tree, p)
	in.Globbing = GlobbingDoublestar
	if f := mustResolve(t, in); len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "it is a folder") {
		t.Errorf("the controller fails on a matched folder: %+v", f)
	}
	in.Globbing = "posix"
	if _, err := New(Options{}).Resolve(t.Context(), in); err == nil {
		t.Error("an unknown globbing must be refused")
	}
}
