package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mergeTreeSince is the first git that merges without a working tree.
var mergeTreeSince = version{2, 38}

// TestMergeAsGitDoes compares merges with git's, without renamed files, which git finds.
func TestMergeAsGitDoes(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	if programsOf(w.cli).git.isOlderThan(mergeTreeSince) {
		t.Skip("this git can't merge without a working tree")
	}
	r := w.memory.engine.(*memoryMirror).remote
	clean, conflicting := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w.commits = nil
		base := CommitSpec{Message: fmt.Sprint(rapid.IntRange(0, 1<<30).Draw(rt, "nonce")), When: when}
		for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(twinPaths), 1, 4, rapid.ID).Draw(rt, "files") {
			base.Files = append(base.Files, FileWrite{Path: p, Content: []byte(drawEdit(rt, ""))})
		}
		w.write(rt, base)
		parent := w.commits[0].SHA
		for _, side := range []string{"ours", "theirs"} {
			s := CommitSpec{Parents: []string{parent}, Base: parent, Message: side, When: when}
			have := w.readFiles(rt, parent)
			s.Files = drawWrites(rt, have)
			for i := range s.Files {
				if f := &s.Files[i]; have[f.Path] == "" && !f.Delete {
					f.Content = []byte("new " + f.Path) // or git would find a renamed file
				}
			}
			if f := base.Files[0]; rapid.Bool().Draw(rt, "the same file") {
				text := drawEdit(rt, string(f.Content))
				if rapid.Bool().Draw(rt, "twice") {
					text = drawEdit(rt, text)
				}
				s.Files = []FileWrite{{Path: f.Path, Content: []byte(text)}}
			}
			if rapid.IntRange(0, 9).Draw(rt, "folder") == 0 { // something else where a file or a folder was
				s.Files = []FileWrite{{Path: "a", Delete: true}, {Path: "a/b", Content: []byte("x")}}
			}
			w.write(rt, s)
		}
		w.importAll(rt)
		ours, theirs := w.commits[1].SHA, w.commits[2].SHA
		p := programsOf(w.cli)
		out, err := p.runGit(t.Context(), p.gitCommand("merge-tree", "--write-tree", "--name-only", "--no-messages", ours, theirs))
		if err != nil && exitCode(err) != 1 {
			rt.Fatal(err)
		}
		want := strings.Fields(string(out))
		for _, c := range w.commits {
			if err := r.engine.learn(c.SHA); err != nil {
				rt.Fatal(err)
			}
		}
		tree, conflicts, merr := r.Merge(t.Context(), ours, theirs)
		if merr != nil {
			rt.Fatal(merr)
		}
		if err == nil {
			clean++
			if tree != want[0] || len(conflicts) > 0 {
				rt.Fatalf("git makes %s, in memory it is %s with the conflicts %v\n%s", want[0], tree, conflicts, w)
			}
			return
		}
		conflicting++
		if tree != "" || len(conflicts) == 0 || !slices.IsSorted(conflicts) {
			rt.Fatalf("git finds the conflicts %v, in memory it is %s, %v\n%s", want[1:], tree, conflicts, w)
		}
	})
	t.Logf("%d merges were clean, %d had conflicts", clean, conflicting)
}
