package git

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkMemory is what a simulation of long histories lives on: 5,000 merged pull
// requests, each of one commit, over 50 files.
func BenchmarkMemory(b *testing.B) {
	ctx := b.Context()
	r := NewMemoryRemote()
	m := OpenMemory(r, MemoryOptions{Author: remoteIdent})
	write := func(s CommitSpec) string {
		sha, err := m.Write(ctx, s)
		if err != nil {
			b.Fatal(err)
		}
		return sha
	}
	path := func(i int) string { return fmt.Sprintf("apps/app-%d/qa/kustomization.yaml", i%50) }
	var first []FileWrite
	for i := range 50 {
		first = append(first, FileWrite{Path: path(i), Content: []byte("images:\n  - name: web\n    newTag: v0\n")})
	}
	head := write(CommitSpec{Message: "Overlays", When: when, Files: first})
	line := []string{head}
	at := when
	promote := func(i int) (proposed, merged string) {
		at = at.Add(time.Minute)
		file := FileWrite{Path: path(i), Content: fmt.Appendf(nil, "images:\n  - name: web\n    newTag: v%d\n", i)}
		proposed = write(CommitSpec{Parents: []string{head}, Base: head, Message: "Promote\n\nLiftlock-Kind: promotion", When: at, Files: []FileWrite{file}})
		return proposed, write(CommitSpec{Parents: []string{head, proposed}, Base: proposed, Message: "Merge", When: at})
	}
	var proposed string
	for i := range 5000 {
		proposed, head = promote(i)
		line = append(line, head)
	}
	loose := write(CommitSpec{Parents: []string{line[4000]}, Base: line[4000], Message: "Not merged", When: at, Files: first})
	if err := m.Push(ctx, PushSpec{Branch: "main", New: head}); err != nil {
		b.Fatal(err)
	}
	fetched := OpenMemory(r, MemoryOptions{Author: remoteIdent})
	if _, err := fetched.Fetch(ctx); err != nil {
		b.Fatal(err)
	}
	engine := m.engine // past the caches
	for name, call := range map[string]func(i int) error{
		"a promotion": func(i int) error {
			old := head
			proposed, head = promote(i)
			err := m.Push(ctx, PushSpec{Branch: "main", New: head, Old: old})
			if err == nil {
				_, err = fetched.Fetch(ctx)
			}
			return err
		},
		"fetch of nothing": func(int) error { _, err := fetched.Fetch(ctx); return err },
		"the last of a path": func(i int) error {
			_, err := m.Log(ctx, LogQuery{From: head, FirstParent: true, Paths: []string{path(i)}, Limit: 5})
			return err
		},
		"the last promotions of a path": func(i int) error {
			_, err := m.Log(ctx, LogQuery{From: head, Paths: []string{path(i)}, Grep: "Liftlock-Kind: ", Limit: 5})
			return err
		},
		"the last 20 since long ago": func(int) error {
			_, err := m.Log(ctx, LogQuery{From: head, Until: line[0], FirstParent: true, Limit: 20})
			return err
		},
		"all of the line":      func(int) error { _, err := m.Log(ctx, LogQuery{From: head, FirstParent: true}); return err },
		"an ancestor":          func(int) error { _, err := engine.isAncestor(ctx, line[1], head); return err },
		"a merged head":        func(int) error { _, err := engine.isAncestor(ctx, proposed, head); return err },
		"no ancestor, of 1000": func(int) error { _, err := engine.isAncestor(ctx, loose, line[5000]); return err },
		"merge base":           func(int) error { _, _, err := engine.findMergeBase(ctx, proposed, head); return err },
		"changed":              func(int) error { _, err := engine.listChanges(ctx, line[4990], head); return err },
		"patch id":             func(int) error { _, err := m.PatchID(ctx, line[4999], line[5000]); return err },
		"read a file":          func(i int) error { _, err := m.Tree(head).ReadFile(path(i)); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				if err := call(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
