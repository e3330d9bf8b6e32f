package git

import (
	"context"
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
		if w.compareMerge(rt) {
			clean++
		} else {
			conflicting++
		}
	})
	t.Logf("%d merges were clean, %d had conflicts", clean, conflicting)
}

// TestMergeWhereBothRemove holds that a file which both sides removed leaves alone what one
// of them put in its place.
func TestMergeWhereBothRemove(t *testing.T) {
	t.Parallel()
	remove := FileWrite{Path: "a", Delete: true}
	inPlace, beside := FileWrite{Path: "a/b", Content: []byte("x")}, FileWrite{Path: "a/c", Content: []byte("y")}
	for name, sides := range map[string][2][]FileWrite{
		"a folder of ours":   {{remove, inPlace}, {remove}},
		"a folder of theirs": {{remove}, {remove, inPlace}},
		"folders of both":    {{remove, inPlace}, {remove, beside}},
		"nothing":            {{remove}, {remove}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwins(t)
			if programsOf(w.cli).git.isOlderThan(mergeTreeSince) {
				t.Skip("this git can't merge without a working tree")
			}
			w.write(t, CommitSpec{Message: "base", When: when, Files: []FileWrite{{Path: "a", Content: []byte("one\n")}, {Path: "d", Content: []byte("two\n")}}})
			parent := w.commits[0].SHA
			for i, files := range sides {
				w.write(t, CommitSpec{Parents: []string{parent}, Base: parent, Message: []string{"ours", "theirs"}[i], When: when, Files: files})
			}
			if !w.compareMerge(t) {
				t.Error("there are conflicts")
			}
		})
	}
}

// compareMerge merges the third commit into the second by both; false: both find conflicts.
func (tw *twins) compareMerge(t rapid.TB) (isClean bool) {
	t.Helper()
	r := tw.memory.engine.(*memoryMirror).remote
	tw.importAll(t)
	ours, theirs := tw.commits[1].SHA, tw.commits[2].SHA
	p := programsOf(tw.cli)
	ctx := context.Background()
	out, err := p.runGit(ctx, p.gitCommand("merge-tree", "--write-tree", "--name-only", "--no-messages", ours, theirs))
	if err != nil && exitCode(err) != 1 {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	for _, c := range tw.commits {
		if err := r.engine.learn(c.SHA); err != nil {
			t.Fatal(err)
		}
	}
	tree, conflicts, merr := r.Merge(ctx, ours, theirs)
	if merr != nil {
		t.Fatal(merr)
	}
	if isClean = err == nil; isClean && (tree != want[0] || len(conflicts) > 0) {
		t.Fatalf("git makes %s, in memory it is %s with the conflicts %v\n%s", want[0], tree, conflicts, tw)
	}
	if !isClean && (tree != "" || len(conflicts) == 0 || !slices.IsSorted(conflicts)) {
		t.Fatalf("git finds the conflicts %v, in memory it is %s, %v\n%s", want[1:], tree, conflicts, tw)
	}
	return isClean
}
