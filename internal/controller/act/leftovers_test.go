package act

import (
	"errors"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// leave has a branch of ours left over by a merge.
func (w *fixture) leave() (branch, head string) {
	w.t.Helper()
	w.forge.undeleted = true
	n := w.land("2.0.0")
	return w.forge.pulls[n].Branch, w.forge.pulls[n].Head
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
	w.refusePushes = true
	for range 2 {
		w.must(w.actor.DeleteLeftovers(w.ctx(), ev))
	}
	w.compare("warnings", w.logs.FilterMessageSnippet("can't be deleted").Len(), 1)
	w.compare("a refused deletion", []any{pushes, w.remoteHead(branch)}, []any{1, head})
	w.refusePushes = false
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
