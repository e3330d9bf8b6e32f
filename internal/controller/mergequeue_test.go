package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestMergesFollowAtOnce holds that pull requests that wait for their merge are merged one
// after the other. Each merge makes the forge compute anew whether the next one can be merged, and
// one that left the queue for that would be back after minutes.
func TestMergesFollowAtOnce(t *testing.T) {
	components := []string{"api", "web", "worker"}
	w := newFixture(t, "", autoQA, components...)
	for _, c := range components {
		w.must(w.run(wake.ForUnit(w.unit(c)))) // the baseline is written down
	}
	w.release("2.0.0", components...)
	for _, c := range components {
		w.open(c)
	}
	for _, c := range components {
		w.must(w.enqueueMerge(t.Context(), w.unit(c), false))
	}
	w.must(w.run(wake.ForMerge(w.repo.ID)))
	for _, p := range w.pulls() {
		if !p.Merged {
			t.Errorf("#%d %s is not merged", p.Number, p.Branch)
		}
	}
}

// TestMergesWaitTheirTurn holds that the forge isn't asked again and again whether waiting pull
// requests can be merged while others are. Each merge has it compute anew, and the calls for
// hundreds would grow with the square of their number.
func TestMergesWaitTheirTurn(t *testing.T) {
	components := []string{"api", "jobs", "mail", "web", "worker"}
	w := newEmulatedFixture(t, "", autoQA, components...)
	for _, c := range components {
		w.must(w.run(wake.ForUnit(w.unit(c)))) // the baseline is written down
	}
	w.release("2.0.0", components...)
	for _, c := range components {
		w.open(c)
	}
	w.must(w.enqueueMerge(t.Context(), w.unit("api"), false))
	w.emulated.ResetCalls()
	for range 5 {
		for _, c := range components[1:] {
			w.must(w.run(wake.ForUnit(w.unit(c))))
		}
	}
	if n := w.emulated.Calls()["GET /repos/{owner}/{repo}/pulls/{number}"]; n < 1 || n > len(components) {
		t.Errorf("pull requests are read %d times while another comes first", n)
	}
	queue, err := w.opts.Store.MergeQueue(t.Context(), w.repo.ID)
	if w.must(err); len(queue) != len(components) {
		t.Errorf("they don't wait their turn: %v", queue)
	}
	w.must(w.run(wake.ForMerge(w.repo.ID)))
	for _, p := range w.pulls() {
		if !p.Merged {
			t.Errorf("#%d %s is not merged", p.Number, p.Branch)
		}
	}
}

// TestRevertsMergeFirst holds that a revert is merged before all waiting promotions of its
// repository, also one that comes up while those are merged one after the other.
func TestRevertsMergeFirst(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "jobs", "mail", "web")
	enqueue := func(component string, revert bool) {
		t.Helper()
		d := &promotion.Decision{Actions: []promotion.Action{promotion.Merge{Environment: "qa", Revert: revert}}}
		_, failed := w.performSteps(t.Context(), &facts.Evaluation{Basis: branch.Basis{Unit: w.unit(component)}}, d, false)
		w.must(failed.joined())
	}
	enqueue("mail", false)
	enqueue("api", false)
	enqueue("web", true)
	queued, err := w.opts.Store.MergeQueue(t.Context(), w.repo.ID)
	w.must(err)
	served := map[string]bool{}
	next := func() string {
		t.Helper()
		name, err := w.nextMerge(t.Context(), w.repo.ID, queued, served)
		w.must(err)
		served[name] = true
		u, _ := wake.ParseUnitName(name)
		return u.Component
	}
	order := []string{next(), next()}
	enqueue("jobs", true)
	if order = append(order, next(), next(), next()); !slices.Equal(order, []string{"web", "mail", "jobs", "api", ""}) {
		t.Errorf("the turns are %q", order)
	}
	w.must(w.run(wake.ForMerge(w.repo.ID))) // there is nothing to be merged
	left, err := queuedReverts.List(t.Context(), w.opts.Store, record.Within{Repo: w.repo.ID})
	w.must(err)
	if queued, err = w.opts.Store.MergeQueue(t.Context(), w.repo.ID); err != nil || len(queued)+len(left) != 0 {
		t.Errorf("what had its turn is still in the queue: %q %v %v", queued, left, err)
	}
}

// TestMergesOfAnotherProcess holds that a process doesn't merge while another one does, and tries
// again soon.
func TestMergesOfAnotherProcess(t *testing.T) {
	w := newFixture(t, "", autoQA, "web")
	w.openOne("web", "2.0.0", "web")
	w.must(w.enqueueMerge(t.Context(), w.unit("web"), false))
	slot := "merge|" + w.repo.ID
	if ok, err := w.opts.Store.TakeSlot(t.Context(), slot, "another", time.Hour); err != nil || !ok {
		t.Fatalf("the turn can't be taken: %t, %v", ok, err)
	}
	next, err := w.runKey(t.Context(), wake.ForMerge(w.repo.ID).String())
	queue, qerr := w.opts.Store.MergeQueue(t.Context(), w.repo.ID)
	if err != nil || qerr != nil || !next.Equal(w.clock.Now().Add(minRetryDelay)) || len(queue) != 1 {
		t.Errorf("it runs again after %s with %q queued, %v %v", next.Sub(w.clock.Now()), queue, err, qerr)
	}
	w.must(w.opts.Store.FreeSlot(t.Context(), slot, "another"))
	w.must(w.run(wake.ForMerge(w.repo.ID)))
	if ok, err := w.opts.Store.TakeSlot(t.Context(), slot, "another", time.Hour); err != nil || !ok {
		t.Errorf("the turn isn't given back: %t, %v", ok, err)
	}
}

// TestMergesEndWithTheForgesLimit holds that no other merge is tried when the forge allows no more
// calls. One that fails for another reason keeps no other from being tried, and unmerged ones stay
// in the queue.
func TestMergesEndWithTheForgesLimit(t *testing.T) {
	for kind, tries := range map[error]int{forge.ErrRateLimited: 1, forge.ErrForbidden: 2} {
		t.Run(kind.Error(), func(t *testing.T) {
			w := newFixture(t, "", autoQA, "api", "web")
			for _, c := range []string{"api", "web"} {
				w.must(w.run(wake.ForUnit(w.unit(c))))
			}
			w.release("2.0.0", "api", "web")
			for _, c := range []string{"api", "web"} {
				w.open(c)
				w.must(w.enqueueMerge(t.Context(), w.unit(c), false))
			}
			w.fail("merge acme", kind)
			if err := w.run(wake.ForMerge(w.repo.ID)); !errors.Is(err, kind) || !strings.Contains(err.Error(), "merge for ") {
				t.Errorf("it ended with %v", err)
			}
			queue, err := w.opts.Store.MergeQueue(t.Context(), w.repo.ID)
			if w.must(err); len(queue) != 2 || w.callsFor("merge acme") != tries {
				t.Errorf("after %d tries the queue is %q", w.callsFor("merge acme"), queue)
			}
		})
	}
}

// TestMergesOfUnitsThatAreGone holds that who queued and isn't there any more, or moves with others by
// now, leaves the queue without a failure.
func TestMergesOfUnitsThatAreGone(t *testing.T) {
	for name, c := range map[string]struct{ spec, component string }{"gone": {"", "gone"}, "moves with others": {"  batch: environment\n", "web"}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, autoQA, "web")
			w.must(w.enqueueMerge(t.Context(), w.unit(c.component), true))
			w.must(w.run(wake.ForMerge(w.repo.ID)))
			queue, err := w.opts.Store.MergeQueue(t.Context(), w.repo.ID)
			reverts, rerr := queuedReverts.List(t.Context(), w.opts.Store, record.Within{Repo: w.repo.ID})
			if err != nil || rerr != nil || len(queue)+len(reverts) != 0 {
				t.Errorf("left are %q and %v, %v %v", queue, reverts, err, rerr)
			}
		})
	}
}

// TestAwaitsMergeability holds which pull requests would be merged but for the forge, which has
// yet to say whether they can be.
func TestAwaitsMergeability(t *testing.T) {
	w := newFixture(t, "", strings.Replace(autoQA, "merge: auto", "merge: auto, onDegraded: {action: revert-and-merge}", 1), "web")
	number := w.openOne("web", "2.0.0", "web").Number
	for name, c := range map[string]struct {
		change        func(p *facts.OpenPull, st *promotion.EnvState)
		waits, revert bool
	}{
		"nothing else stands in its way": {func(*facts.OpenPull, *promotion.EnvState) {}, true, false},
		"the forge has said it":          {func(p *facts.OpenPull, _ *promotion.EnvState) { p.UncomputedSince = time.Time{} }, false, false},
		"it is in the forge's queue":     {func(p *facts.OpenPull, _ *promotion.EnvState) { p.Queued = true }, false, false},
		"it isn't mergeable yet": {func(_ *facts.OpenPull, st *promotion.EnvState) {
			st.Gates = []policies.Result{{Gate: promotion.GateMergeable, Outcome: policies.Wait}}
		}, true, false},
		"another gate waits": {func(_ *facts.OpenPull, st *promotion.EnvState) {
			st.Gates = []policies.Result{{Gate: "soak", Outcome: policies.Pass}, {Gate: "checks", Outcome: policies.Wait}}
		}, false, false},
		"all others pass": {func(_ *facts.OpenPull, st *promotion.EnvState) {
			st.Gates = []policies.Result{{Gate: "soak", Outcome: policies.Pass}, {Gate: promotion.GateMergeable, Outcome: policies.Wait}}
		}, true, false},
		"nobody knows it": {func(_ *facts.OpenPull, st *promotion.EnvState) { st.Pull = 99 }, false, false},
		"it is a revert": {func(p *facts.OpenPull, st *promotion.EnvState) {
			p.Revert, st.Revert, st.Pull = true, st.Pull, 0
		}, true, true},
		"a gate of the revert waits": {func(p *facts.OpenPull, st *promotion.EnvState) {
			p.Revert, st.Revert, st.Pull = true, st.Pull, 0
			st.RevertGates = []policies.Result{{Gate: "approvals", Outcome: policies.Wait}}
		}, false, false},
	} {
		ev, d := w.evaluate()
		p, st := ev.OpenPulls[number], d.Components[0].Env("qa")
		p.UncomputedSince, p.Queued, st.Gates, st.RevertGates = w.clock.Now(), false, nil, nil
		c.change(p, st)
		if waits, revert := awaitsMergeability(ev, d); waits != c.waits || revert != c.revert {
			t.Errorf("%s: it waits %t, for a revert %t", name, waits, revert)
		}
	}
	ev, d := w.evaluate()
	ev.OpenPulls[number].UncomputedSince = w.clock.Now()
	ev.Environment("qa").Spec.Merge = pipeline.Manual
	if waits, _ := awaitsMergeability(ev, d); waits {
		t.Error("what a person merges waits for its turn")
	}
}

// open runs a component until its promotion into qa is open.
func (f *fixture) open(component string) {
	f.t.Helper()
	for range 30 {
		for _, p := range f.pulls() {
			if p.Branch == promotion.Branch("shop", "qa", component) {
				return
			}
		}
		if err := f.run(wake.ForUnit(f.unit(component))); err != nil && !isStale(err) {
			f.t.Fatal(err)
		}
	}
	f.t.Fatalf("nothing was opened for %s", component)
}

// TestSeenInTheQueueCountsAsJoined has Liftlock have a promotion join the forge's merge queue without
// ever hearing the answer. It doesn't join again when the queue drops it. One that Liftlock itself
// takes out does, also where that couldn't be recorded.
func TestSeenInTheQueueCountsAsJoined(t *testing.T) {
	w := newFixture(t, "", autoQA, "web")
	hosted := w.forge.(*memoryForge).forge
	w.must(hosted.QueueMerges(w.repo.Name))
	isQueued := func() bool {
		queued, err := hosted.QueuedPulls(w.repo.Name)
		w.must(err)
		return len(queued) == 1
	}
	p := w.openOne("web", "2.0.0", "web")
	joined, pull := store.RecordKey{Kind: "joined-queue", Repo: w.repo.ID, Pull: p.Number}, wake.ForPull(w.repo.ID, p.Number)
	w.settle("web", "it is in the queue", isQueued)
	w.must(w.run(pull))
	w.must(w.opts.Store.DeleteRecord(t.Context(), joined))
	w.settle("web", "it is known that it joined", func() bool {
		_, known, err := w.opts.Store.Record(t.Context(), joined)
		w.must(err)
		return known
	})
	w.must(hosted.As("linus").LeaveQueue(t.Context(), w.repo.Name, p.Number))
	w.must(w.run(pull))
	for range 3 {
		w.settle("web", "it stays out of the queue", func() bool { return !isQueued() })
	}
	_, err := w.command("linus", p.Number, "web", command.Command{Verb: command.Retry, Environment: "qa"})
	w.must(err)
	w.settle("web", "it is in the queue again", isQueued)
	w.must(w.run(pull))

	give := func(verb command.Verb) {
		_, err := w.command("linus", p.Number, "web", command.Command{Verb: verb, Scope: command.ScopeComponent})
		w.must(err)
	}
	give(command.Hold)
	w.fail("read "+w.repo.Name.Number(p.Number), forge.ErrRetryable) // what is known of it stays that it is queued
	if err := w.run(wake.ForUnit(w.unit("web"))); err == nil || isQueued() {
		t.Errorf("on hold it leaves the queue with %v, and is in it: %t", err, isQueued())
	}
	give(command.Unhold)
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	w.failNothing()
	w.must(w.run(pull))
	w.settle("web", "it is in the queue once more", isQueued)
}

// slowMerges is a forge whose merges take as long as a test says.
type slowMerges struct {
	forge.Forge
	before func()
}

func (s *slowMerges) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	s.before()
	return s.Forge.Merge(ctx, r, m)
}

// TestTheMergeSlotHolds holds that no other process begins to merge in a repository while one is in
// the middle of a queue that takes longer than one slot lasts.
func TestTheMergeSlotHolds(t *testing.T) {
	components := []string{"web", "api", "pay", "ads"}
	w := newFixture(t, "", autoQA, components...)
	for _, c := range components {
		w.must(w.run(wake.ForUnit(w.unit(c))))
	}
	w.release("2.0.0", components...)
	for range 12 {
		for _, c := range components {
			if err := w.run(wake.ForUnit(w.unit(c))); err != nil && !isStale(err) {
				t.Fatal(err)
			}
		}
	}
	merges := 0
	w.repo.Forge = &slowMerges{w.repo.Forge, func() {
		merges++
		w.clock.Step(50 * time.Second)
		if got, err := w.opts.Store.TakeSlot(t.Context(), "merge|"+w.repo.ID, "another process", time.Minute); err != nil || got {
			t.Errorf("in the middle of the merge %d another process could begin to merge: %v", merges, err)
		}
	}}
	w.must(w.runNow(wake.ForMerge(w.repo.ID)))
	if merges != len(components) {
		t.Errorf("%d were merged", merges)
	}
}
