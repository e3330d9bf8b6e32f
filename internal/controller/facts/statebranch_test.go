package facts

import (
	"testing"

	"github.com/liftlock/liftlock/internal/appset/history"
)

// TestFindHolds finds the holds at the state branch's head, and, where somebody deleted the branch, at
// the commit that it was last seen at.
func TestFindHolds(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	expect := func(what, head, commit string) {
		t.Helper()
		gotHead, gotCommit, err := w.o.FindHolds(w.ctx(), w.repo)
		if err != nil || gotHead != head || gotCommit != commit {
			t.Errorf("%s: the head %q, the holds at %q, %v; want %q and %q", what, gotHead, gotCommit, err, head, commit)
		}
	}
	expect("there never was a branch", "", "")
	sha := w.commitTo(storyBot, history.StateBranch, "", "Hold", map[string]string{"README.md": "x"})
	expect("there is one", sha, sha)
	w.putState(SeenHeadsKey(w.repo.ID), map[string]string{"main": w.head("main"), history.StateBranch: sha})
	w.must(w.forge.Push(storyRepo, "mallory", history.StateBranch, "", true))
	w.fetch()
	expect("it was deleted", "", sha)
	if seen, err := w.o.SeenHeads(w.ctx(), w.repo); err != nil || len(seen) != 2 || seen["main"] != w.head("main") {
		t.Errorf("seen were %v, %v", seen, err)
	}
	w.putState(SeenHeadsKey(w.repo.ID), map[string]string{"main": w.head("main")})
	expect("it was deleted before anybody looked", "", "")
}
