package render

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// treeContentID identifies a tree's files by what they say, and folders by their names.
func treeContentID(tree fstest.MapFS) ContentID {
	return func(path string) (string, error) {
		if f := tree[path]; f != nil {
			return string(f.Data), nil
		}
		entries, err := fs.ReadDir(tree, path)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		names := "/"
		for _, e := range entries {
			names += e.Name() + "/"
		}
		return names, err
	}
}

// TestBranches renders a chart of one branch with values of another, and plain
// manifests of a third, and again when one of them has moved.
func TestBranches(t *testing.T) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	main := fstest.MapFS{"charts/x/Chart.yaml": text("apiVersion: v2\nname: x\nversion: 1.0.0\n"), "values.yaml": text("tag: of-main\n"),
		"charts/x/templates/c.yaml": text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {tag: '{{ .Values.tag }}'}\n")}
	qa := fstest.MapFS{"values.yaml": text("tag: of-qa\n")}
	extra := fstest.MapFS{"extra/m.yaml": text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n")}
	in := Input{Application: "a", Namespace: "n", Branches: map[string]Tree{"main": {FS: main, ID: treeContentID(main)}, "extra": {FS: extra, ID: treeContentID(extra)}},
		Sources: []Source{
			{InTree: true, Branch: "main", Path: "charts/x", Options: []byte(`{"helm": {"valueFiles": ["$own/values.yaml"]}}`)},
			{InTree: true, Ref: "own"}, {InTree: true, Branch: "extra", Path: "extra"},
		}}
	memo := NewMemo(MemoOptions{Bytes: 1 << 20})
	rendered := func() string {
		t.Helper()
		m, err := memo.Render(t.Context(), qa, treeContentID(qa), in)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, o := range m.Objects {
			out = append(out, string(o.JSON))
		}
		return strings.Join(out, "\n")
	}
	first := rendered()
	if !strings.Contains(first, `"tag":"of-qa"`) || !strings.Contains(first, `"name":"m"`) {
		t.Errorf("rendered %s", first)
	}
	if again := rendered(); again != first {
		t.Errorf("the same gives %s", again)
	}
	qa["values.yaml"] = text("tag: newer\n")
	if got := rendered(); !strings.Contains(got, `"tag":"newer"`) {
		t.Errorf("with other values: %s", got)
	}
	extra["extra/m.yaml"] = text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
	if got := rendered(); !strings.Contains(got, `"name":"other"`) {
		t.Errorf("with another manifest on a third branch: %s", got)
	}
	in.Sources[0].Options = []byte(`{"helm": {"valueFiles": ["/values.yaml"]}}`)
	if got := rendered(); !strings.Contains(got, `"tag":"of-main"`) {
		t.Errorf("with the values file of the chart's own branch: %s", got)
	}
	delete(in.Branches, "extra")
	var cannot *Unrenderable
	if _, err := memo.Render(t.Context(), qa, treeContentID(qa), in); !errors.As(err, &cannot) || !strings.Contains(err.Error(), "the branch extra, which is not known here") {
		t.Errorf("without the third branch: %v", err)
	}
}
