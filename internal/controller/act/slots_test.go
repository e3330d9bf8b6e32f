package act

import (
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestSlots holds that nobody opens anything while another counts.
func TestSlots(t *testing.T) {
	eachKind(t, func(w *fixture) {
		take := func(slot string) func() {
			ok, err := w.store.TakeSlot(w.ctx(), slot, "another", store.DefaultLease)
			if err != nil || !ok {
				w.t.Fatal(slot, ok, err)
			}
			return func() { w.must(w.store.FreeSlot(w.ctx(), slot, "another")) }
		}
		ev, d, open := w.ready("2.0.0")
		own := openSlot + ev.Unit.Component
		free := take(own)
		w.mustBeStale(w.do(ev, d, open), "another run holds "+own)
		w.compare("pull requests", len(w.forge.pulls), 0)
		free()
		w.must(w.do(ev, d, open))
		ev, d = w.evaluate()
		w.must(w.do(ev, d, w.merge(ev, 1)))

		ev, d, revert := w.requestRevert()
		free = take(revertSlot)
		w.mustBeStale(w.do(ev, d, revert), "another run holds "+revertSlot)
		w.compare("pull requests", len(w.forge.pulls), 1)
		free()
		gone := revert
		gone.Members = []promotion.Member{{Component: "gone"}}
		w.mustBeStale(w.do(ev, d, gone), "gone is gone")
		for i, of := range []map[string]int{ev.Components[0].Facts.Limits.RevertsByEnv, ev.Components[0].Facts.Limits.RevertsByCluster} {
			of["elsewhere"] = i + 1 // another revert was open when this one was judged
			w.mustBeStale(w.do(ev, d, revert), "another revert was opened meanwhile")
			w.compare("it is held", w.held(revertSlot), false)
			delete(of, "elsewhere")
		}
		w.compare("pull requests", len(w.forge.pulls), 1)
		w.must(w.do(ev, d, revert))
	})
}

// TestOpenPerEnvironment holds what counts against the limit at the moment of opening.
func TestOpenPerEnvironment(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  limits: {openPerEnvironment: 1}\n", "web")
	ev, d, open := w.ready("2.0.0")
	pr := w.forge.add(forge.NewPullRequest{}, bot, "")
	for _, c := range []struct {
		name, branch, author string
		state                forge.State
		counts               bool
	}{
		{"another component's", "liftlock/shop/qa/api", bot, forge.Open, true},
		{"closed", "liftlock/shop/qa/api", bot, forge.Closed, false},
		{"somebody else's", "liftlock/shop/qa/api", "linus", forge.Open, false},
		{"a revert", "liftlock-revert/shop/qa/api/0123456789ab", bot, forge.Open, false},
		{"another environment's", "liftlock/shop/prod/api", bot, forge.Open, false},
		{"another pipeline's", "liftlock/other/qa/api", bot, forge.Open, false},
		{"its own", "liftlock/shop/qa/web", bot, forge.Open, false},
	} {
		*pr = forge.PullRequest{Number: 1, Branch: c.branch, Author: c.author, State: c.state, Base: "main", UpdatedAt: w.now}
		if _, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, 1); err != nil {
			t.Fatal(err)
		}
		s, err := actionSubject(ev, d, open)
		w.must(err)
		free, err := w.actor.takeOpenSlot(w.ctx(), &s)
		if c.counts {
			w.mustBeStale(err, "1 pull requests are open in qa by now")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else {
			w.compare("it is held", w.held(openSlot), true)
			free()
		}
		w.compare("it is free", w.held(openSlot), false)
	}
	for limit, counts := range map[int]bool{-1: false, 0: false, 1: true, 2: false} {
		*pr = forge.PullRequest{Number: 1, Branch: "liftlock/shop/qa/api", Author: bot, State: forge.Open, Base: "main", UpdatedAt: w.now}
		if _, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, 1); err != nil {
			t.Fatal(err)
		}
		ev.Pipeline.Spec.Limits.OpenPerEnvironment = limit
		if err := w.do(ev, d, open); counts {
			w.mustBeStale(err)
		} else {
			w.must(err)
		}
	}
}

// TestOthersAboutToOpen holds that who is about to open a pull request counts like one
// that is open, and keeps nobody waiting for whom there is room.
func TestOthersAboutToOpen(t *testing.T) {
	t.Parallel()
	for limit, fits := range map[int]bool{0: true, 1: false, 2: false, 3: true} {
		w := newFixture(t, "", "web")
		ev, d, open := w.ready("2.0.0")
		ev.Pipeline.Spec.Limits.OpenPerEnvironment = limit
		for _, slot := range []string{openSlot + "api", openSlot + "worker", "open|hub:acme/fleet|shop|prod|api", "open|hub:acme/fleet|shop|qa-eu|api"} {
			ok, err := w.store.TakeSlot(w.ctx(), slot, "another", store.DefaultLease)
			w.must(err)
			w.compare("it is free", ok, true)
		}
		if err := w.do(ev, d, open); fits {
			w.must(err)
			continue
		} else {
			w.mustBeStale(err, "2 pull requests are open in qa by now, or about to be")
		}
		n, err := w.store.CountSlots(w.ctx(), openSlot)
		w.must(err)
		w.compare("slots", n, 2) // its own is given back
		w.now = w.now.Add(store.DefaultLease)
		w.must(w.do(ev, d, open))
	}
}

// TestBatchPassesTheLimit holds that the one pull request of all opens whatever the limit.
func TestBatchPassesTheLimit(t *testing.T) {
	t.Parallel()
	w := newFixture(t, kindsOfBatch["several"].spec+"  limits: {openPerEnvironment: 1}\n", "api", "web")
	ev, d, open := w.ready("2.0.0")
	w.forge.add(forge.NewPullRequest{Branch: "liftlock/shop/qa/api", Base: "main"}, bot, "")
	if _, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, 1); err != nil {
		t.Fatal(err)
	}
	w.must(w.do(ev, d, open))
	w.compare("it is open", w.forge.pulls[2].Branch, "liftlock/shop/qa/batch")
	w.compare("it is held", w.held(openSlot), false)
}

// held says that somebody has a slot whose name begins like that.
func (f *fixture) held(slot string) bool {
	f.t.Helper()
	n, err := f.store.CountSlots(f.ctx(), slot)
	f.must(err)
	return n > 0
}
