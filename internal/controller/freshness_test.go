package controller

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestTwoProcessesJudgeAlike holds that a process judges on what another one fetched:
// the push's event woke the repository's key there, and the unit's key here.
func TestTwoProcessesJudgeAlike(t *testing.T) {
	one := newFixture(t, "", manualQA, "web")
	one.must(one.run(wake.ForUnit(one.unit("web"))))
	two := &fixture{t: t, forge: one.forge, newProcess: one.newProcess, clock: one.clock, health: map[string]string{}}
	two.addProcess(one.opts.Store, "somebody else")
	two.must(two.run(wake.ForUnit(two.unit("web"))))
	for _, tag := range []string{"2.0.0", "3.0.0", "4.0.0"} {
		one.release(tag, "web") // the first process fetches
		for range 6 {
			if err := two.run(wake.ForUnit(two.unit("web"))); err != nil && !isStale(err) {
				t.Fatal(err)
			}
		}
		if all := one.pulls(); len(all) != 1 || !strings.Contains(all[0].Title, tag) {
			t.Fatalf("after %s there are %+v", tag, all)
		}
	}
	fetched := func() string { two.fresh.mu.Lock(); defer two.fresh.mu.Unlock(); return two.fresh.known[two.repo.ID] }
	before := fetched()
	two.must(two.run(wake.ForUnit(two.unit("web"))))
	if fetched() != before {
		t.Error("it fetches although nothing moved")
	}
}

// TestOldMirrorIsFetchedFirst holds that a process which can't fetch what another one has seen
// judges nothing, and says why.
func TestOldMirrorIsFetchedFirst(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	for _, k := range []wake.Key{wake.ForUnit(w.unit("web")), wake.ForPull(w.repo.ID, p.Number)} {
		w.must(movedMarks.Put(t.Context(), w.opts.Store, record.Repository(w.repo.ID), "another|"+k.String()))
		w.injected.Once = map[string]bool{}
		w.must(w.run(k))
		if n := len(w.injected.Once); n < 5 {
			t.Errorf("%s: only %d calls failed", k, n)
		}
	}
}

// TestProcessFetchesUnknownCommits has a process whose mirror lacks the commit with which Argo CD
// compares. It fetches itself, and looks again at once: another process may serve the repository's
// own key, which brings nothing here.
func TestProcessFetchesUnknownCommits(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	look := func(want bool, what string) {
		t.Helper()
		next, err := w.runKey(t.Context(), wake.ForUnit(w.unit("web")).String())
		if again := !next.IsZero() && !next.After(w.clock.Now()); err != nil || again != want {
			t.Errorf("%s: it looks again at once: %t, %v", what, again, err)
		}
	}
	look(false, "before")
	landed, err := w.forge.CommitAs(repoName, "linus", "main", "Docs", map[string]string{"README.md": "new"})
	w.must(err)
	w.revision = landed
	look(true, "Argo CD is ahead")
	if has, err := w.repo.Mirror.Has(t.Context(), landed); err != nil || !has {
		t.Errorf("it wasn't fetched: %t, %v", has, err)
	}
	look(false, "it is here")
	w.revision = strings.Repeat("e", 40)
	look(true, "it may be there")
	look(false, "no fetch brings it")
}

// TestMarksOfTwoProcesses holds that a mark that was left over another's counts as no process's:
// this mirror lacks what the other saw meanwhile.
func TestMarksOfTwoProcesses(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	leave := func(f *freshness, before string) (mark string) {
		w.must(w.opts.Store.Tx(t.Context(), "mark", func(tx *store.Tx) (err error) {
			mark, err = f.leaveMark(t.Context(), tx, w.repo, before)
			return err
		}))
		return mark
	}
	a, b := newFreshness("a"), newFreshness("b")
	first, err := w.fetch(t.Context(), w.repo) // both have fetched after this one
	w.must(err)
	if left := leave(a, first); left == "" {
		t.Error("the first to leave a mark doesn't know it")
	}
	if left := leave(b, first); left != "" {
		t.Errorf("who left %q over another's believes to know both", left)
	}
	left := leave(a, "b|1")
	if a.remember(w.repo, left); !a.knows(w.repo, left) || b.knows(w.repo, left) {
		t.Errorf("who knows %q: a %t, b %t", left, a.knows(w.repo, left), b.knows(w.repo, left))
	}
}
