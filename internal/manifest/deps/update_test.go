package deps

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bulkMapFS is a tree of files that can be read in large steps, as a
// repository's can.
type bulkMapFS struct{ fstest.MapFS }

func (b bulkMapFS) List(_ context.Context, do func(string, fs.FileMode, string) error) error {
	for _, name := range slices.Sorted(maps.Keys(b.MapFS)) {
		if err := do(name, b.MapFS[name].Mode, name); err != nil {
			return err
		}
	}
	return nil
}

func (b bulkMapFS) ReadBlobs(_ context.Context, ids []string, limit int64, do func(int, []byte, error) error) error {
	for i, id := range ids {
		var err error
		if int64(len(b.MapFS[id].Data)) > limit {
			err = fs.ErrInvalid
		}
		if err := do(i, b.MapFS[id].Data, err); err != nil {
			return err
		}
	}
	return nil
}

// putFile makes a file or link, in place of whatever is in its way.
func putFile(t fstest.MapFS, name string, f *fstest.MapFile) {
	for other := range t {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			delete(t, other)
		}
	}
	t[name] = f
}

var (
	someFolders = []string{".", "a", "a/b", "a/b/c", "d", "d/charts", "e/templates", "d/l"}
	someFiles   = []string{
		"kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml", "zChart.yaml", "values.yaml", "x.yaml", "y.yaml", "l", "gen.yaml",
		"main.jsonnet", "lib.libsonnet", "templates/t.yaml", "templates/_h.tpl", "charts/sub/templates/s.yaml", "options.yaml", "base/kustomization.yaml", "crds/c.yaml",
	}
	somePaths = []string{
		".", "..", "../b", "../../d", "x.yaml", "y.yaml", "l", "l/x.yaml", "../a", "base", "a", "b/c", "../d/l", "charts", "sub", "k=x.yaml", "../x.yaml",
		"https://example.com/x", "github.com/o/r", "gen.yaml", "lib.libsonnet", "d", "../../../out", "missing/x.yaml", "Chart.yaml",
	}
)

// drawFile draws a file's content of all the kinds that are parsed.
func drawFile(t *rapid.T, base string) string {
	some := func() string { return rapid.SampledFrom(somePaths).Draw(t, "path") }
	list := func() string {
		var out []string
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			out = append(out, fmt.Sprintf("%q", some()))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	switch base {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		var b strings.Builder
		for _, field := range []string{"resources", "components", "generators", "transformers", "crds", "patchesStrategicMerge"} {
			if rapid.IntRange(0, 3).Draw(t, field) == 0 {
				fmt.Fprintf(&b, "%s: %s\n", field, list())
			}
		}
		switch rapid.IntRange(0, 8).Draw(t, "more") {
		case 0:
			fmt.Fprintf(&b, "helmCharts: [{name: sub, repo: https://charts.example.com, valuesFile: %q}]\n", some())
		case 1:
			fmt.Fprintf(&b, "configMapGenerator: [{name: a, files: %s}]\n", list())
		case 2:
			fmt.Fprintf(&b, "validators: ['{kind: V, path: %s}']\n", some())
		case 3:
			b.WriteString("resources: [")
		}
		return b.String()
	case "Chart.yaml":
		return fmt.Sprintf("dependencies: [{name: a, repository: %q}]\n", rapid.SampledFrom([]string{"file://../b", "file://../../d", "https://charts.example.com", "", "file://l"}).Draw(t, "repository"))
	case "main.jsonnet", "lib.libsonnet":
		return fmt.Sprintf("[import %q, importstr '%s']", some(), some())
	}
	return rapid.SampledFrom([]string{"", "a: b\n", "{{ .Files.Get 1 }}", "{{ tpl .Values.x . }}", `{{ define "x" }}{{ .Files }}{{ end }}`, "path: x.yaml\nfiles: [k=y.yaml, l]\n", "x: /d/x.yaml\nname: a/b\n"}).Draw(t, "text")
}

// drawCommit changes some files of a tree and lists them.
func drawCommit(t *rapid.T, before fstest.MapFS) (after fstest.MapFS, changed []string) {
	after = maps.Clone(before)
	for range rapid.IntRange(1, 6).Draw(t, "changes") {
		name := inFolder(rapid.SampledFrom(someFolders).Draw(t, "folder"), rapid.SampledFrom(someFiles).Draw(t, "file"))
		switch rapid.IntRange(0, 6).Draw(t, "what") {
		case 0:
			putFile(after, name, &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(rapid.SampledFrom(somePaths).Draw(t, "to"))})
		case 1:
			if there := slices.Sorted(maps.Keys(after)); len(there) > 0 {
				delete(after, rapid.SampledFrom(there).Draw(t, "gone"))
			}
		case 2:
			dir := rapid.SampledFrom(someFolders).Draw(t, "dir")
			if dir != "." {
				putFile(after, dir, &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(rapid.SampledFrom(somePaths).Draw(t, "to"))})
			}
		default:
			putFile(after, name, &fstest.MapFile{Data: []byte(drawFile(t, name[strings.LastIndexByte(name, '/')+1:]))})
		}
	}
	for _, list := range []fstest.MapFS{before, after} {
		for name := range list {
			a, b := before[name], after[name]
			if a == nil || b == nil || a.Mode != b.Mode || string(a.Data) != string(b.Data) {
				changed = append(changed, name)
			}
		}
	}
	slices.Sort(changed)
	return after, slices.Compact(changed)
}

func drawReaders(t *rapid.T) []Reader {
	var out []Reader
	for i := range rapid.IntRange(1, 5).Draw(t, "readers") {
		r := Reader{ID: fmt.Sprint("r", rapid.IntRange(0, 2).Draw(t, "id")*10+i)}
		for range rapid.IntRange(0, 2).Draw(t, "sources") {
			s := Source{
				Path:    rapid.SampledFrom(someFolders).Draw(t, "source"),
				Layout:  rapid.SampledFrom([]Layout{Detected, Detected, Detected, Kustomize, Helm, Directory, Anything}).Draw(t, "layout"),
				Recurse: rapid.Bool().Draw(t, "recurse"), Include: rapid.SampledFrom([]string{"", "*x*", "["}).Draw(t, "include"),
			}
			if rapid.Bool().Draw(t, "values") {
				s.ValueFiles = []string{"a/values.yaml", inFolder(s.Path, "y.yaml")}
			}
			if rapid.Bool().Draw(t, "globs") {
				s.ValueGlobs = []string{rapid.SampledFrom([]string{"a/*.yaml", "**/y.yaml", "d/**", "l/[xy]*", "missing/*/*"}).Draw(t, "glob")}
			}
			if rapid.Bool().Draw(t, "options") {
				s.Options = []string{inFolder(s.Path, "options.yaml")}
			}
			if rapid.Bool().Draw(t, "libs") {
				s.Libs = []string{"d"}
			}
			r.Sources = append(r.Sources, s)
		}
		if rapid.Bool().Draw(t, "extra globs") {
			r.Globs = []string{rapid.SampledFrom([]string{"*/x.yaml", "d/*"}).Draw(t, "extra glob")}
		}
		if rapid.Bool().Draw(t, "extra") {
			r.Extra = []string{rapid.SampledFrom([]string{"a/b", "d/x.yaml", "missing", "l", "d/l"}).Draw(t, "path")}
		}
		out = append(out, r)
	}
	return out
}

// indexAnswers are all that an index says.
func indexAnswers(x *Index, ids, names []string) map[string]any {
	out := map[string]any{"problems": x.Problems()}
	for _, id := range ids {
		out["files of "+id] = x.Files(id)
		out["remotes of "+id] = x.Remote(id)
	}
	for _, name := range names {
		out["readers of "+name] = x.Readers(name)
	}
	return out
}

// TestUpdateIsBuild holds over random commits that an update gives the same index as building anew,
// whether the tree is read in large steps or not. No file comes to be read, or stops being read,
// unnoticed.
func TestUpdateIsBuild(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now, _ := drawCommit(rt, fstest.MapFS{})
		now, _ = drawCommit(rt, now)
		readers := drawReaders(rt)
		x, err := Build(t.Context(), now, readers)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(rt, "commits") {
			next, changed := drawCommit(rt, now)
			others := readers
			if rapid.IntRange(0, 3).Draw(rt, "others") == 0 {
				others = drawReaders(rt)
			}
			updated, err := x.Update(t.Context(), next, others, changed)
			if err != nil {
				rt.Fatal(err)
			}
			built, err := Build(t.Context(), next, others)
			if err != nil {
				rt.Fatal(err)
			}
			large, err := Build(t.Context(), bulkMapFS{next}, others)
			if err != nil {
				rt.Fatal(err)
			}
			var ids []string
			for _, r := range slices.Concat(readers, others) {
				ids = append(ids, r.ID)
			}
			names := slices.Concat(slices.Sorted(maps.Keys(now)), changed, built.names)
			want := indexAnswers(built, ids, names)
			if d := cmp.Diff(want, indexAnswers(updated, ids, names)); d != "" {
				rt.Fatalf("after %q: the update differs from building anew\n%s\n%s", changed, d, formatTree(next))
			}
			if d := cmp.Diff(want, indexAnswers(large, ids, names)); d != "" {
				rt.Fatalf("reading in large steps makes a difference\n%s\n%s", d, formatTree(next))
			}
			// A folder goes with its last file, which nobody may read.
			v, err := newTreeView(t.Context(), next, false)
			if err != nil {
				rt.Fatal(err)
			}
			affected := x.AffectedReaders(append(findRemovedFolders(v, changed), changed...))
			for _, r := range readers {
				before, after := x.Files(r.ID), built.Files(r.ID)
				same := slices.ContainsFunc(others, func(o Reader) bool { return o.ID == r.ID && digestReader(&o) == digestReader(&r) })
				if same && !slices.Equal(before, after) && affected[r.ID] == nil {
					rt.Fatalf("%s isn't touched by %q, but reads %q now instead of %q\n%s", r.ID, changed, after, before, formatTree(next))
				}
			}
			now, readers, x = next, others, updated
		}
	})
}

func formatTree(t fstest.MapFS) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "%s (%v): %q\n", name, t[name].Mode, t[name].Data)
	}
	return b.String()
}
