package reads

import (
	"context"
	"testing"
)

// FuzzKustomization holds that no bytes make the walk fail, run away or
// forget the kustomization itself.
func FuzzKustomization(f *testing.F) {
	f.Add([]byte(one["env/kustomization.yaml"]), "../base")
	f.Add([]byte("resources: [., .., ../env, /, '']\ncomponents: [\"\"]"), "x")
	f.Add([]byte("generators:\n- |\n  a: &a [*a]\n"), "..")
	f.Fuzz(func(t *testing.T, data []byte, dir string) {
		contents := map[string]string{"env/kustomization.yaml": string(data), "base/kustomization.yaml": "resources: [../env]", "env/charts/x": ""}
		x, err := Build(context.Background(), tree(contents), []Reader{{ID: "r", Sources: []Source{{Path: "env"}}, Extra: []string{dir}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Readers("env/kustomization.yaml"); len(got) != 1 {
			t.Fatalf("its readers are %v", got)
		}
		for _, name := range x.Files("r") {
			if len(x.Readers(name)) != 1 {
				t.Fatalf("%q is among the files, but has readers %v", name, x.Readers(name))
			}
		}
	})
}

// FuzzGlob holds that no include pattern panics or hangs.
func FuzzGlob(f *testing.F) {
	f.Add("{a,b*}/**[!x].yaml", "a/b.yaml")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if g, err := compile(pattern); err == nil && g != nil {
			g.match(name, true)
		}
	})
}
