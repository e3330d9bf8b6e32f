package deps

import (
	"context"
	"testing"
)

// FuzzKustomization holds that no bytes make the walk fail, run away or
// forget the kustomization itself.
func FuzzKustomization(f *testing.F) {
	f.Add([]byte(kustomizeFiles["env/kustomization.yaml"]), "../base")
	f.Add([]byte("resources: [., .., ../env, /, '']\ncomponents: [\"\"]"), "x")
	f.Add([]byte("generators:\n- |\n  a: &a [*a]\n"), "..")
	f.Fuzz(func(t *testing.T, data []byte, dir string) {
		contents := map[string]string{"env/kustomization.yaml": string(data), "base/kustomization.yaml": "resources: [../env]", "env/charts/x": ""}
		x, err := Build(context.Background(), memoryTree(contents), []Reader{{ID: "r", Sources: []Source{{Path: "env"}}, Extra: []string{dir}}})
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
		if g, err := compilePattern(pattern); err == nil && g != nil {
			g.match(name, true)
		}
	})
}

// FuzzPlainYAML holds the plain YAML parser against the general one.
func FuzzPlainYAML(f *testing.F) {
	for _, piece := range plainPieces {
		f.Add([]byte("a:\n- b: c\n  " + piece + "\n"))
		f.Add([]byte(piece + "\nresources: [a]\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkPlainYAML(t, data) })
}

// FuzzJsonnet holds that finding imports ends on any text.
func FuzzJsonnet(f *testing.F) {
	f.Add([]byte("import 'a' + importstr @\"b\" /* c */ || |||\n d\n|||"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if list, err := parseImports(data); err == nil && len(list) > len(data) {
			t.Fatalf("%d imports in %d bytes", len(list), len(data))
		}
	})
}
