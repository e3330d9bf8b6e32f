package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNested(t *testing.T) {
	got := nested(map[string]any{
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

func TestGeneratorFiles(t *testing.T) {
	pathOf := func(dir, file string) map[string]any { return map[string]any{"path": dir, "filename": file} }
	cases := []struct {
		name       string
		params     map[string]any
		goTemplate bool
		want       []string
	}{
		{"none", map[string]any{"path": map[string]any{"path": "a"}}, true, []string{}},
		{"plain", map[string]any{"path": pathOf("a", "f.json")}, true, []string{"a/f.json"}},
		{"root", map[string]any{"path": pathOf(".", "f.json")}, true, []string{"f.json"}},
		{"prefixed beside plain", map[string]any{"path": pathOf("z", "f"), "p": map[string]any{"path": pathOf("b", "g")}, "q": map[string]any{"path": pathOf("a", "h")}}, true, []string{"z/f", "a/h", "b/g"}},
		{"flat", map[string]any{"path": "a", "path.filename": "f", "p.path": "b", "p.path.filename": "g"}, false, []string{"a/f", "b/g"}},
		{"a file's own key called path", map[string]any{"path": "a"}, true, []string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, generatorFiles(c.params, c.goTemplate)); d != "" {
				t.Error(d)
			}
		})
	}
}
