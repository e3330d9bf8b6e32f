package controller

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestAMergeKeepsNobodyWaiting holds that pull requests which wait for their merge are
// merged one after the other: each merge makes the forge compute anew whether the next one
// can be merged, and who left the queue for that would be back after minutes.
func TestAMergeKeepsNobodyWaiting(t *testing.T) {
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

// TestMergesWaitTheirTurn holds that of pull requests which wait for their merge while others are
// merged the forge isn't asked again and again whether they can be: each merge has it compute anew,
// and what hundreds ask would grow with the square of their number.
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

// TestRevertsMergeFirst holds that a revert is merged before all promotions of its repository that
// wait for their turn, also one that comes up while those are merged one after the other.
func TestRevertsMergeFirst(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "jobs", "mail", "web")
	enqueue := func(component string, revert bool) {
		t.Helper()
		d := &promotion.Decision{Actions: []promotion.Action{promotion.Merge{Environment: "qa", Revert: revert}}}
		_, failed := w.performSteps(t.Context(), &facts.Evaluation{Unit: w.unit(component)}, d)
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
	left, err := w.opts.Store.StateByPrefix(t.Context(), queuedReverts(w.repo.ID))
	w.must(err)
	if queued, err = w.opts.Store.MergeQueue(t.Context(), w.repo.ID); err != nil || len(queued)+len(left) != 0 {
		t.Errorf("what had its turn is still in the queue: %q %q %v", queued, left, err)
	}
}

// open runs a component until its promotion into qa is open.
func (w *fixture) open(component string) {
	w.t.Helper()
	for range 30 {
		for _, p := range w.pulls() {
			if p.Branch == promotion.Branch("shop", "qa", component) {
				return
			}
		}
		if err := w.run(wake.ForUnit(w.unit(component))); err != nil && !isStale(err) {
			w.t.Fatal(err)
		}
	}
	w.t.Fatalf("nothing was opened for %s", component)
}
