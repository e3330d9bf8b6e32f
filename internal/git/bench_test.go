package git

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchFiles is how many files the benchmarks' repository has: few, so that
// they run everywhere; 100000 shows the difference that matters.
var benchFiles = flag.Int("bench-files", 2000, "files in the benchmarks' repository")

// benchOrigin is a bare repository with many overlays, made by fast-import.
func benchOrigin(b *testing.B) (bare, head string) {
	b.Helper()
	bare = filepath.Join(b.TempDir(), "origin.git")
	git(b, b.TempDir(), "init", "--quiet", "--bare", "--initial-branch=main", bare)
	var s strings.Builder
	s.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 4\nBase\n")
	for i := range *benchFiles {
		content := fmt.Sprintf("images:\n- name: registry.example/app%d\n  newTag: v1\n", i)
		fmt.Fprintf(&s, "M 100644 inline apps/app%d/overlays/%d/kustomization.yaml\ndata %d\n%s\n", i/20, i%20, len(content), content)
	}
	gitIn(b, bare, []byte(s.String()), "fast-import", "--quiet")
	return bare, git(b, bare, "rev-parse", "refs/heads/main")
}

// BenchmarkPromotionWrite is one edit of one file, committed and pushed: as
// Liftlock does it, and as a script with a shallow clone does.
func BenchmarkPromotionWrite(b *testing.B) {
	const file = "apps/app0/overlays/0/kustomization.yaml"
	b.Run("liftlock", func(b *testing.B) {
		bare, head := benchOrigin(b)
		m := open(b, Options{URL: "file://" + bare})
		mustFetch(b, m)
		i := 0
		for b.Loop() {
			i++
			sha, err := m.Write(b.Context(), CommitSpec{Parents: []string{head}, Base: head, When: when, Message: "Promote", Files: []FileWrite{{Path: file, Content: fmt.Appendf(nil, "newTag: v%d\n", i)}}})
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Push(b.Context(), PushSpec{Branch: fmt.Sprint("liftlock/", i), New: sha}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("clone", func(b *testing.B) {
		bare, _ := benchOrigin(b)
		i := 0
		for b.Loop() {
			i++
			work := filepath.Join(b.TempDir(), fmt.Sprint("work", i))
			git(b, b.TempDir(), "clone", "--quiet", "--depth=1", "--no-tags", "file://"+bare, work)
			if err := os.WriteFile(filepath.Join(work, file), fmt.Appendf(nil, "newTag: v%d\n", i), 0o644); err != nil {
				b.Fatal(err)
			}
			git(b, work, "commit", "--quiet", "--all", "--message=Promote")
			git(b, work, "push", "--quiet", "origin", fmt.Sprint("HEAD:refs/heads/clone/", i))
			if err := os.RemoveAll(work); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRead is reading every overlay of a commit, from a mirror that has
// just been opened.
func BenchmarkRead(b *testing.B) {
	bare, head := benchOrigin(b)
	m := open(b, Options{URL: "file://" + bare})
	mustFetch(b, m)
	for b.Loop() {
		m.caches.folders.Clear()
		m.caches.roots.Clear()
		files, err := m.Files(b.Context(), head, "")
		if err != nil || len(files) != *benchFiles {
			b.Fatal(len(files), err)
		}
		tree := m.Tree(head)
		for _, f := range files {
			if _, err := tree.ReadFile(f.Path); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(*benchFiles), "µs/file")
}
