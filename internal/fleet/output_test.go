package fleet

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestOutput(t *testing.T) {
	tree := directoriesTree()
	tree["argocd/helm.yaml"] = files(map[string]string{"x": filesSet})["x"]
	tree["argocd/new.yaml"] = files(map[string]string{"x": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: new}\nspec: {generators: [], future: 1}\n"})["x"]
	tree["clusters/dev/config.json"] = files(map[string]string{"x": `{"cluster": {"name": "c-dev\u001b[31m"}}`})["x"]
	p := shop("argocd/*.yaml")
	p.Spec.Component = `{{ if hasPrefix "apps/" .path.path }}{{ index .path.segments 1 }}{{ end }}`
	f := mustResolve(t, input(tree, p))
	for name, write := range map[string]func(io.Writer, *Fleet) error{"resolve.txt": WriteTable, "resolve.json": WriteJSON, "resolve.yaml": WriteYAML} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b, f); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
	var b bytes.Buffer
	if err := WriteTable(&b, &Fleet{}); err != nil || b.String() != "No Applications.\n" {
		t.Errorf("%q %v", b.String(), err)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-update writes it anew):\n%s", file, d)
	}
}
