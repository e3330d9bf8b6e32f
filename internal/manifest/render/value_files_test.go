package render

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

// filesAsArgoCD lists values files as Argo CD 3.4 does on its disk: ResolveValueFiles of its
// reposerver/repository, without what it refuses.
func filesAsArgoCD(root string, entries []string) (out []string, missing bool) {
	isGlob := func(p string) bool { return strings.ContainsAny(p, "*?[") }
	explicit, seen := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if p := filepath.Join(root, e); !isGlob(p) {
			explicit[p] = true
		}
	}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			rel, _ := filepath.Rel(root, p)
			out = append(out, filepath.ToSlash(rel))
		}
	}
	for _, e := range entries {
		p := filepath.Join(root, e)
		if !isGlob(p) {
			_, err := os.Stat(p)
			missing = missing || err != nil
			add(p)
			continue
		}
		matches, err := doublestar.FilepathGlob(p)
		missing = missing || err != nil || len(matches) == 0
		for _, m := range matches {
			if !explicit[m] {
				add(m)
			}
		}
	}
	return out, missing
}

// TestValueFilesAsArgoCD lists the values files of random entries in random trees as Argo CD lists
// them on a disk.
func TestValueFilesAsArgoCD(t *testing.T) {
	base, n, found := t.TempDir(), 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		root := filepath.Join(base, fmt.Sprint(n))
		contents := map[string]string{}
		part := rapid.SampledFrom([]string{"a", "b", "c", "a.yaml", "b.yaml", "10-x.yaml", "9-x.yaml"})
		for range rapid.IntRange(0, 8).Draw(rt, "files") {
			name := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "file"), "/")
			isFree := true
			for other := range contents {
				isFree = isFree && !strings.HasPrefix(other+"/", name+"/") && !strings.HasPrefix(name+"/", other+"/")
			}
			if !isFree {
				continue
			}
			contents[name] = "x: 1\n"
			file := filepath.Join(root, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				rt.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		piece := rapid.SampledFrom([]string{"a", "b", "*", "**", "?", "[a-b]", "*.yaml", "[ab].yaml", "a.yaml", "b.yaml", "{a,b}*", "..", "."})
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "/")
		}), 1, 4).Draw(rt, "entries")
		if slices.ContainsFunc(entries, func(e string) bool {
			return strings.HasPrefix(filepath.Join("x", e)+"/", "../") || !strings.HasPrefix(filepath.Join("x", e)+"/", "x/")
		}) {
			return // out of the repository: refused, which another test holds
		}
		tree := newTreeReader(t.Context(), memoryTree(contents))
		r := &rendering{in: &Input{ValueFilesAs: valueFilesAsGlobs}, files: tree, trees: map[string]*treeReader{"": tree}}
		var revision bool
		got, err := r.findValueFiles(".", &helmOptions{ValueFiles: entries}, newBuildEnv(r.in, &Source{}, &revision))
		want, missing := filesAsArgoCD(root, entries)
		isFolder := slices.ContainsFunc(want, func(p string) bool { return contents[p] == "" })
		if missing || isFolder { // Argo CD gives an error, or Helm does
			if err == nil {
				rt.Errorf("%q gives %v; Argo CD has %q", entries, got, want)
			}
			return
		}
		var names []string
		for _, f := range got {
			names = append(names, f.path)
		}
		if err != nil || !slices.Equal(names, want) {
			rt.Errorf("%q gives %q (%v); Argo CD has %q", entries, names, err, want)
		}
		found++
	})
	if found == 0 {
		t.Error("nothing was listed")
	}
}
