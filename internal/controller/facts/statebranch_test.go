package facts

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestFindHolds finds the holds at the state branch's head, and, where somebody deleted the branch, at
// the commit that it was last seen at.
func TestFindHolds(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	expect := func(what, head, commit string) {
		t.Helper()
		gotHead, gotCommit, err := w.o.History.FindHolds(w.ctx(), w.repo)
		if err != nil || gotHead != head || gotCommit != commit {
			t.Errorf("%s: the head %q, the holds at %q, %v; want %q and %q", what, gotHead, gotCommit, err, head, commit)
		}
	}
	expect("there never was a branch", "", "")
	sha := w.commitTo(storyBot, history.StateBranch, "", "Hold", map[string]string{"README.md": "x"})
	expect("there is one", sha, sha)
	w.putRecord(branch.SeenHeads.Key(record.Repository(w.repo.ID)), map[string]string{"main": w.head("main"), history.StateBranch: sha})
	w.must(w.forge.Push(storyRepo, "mallory", history.StateBranch, "", true))
	w.fetch()
	expect("it was deleted", "", sha)
	if seen, err := w.o.History.SeenHeads(w.ctx(), w.repo); err != nil || len(seen) != 2 || seen["main"] != w.head("main") {
		t.Errorf("seen were %v, %v", seen, err)
	}
	w.putRecord(branch.SeenHeads.Key(record.Repository(w.repo.ID)), map[string]string{"main": w.head("main")})
	expect("it was deleted before anybody looked", "", "")
}

// TestOwnState finds the newest commit of the state branch that Liftlock made: what others pushed over it, took
// the branch back to, or signed with another secret lifts nothing.
func TestOwnState(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	sign := func(parent string, signer branch.MarkSigner, files map[string]string) string {
		t.Helper()
		unsigned, err := w.repo.Mirror.Commit(w.ctx(), w.commitTo(storyBot, history.StateBranch, parent, "Hold", files))
		w.must(err)
		return w.commitTo(storyBot, history.StateBranch, parent, "Hold\n\nLiftlock-State: "+signer.SignState(w.repo.ID, parent, unsigned.Tree)+"\n", files)
	}
	const file = "holds/shop/component/web.yaml"
	hold := func(by string) map[string]string {
		return map[string]string{file: "by: " + by + "\nreason: load test\nat: \"2026-01-02T03:04:05Z\"\n"}
	}
	var known string
	expect := func(what, own string, holders ...string) {
		t.Helper()
		w.must(w.store.Tx(w.ctx(), "known", func(tx *store.Tx) error {
			return branch.StateCommits.Put(w.ctx(), tx, record.Repository(w.repo.ID), known)
		}))
		head, got, err := w.o.History.FindHolds(w.ctx(), w.repo)
		if err != nil || got != own {
			t.Errorf("%s: %s is Liftlock's, %v; want %s", what, got, err, own)
		}
		facts := w.o.History.HoldsOf(w.repo, w.unit("web"), head, got)
		var by []string
		for _, h := range facts.Value {
			by = append(by, h.By)
		}
		if !facts.OK || strings.Join(by, " ") != strings.Join(holders, " ") {
			t.Errorf("%s: it is held by %q: %s", what, by, facts.Err)
		}
		all, err := w.o.History.ReadHoldFile(w.ctx(), w.repo, file)
		if err != nil || len(all) != len(holders) {
			t.Errorf("%s: its file has %+v, %v", what, all, err)
		}
	}
	person := w.commitTo("ada", history.StateBranch, "", "By hand", hold("ada"))
	expect("a person's, when nobody has looked", person, "ada")
	first := sign(person, w.repo.Marks, hold("grace"))
	expect("ours", first, "grace")
	removed := w.commitTo("mallory", history.StateBranch, first, "Tidy up", map[string]string{file: ""})
	expect("a push that takes it off", first, "grace")
	known = first
	expect("the same, as the store knows it", first, "grace")
	w.commitTo("mallory", history.StateBranch, removed, "Hold it", hold("mallory"))
	expect("a push that adds another", first, "mallory", "grace")
	forged := sign(first, newTestSigner(t, "another"), map[string]string{file: ""})
	expect("a push with another secret's signature", first, "grace")
	known = ""
	for above, n := removed, 0; n <= branch.MaxStateCommits; n++ {
		above = w.commitTo("mallory", history.StateBranch, above, "Tidy up more", map[string]string{"README.md": strings.Repeat("x", n)})
	}
	expect("many pushes that bury ours, when nobody has looked", first, "grace")
	known = first
	second := sign(first, w.repo.Marks, hold("linus"))
	expect("another process's", second, "linus")
	known = second
	w.must(w.forge.Push(storyRepo, "mallory", history.StateBranch, first, true))
	w.fetch()
	expect("it was taken back to an older one of ours", second, "grace", "linus")
	w.must(w.forge.Push(storyRepo, "mallory", history.StateBranch, forged, true))
	w.fetch()
	expect("it was taken elsewhere", second, "linus")
	known = landedHash
	head, own, err := w.o.History.FindHolds(w.ctx(), w.repo)
	w.must(err)
	if own != second {
		t.Errorf("%s is Liftlock's", own)
	}
	if h := w.o.History.HoldsOf(w.repo, w.unit("web"), head, landedHash); h.OK || !strings.Contains(h.Err, landedHash) {
		t.Errorf("what nobody has any more holds as %+v", h)
	}
}
