package appset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNestParams(t *testing.T) {
	got := nestParams(map[string]any{
		"path": "apps/web/dev", "path.basename": "dev", "path[0]": "apps", "path[1]": "web", "path[2]": "dev",
		"p1.path": "x", "p1.path[0]": "x", "p1.path.filename": "f.json",
		"values.a.b": "v", "metadata.labels.example.com/team": "t", "cluster.name": "c", "name": "n", "odd[x]": "y",
	})
	want := map[string]any{
		"path":     map[string]any{"path": "apps/web/dev", "basename": "dev", "segments": []string{"apps", "web", "dev"}},
		"p1":       map[string]any{"path": map[string]any{"path": "x", "filename": "f.json", "segments": []string{"x"}}},
		"values":   map[string]any{"a.b": "v"},
		"metadata": map[string]any{"labels": map[string]any{"example.com/team": "t"}},
		"cluster":  map[string]any{"name": "c"},
		"name":     "n", "odd[x]": "y",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFirstFile(t *testing.T) {
	pathOf := func(dir, file string) map[string]any { return map[string]any{"path": dir, "filename": file} }
	cases := []struct {
		name       string
		params     map[string]any
		goTemplate bool
		files      []string
		want       string
	}{
		{"none", map[string]any{"path": pathOf("a", "f.json")}, true, nil, ""},
		{"plain", map[string]any{"path": pathOf("b", "f.json")}, true, []string{"a/f.json", "b/f.json"}, "b/f.json"},
		{"root", map[string]any{"path": pathOf(".", "f.json")}, true, []string{"a", "f.json"}, "f.json"},
		{"prefixed only", map[string]any{"p": map[string]any{"path": pathOf("b", "g")}}, true, []string{"a/h", "b/g"}, "a/h"},
		{"flat", map[string]any{"path": "b", "path.filename": "f", "p.path": "a", "p.path.filename": "g"}, false, []string{"a/g", "b/f"}, "b/f"},
		{"a file's own key called path", map[string]any{"path": "a"}, true, []string{"x/f"}, "x/f"},
		{"a file of another repository", map[string]any{"path": pathOf("z", "f")}, true, []string{"a/f"}, "a/f"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := firstFile(&generatedApp{params: c.params}, c.files, c.goTemplate); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
