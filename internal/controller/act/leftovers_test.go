package act

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// leave has a branch of ours left over by a merge.
func (f *fixture) leave() (branch, head string) {
	f.t.Helper()
	n := f.open("2.0.0")
	ev, d := f.evaluate()
	defer f.refuseDeletions()()
	f.must(f.do(ev, d, f.merge(ev, n)))
	return f.forge.pulls[n].Branch, f.forge.pulls[n].Head
}

// refuseDeletions has the forge refuse that branches are deleted, until end is called.
func (f *fixture) refuseDeletions() (end func()) {
	f.forge.undeleted, f.refusePushes = true, true
	return func() { f.forge.undeleted, f.refusePushes = false, false }
}

func TestDeleteLeftovers(t *testing.T) {
	eachKind(t, func(w *fixture) {
		branch, head := w.leave()
		w.compare("left over", w.remoteHead(branch), head)
		ev, _ := w.evaluate()
		mode := ev.Pipeline.Spec.Mode
		ev.Pipeline.Spec.Mode = "observe"
		w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
		w.compare("while it only observes", w.remoteHead(branch), head)
		ev.Pipeline.Spec.Mode = mode
		for range 2 {
			w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
			w.compare("the branch", w.remoteHead(branch), "")
		}
		w.compare("main and warnings", []any{w.remoteHead("main"), w.logs.FilterMessageSnippet("can't be deleted").Len()}, []any{head, 0})
	})
}

// TestDeleteLeftoversOnlyWhereTheyWere holds that a branch is only deleted where it was
// seen, and that a refused deletion is not asked for again.
func TestDeleteLeftoversOnlyWhereTheyWere(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	branch, head := w.leave()
	ev, _ := w.evaluate()
	info, err := w.repo.Mirror.Commit(w.ctx(), head)
	w.must(err)
	w.beforePush = func() { w.setRemoteHead(branch, info.Parents[0]) }
	w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
	w.compare("somebody pushed", w.remoteHead(branch), info.Parents[0])
	w.setRemoteHead(branch, head)

	pushes := 0
	w.beforePush = func() { pushes++ }
	end := w.refuseDeletions()
	for range 2 {
		w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
	}
	w.compare("warnings", w.logs.FilterMessageSnippet("can't be deleted").Len(), 1)
	w.compare("a refused deletion", []any{pushes, w.remoteHead(branch)}, []any{1, head})
	end()
	w.start() // another process may
	ev, _ = w.evaluate()
	w.beforePush = func() { w.breakRemote() }
	if err := w.actor.DeleteLeftovers(w.ctx(), ev); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("a remote that is away: %v", err)
	}
	w.mendRemote()
	w.beforePush = nil
	w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
	w.compare("the branch", w.remoteHead(branch), "")
	w.compare("it was merged", w.forge.pulls[1].State, forge.Merged)
}

// TestBranchOfUnknownPull holds that a branch is kept whose pull request the store was never
// told of: the forge would close it.
func TestBranchOfUnknownPull(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d, open := w.ready("2.0.0")
		w.faults.Hook = func(call string) {
			if strings.Contains(call, "create") {
				w.faults.At, w.faults.After = len(w.faults.Calls), true
			}
		}
		if err := w.do(ev, d, open); !errors.Is(err, faulttest.ErrInjected) {
			w.t.Fatalf("opened, and the answer was lost: %v", err)
		}
		w.faults = faulttest.Faults{}
		const n = 1
		branch, head := w.forge.pulls[n].Branch, w.forge.pulls[n].Head
		w.mustBeStale(w.actor.DeleteLeftovers(w.ctx(), ev), "wasn't known")
		w.compare("the branch and its pull request", []any{w.remoteHead(branch), w.forge.pulls[n].State, w.cachedPull(n).State}, []any{head, forge.Open, forge.Open})
		w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
		w.compare("the branch", w.remoteHead(branch), head)
	})
}
