package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestAStateIsJudgedOnce has two processes hear of the same states. A process that hears of one
// after any has judged it has no run for it, and for another state has one.
func TestAStateIsJudgedOnce(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	one := w.Controller
	w.addProcess(one.opts.Store, "two")
	w.runRepository() // which tells it whose the Applications are
	two := w.Controller
	key := wake.ForUnit(w.unit("web"))
	w.dropDue()

	state := func(health string, minute int) verification.App {
		return verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "web-dev", SyncStatus: "Synced", Health: health, HealthSince: w.clock.Now().Truncate(time.Hour).Add(time.Duration(minute) * time.Minute)}
	}
	notify := func(e *Controller, a verification.App, wantRun bool, what string) {
		t.Helper()
		e.AppChanged(a, false)
		if !e.storePending(t.Context(), e.wakePending) {
			t.Fatal("what was heard could not be stored")
		}
		if due := w.dropDue(); (len(due) > 0) != wantRun {
			t.Errorf("%s: due are %q", what, due)
		}
	}
	judges := func(e *Controller) {
		t.Helper()
		w.Controller = e
		w.must(w.runNow(key))
		w.dropDue()
	}

	healthy, degraded := state("Healthy", 1), state("Degraded", 2)
	notify(one, healthy, true, "a state that nobody has judged")
	judges(one)
	notify(two, healthy, false, "a state that another process has judged")
	notify(one, degraded, true, "the next state")
	notify(two, degraded, true, "the next state, while nobody has judged it yet")
	judges(two)
	notify(one, healthy, true, "the former state again")
	judges(one)
	notify(two, state("Healthy", 3), true, "the former state's health at another time")
	judges(one) // which hasn't heard of that one
	notify(two, state("Healthy", 3), false, "what it has heard of already")
	notify(two, state("Healthy", 4), true, "a state when something older was judged last")
	judges(two)

	progressing := state("Progressing", 5)
	notify(one, progressing, true, "a state before a merge")
	w.Controller = one
	r, _ := one.repository(w.repo.ID)
	w.must(one.mergeUnit(t.Context(), r, w.unit("web"), false))
	notify(two, progressing, true, "a state that was only judged for a merge")
	judges(two)

	late := state("Progressing", 6)
	notify(one, late, true, "a state that is judged late")
	w.clock.Step(recentFor + time.Second)
	judges(one)
	notify(two, late, true, "a state that was heard of too long before it was judged")
	judges(two)

	missed := state("Progressing", 7)
	notify(one, missed, true, "a state before the connection broke")
	w.argocdErr = errors.New("the watch is broken")
	judges(one)
	w.argocdErr = nil
	notify(two, missed, true, "a state that whoever judged couldn't see any more")
	judges(two)

	two.AppChanged(missed, true)
	if !two.storePending(t.Context(), two.wakePending) || len(w.dropDue()) == 0 {
		t.Error("a deletion is no news")
	}
	two.AppChanged(state("Healthy", 8), false)
	judges(two)
	one.AppChanged(state("Healthy", 8), false)
	one.pending.add(false, wakeAfterBurst, key) // for another reason besides
	if !one.storePending(t.Context(), one.wakePending) || len(w.dropDue()) == 0 {
		t.Error("another reason is taken for the state's")
	}
}

// TestJudgedStatesAreBounded holds that a unit of very many Applications, all of which changed
// just now, leaves nothing.
func TestJudgedStatesAreBounded(t *testing.T) {
	t.Parallel()
	x, now := newApplicationIndex(), time.Unix(1000, 0)
	for i := range maxJudgedStates {
		x.noteState(unitKey("web"), applicationID{"main", "argocd", fmt.Sprint(i)}, fmt.Sprint(i), now)
	}
	if got := x.beginLook(unitKey("web"), now); len(got) != maxJudgedStates {
		t.Errorf("%d states of %d", len(got), maxJudgedStates)
	}
	x.noteState(unitKey("web"), applicationID{"main", "argocd", "one more"}, "one more", now)
	if got := x.beginLook(unitKey("web"), now); len(got) != 0 {
		t.Errorf("%d states of one more", len(got))
	}
	if got := x.beginLook(unitKey("web"), now.Add(-time.Second)); len(got) != 0 || len(x.recent) != 0 {
		t.Errorf("after the clock went back: %v, and %d are left", got, len(x.recent))
	}
}

// TestJudgedStatesComeFromTheStore holds that where the store can't say what was judged,
// a state stays pending.
func TestJudgedStatesComeFromTheStore(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.dropDue()
	w.AppChanged(verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "web-dev", Health: "Degraded"}, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.storePending(ctx, func(context.Context, wakesByKind) error { return errors.New("not to be reached") }) || !w.HasPendingWakes() {
		t.Error("a state that could not be looked up is gone")
	}
	if !w.storePending(t.Context(), w.wakePending) || len(w.dropDue()) != 1 {
		t.Error("a degradation is not due at once afterwards")
	}
}

// TestProcessGetsMissedChanges has a process that has only evaluated a unit, as another one
// ran all of the repository's woken keys. It hears of a degradation for which its look came too
// early.
func TestProcessGetsMissedChanges(t *testing.T) {
	for name, look := range map[string]func(w *fixture) error{
		"a look":          func(w *fixture) error { return w.run(wake.ForUnit(w.unit("web"))) },
		"one for a merge": func(w *fixture) error { return w.mergeUnit(t.Context(), w.repo, w.unit("web"), false) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.addProcess(w.opts.Store, "another")
			w.must(w.Start(t.Context()))
			w.must(look(w))
			w.dropDue()
			w.AppChanged(verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "web-dev", Health: "Degraded"}, false)
			if !w.storePending(t.Context(), w.wakePending) || len(w.dropDue()) != 1 {
				t.Error("the degradation has nobody look again")
			}
		})
	}
}
