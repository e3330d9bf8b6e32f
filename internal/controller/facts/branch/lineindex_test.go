package branch

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestLogTouching holds the index of a line against git's own walk of it, for random histories, bounds and commits to
// begin at, while the branch grows.
func TestLogTouching(t *testing.T) {
	scope, err := fieldedit.NewScope(fieldedit.Overlay{Roots: []string{"apps/web/qa"}, Carry: []pipeline.Carry{{KustomizeImages: []string{"*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		ident := git.Ident{Name: "ada", Email: "ada@users.example"}
		mirror := git.OpenMemory(git.NewMemoryRemote(), git.MemoryOptions{Author: ident})
		g, r := NewGitGatherer(nil, nil, nil), &Repository{ID: "hub:acme/fleet", Mirror: mirror}
		var line []string
		grow := func(n int) {
			for range n {
				folder := rapid.SampledFrom([]string{"apps/web/qa", "apps/web/qa-eu", "apps/api/qa", "docs"}).Draw(rt, "folder")
				name := rapid.SampledFrom([]string{"kustomization.yaml", "notes.md"}).Draw(rt, "name")
				spec := git.CommitSpec{Message: "x", When: time.Unix(int64(1_750_000_000+len(line)), 0),
					Files: []git.FileWrite{{Path: folder + "/" + name, Content: fmt.Append(nil, "# ", len(line), "\n")}}}
				if len(line) > 0 {
					spec.Parents, spec.Base = line[len(line)-1:], line[len(line)-1]
				}
				sha, err := mirror.Write(t.Context(), spec)
				if err != nil {
					rt.Fatal(err)
				}
				line = append(line, sha)
			}
		}
		grow(rapid.IntRange(1, 12).Draw(rt, "commits"))
		baseline := rapid.SampledFrom(append(line[:len(line):len(line)], "")).Draw(rt, "baseline")
		for range 3 {
			tip := line[len(line)-1]
			from := rapid.SampledFrom(append(line[:len(line):len(line)], "")).Draw(rt, "from")
			most := rapid.IntRange(1, 5).Draw(rt, "most")
			got, all, err := g.LogTouching(t.Context(), r, tip, baseline, from, scope, most)
			if err != nil {
				rt.Fatal(err)
			}
			start := tip
			if from != "" {
				start = from
			}
			want, err := mirror.Log(t.Context(), git.LogQuery{From: start, FirstParent: true, Paths: scope.Paths()})
			if err != nil {
				rt.Fatal(err)
			}
			isWhole := len(want) < most || all && len(want) == most
			if diff := cmp.Diff(shasOf(want[:min(len(want), most)]), shasOf(got)); diff != "" || all != isWhole {
				rt.Fatalf("from %.7s of %d commits, at most %d: all %t, want %t; (-git +index):\n%s", from, len(line), most, all, isWhole, diff)
			}
			base := rapid.SampledFrom(line).Draw(rt, "base")
			got, err = g.TouchingBetween(t.Context(), r, tip, baseline, start, base, scope, most)
			if err != nil {
				rt.Fatal(err)
			}
			want, err = mirror.Log(t.Context(), git.LogQuery{From: start, Until: base, Paths: scope.Paths(), Limit: most})
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(shasOf(want), shasOf(got)); diff != "" {
				rt.Fatalf("between %.7s and %.7s (-git +index):\n%s", base, start, diff)
			}
			grow(rapid.IntRange(0, 4).Draw(rt, "more"))
		}
	})
}

func shasOf(log []git.CommitInfo) (out []string) {
	for i := range log {
		out = append(out, log[i].SHA)
	}
	return out
}
