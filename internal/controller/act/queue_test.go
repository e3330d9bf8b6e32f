package act

import (
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestMergeByQueue has a head join the forge's queue, where nothing lands and what it was judged
// by is kept, and takes it out again.
func TestMergeByQueue(t *testing.T) {
	eachKind(t, func(w *fixture) {
		w.forge.queues = true
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		before := w.remoteHead("main")
		merging := func(c string) bool {
			_, ok, err := w.store.Record(w.ctx(), facts.Merging.Key(facts.OfMerge(w.unit(c), n)))
			w.must(err)
			return ok
		}
		for range 2 { // done again it is the same
			w.must(w.do(ev, d, w.merge(ev, n)))
			w.compare("what happened", []any{w.remoteHead("main"), w.forge.pulls[n].State, w.forge.pulls[n].Queue, len(w.events("merged"))}, []any{before, forge.Open, forge.Queued, 0})
		}
		for _, c := range w.names {
			w.compare("the row of "+c, w.promotionOf(c, n).State, promotion.Opened)
			w.compare("by what it is judged is kept of "+c, merging(c), true)
		}
		ev, d = w.evaluate()
		w.compare("in the queue", ev.OpenPulls[n].Queued, true)
		w.compare("counts as merged", ev.Components[0].Facts.Limits.QueuedMerges, []promotion.QueuedMerge{{Pull: n, At: w.now.Add(-time.Second)}})
		_, members := w.merge(ev, n).Subject()
		leave := promotion.LeaveQueue{Environment: "qa", Pull: n, Members: members, Why: "it is held"}
		w.must(w.do(ev, d, leave))
		w.compare("it left", w.forge.pulls[n].Queue, forge.NotQueued)
		w.compare("events", w.events("unqueued"), w.each("%s: #1 left the forge's merge queue: it is held"))
		for _, c := range w.names {
			w.compare("by what it was judged is gone of "+c, merging(c), false)
		}
		kept := func() bool {
			_, ok, err := w.store.Record(w.ctx(), pullKey("joined-queue", w.repo.ID, n))
			w.must(err)
			return ok
		}
		joined := func() bool {
			ev, _ := w.evaluate()
			return !ev.OpenPulls[n].JoinedQueueAt.IsZero()
		}
		drop := func() { // as the forge does
			w.must(w.do(ev, d, w.merge(ev, n)))
			w.forge.pulls[n].Queue, w.forge.pulls[n].UpdatedAt = forge.NotQueued, w.now
			w.compare("it is known that it joined", joined(), true)
		}
		w.compare("we took it out", joined(), false)
		drop()
		ev, _ = w.evaluate()
		w.compare("what was dropped isn't about to be merged", len(ev.Components[0].Facts.Limits.QueuedMerges), 0)
		w.must(w.do(ev, d, promotion.RejoinQueue{Environment: "qa", Pull: n}))
		w.compare("a person has it tried again", joined(), false)
		w.forge.refuse = &forge.Error{Op: "merge", Kind: forge.ErrNotMergeable}
		if err := w.do(ev, d, w.merge(ev, n)); !errors.Is(err, forge.ErrNotMergeable) {
			w.t.Errorf("what is refused: %v", err)
		}
		w.compare("what is refused didn't join", joined(), false)
		for _, c := range w.names {
			w.compare("by what that was judged is gone of "+c, merging(c), false)
		}
		w.forge.refuse = nil
		drop()
		w.release("3.0.0")
		w.verifyDev()
		ev, d = w.evaluate()
		w.must(w.do(ev, d, decided[promotion.Replace](w, d)))
		w.compare("composed anew, it may be the same head again", kept(), false)
		ev, d = w.evaluate()
		drop()
		w.forge.queues = false
		w.must(w.do(ev, d, w.merge(ev, n)))
		err := w.do(ev, d, leave)
		if !errors.Is(err, ErrStale) {
			w.t.Errorf("leaving with what has landed: %v", err)
		}
		ev, _ = w.evaluate()
		w.compare("what is open", len(ev.OpenPulls), 0)
		w.compare("what has landed is kept as joined", kept(), false)
	})
}
