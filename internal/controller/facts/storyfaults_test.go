package facts

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/faulttest"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// beforeForge has a call of ours of the forge fail when it is its turn.
func (w *story) beforeForge(login, op string) error {
	if login != storyBot {
		return nil
	}
	if err := w.faults.Fail("forge: " + op); err != nil {
		return &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	}
	return nil
}

// failEach looks at a unit as a process that has just begun does, and has one call after the
// other fail, once for each line of the code that makes it in this story. What fails is an
// error, or a fact that isn't known and says why, or else a call that is tolerated; and
// whatever isn't known has nothing done that would not be done if it were. The looks after it,
// which the golden holds, don't know of any of this.
func (w *story) failEach(component, step string) {
	w.t.Helper()
	w.faults = faulttest.Faults{Deep: true}
	want, known, err := w.lookAnew(component)
	callers := w.faults.Callers()
	w.faults = faulttest.Faults{}
	if err != nil {
		return // whoever looks next says why
	}
	for _, caller := range callers {
		if w.failed[caller] {
			continue
		}
		w.failed[caller] = true
		w.faults = faulttest.Faults{Deep: true, Caller: caller}
		steps, text, err := w.lookAnew(component)
		hit := w.faults.Hit
		w.faults = faulttest.Faults{}
		switch {
		case hit == "":
			continue // what it does was done by the look before
		case errors.Is(err, faulttest.ErrInjected), err != nil && hit == "context": // which may say what came before
		case err != nil:
			w.t.Errorf("%s: after %s had failed: %v", step, caller, err)
		case !strings.Contains(text, faulttest.ErrInjected.Error()):
			w.t.Errorf("%s: nothing says that %s failed", step, caller)
		}
		for s := range maps.Keys(steps) {
			if !want[s] {
				w.t.Errorf("%s: after %s had failed it is decided to %s, and otherwise to %q", step, caller, s, slices.Sorted(maps.Keys(want)))
			}
		}
	}
	w.failNext(component, step, want)
	again, text, err := w.lookAnew(component)
	if w.must(err); !maps.Equal(again, want) || text != known {
		w.t.Errorf("%s: after the failures it is decided to %q, and before to %q", step, slices.Sorted(maps.Keys(again)), slices.Sorted(maps.Keys(want)))
	}
}

// failNext looks at a unit as a process does that has looked at it before, in this story, as
// often as a call fails that hasn't failed yet: what it remembers of a look that failed must
// have it decide nothing else once none fails.
func (w *story) failNext(component, step string, want map[string]bool) {
	w.t.Helper()
	if w.running == nil {
		w.running = w.newProcess()
	}
	for {
		w.faults = faulttest.Faults{Deep: true, Once: w.failedNext}
		steps, text, err := w.lookWith(w.running, component)
		hit, caller := w.faults.Hit, w.faults.HitCaller
		w.faults = faulttest.Faults{}
		switch {
		case hit == "":
			if w.must(err); !maps.Equal(steps, want) {
				w.t.Errorf("%s: who looked before decides to %q, and who begins to %q", step, slices.Sorted(maps.Keys(steps)), slices.Sorted(maps.Keys(want)))
			}
			return
		case errors.Is(err, faulttest.ErrInjected), err != nil && hit == "context":
			continue
		case err != nil:
			w.t.Errorf("%s: who looked before, after %s had failed: %v", step, caller, err)
		case !strings.Contains(text, faulttest.ErrInjected.Error()):
			w.t.Errorf("%s: to who looked before nothing says that %s failed", step, caller)
		}
		for s := range maps.Keys(steps) {
			if !want[s] {
				w.t.Errorf("%s: who looked before, after %s had failed, decides to %s, and otherwise to %q", step, caller, s, slices.Sorted(maps.Keys(want)))
			}
		}
	}
}

// newProcess is the gatherer of a process that has just begun.
func (w *story) newProcess() *Gatherer {
	o := w.options
	o.Resolver = appset.New(appset.Options{})
	return New(o)
}

// lookAnew gives what a process that has just begun decides to do, and the facts for it.
func (w *story) lookAnew(component string) (steps map[string]bool, known string, err error) {
	w.t.Helper()
	return w.lookWith(w.newProcess(), component)
}

// lookWith gives what a process decides to do, and the facts for it.
func (w *story) lookWith(g *Gatherer, component string) (steps map[string]bool, known string, err error) {
	w.t.Helper()
	ctx := w.faults.Context(w.ctx())
	s, err := g.Snapshot(ctx, w.repo)
	if err != nil {
		return nil, "", err
	}
	ev, d, err := g.Evaluate(ctx, s, w.unit(component), false)
	if err != nil {
		return nil, "", err
	}
	steps = map[string]bool{}
	for _, s := range d.Steps() {
		switch s.Action.(type) {
		case promotion.Refresh:
		default:
			steps[s.Action.Describe()] = true
		}
	}
	raw, err := json.Marshal(ev.Facts())
	w.must(err)
	pulls, err := json.Marshal(ev.OpenPulls)
	w.must(err)
	return steps, string(raw) + string(pulls), nil
}

// failUntilDone does something as often as it fails, with its first call failing, then its second,
// and so on, until none is left that could: each failure must be its error, and what it did before
// must not keep it from coming to its end. Before each time something may be made as it was.
func (w *story) failUntilDone(what string, before func(), do func(ctx context.Context) error) {
	w.t.Helper()
	for at := 1; ; at++ {
		if before != nil {
			before()
		}
		w.faults = faulttest.Faults{Deep: true, At: at}
		err := do(w.faults.Context(w.ctx()))
		hit := w.faults.Hit
		w.faults = faulttest.Faults{}
		switch {
		case hit == "" && err != nil:
			w.t.Fatalf("%s: without a failure: %v", what, err)
		case hit == "":
			return
		case errors.Is(err, faulttest.ErrInjected), err != nil && hit == "context": // as failEach has it
		default:
			w.t.Errorf("%s: after %s had failed, its call %d: %v", what, hit, at, err)
		}
	}
}
