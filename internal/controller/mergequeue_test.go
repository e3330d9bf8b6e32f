package controller

import (
	"testing"

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
		w.must(w.enqueueMerge(t.Context(), w.unit(c)))
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
	w.must(w.enqueueMerge(t.Context(), w.unit("api")))
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
