package facts

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// beforeForge has a call of ours of the forge fail when it is its turn.
func (sto *story) beforeForge(login, op string) error {
	if login != storyBot {
		return nil
	}
	if err := sto.faults.Fail("forge: " + op); err != nil {
		return &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	}
	return nil
}

// failEach evaluates a unit as a process that has just begun does, and has one call after the other
// fail, once for each line of the code that makes it in this story. A failing call gives an error,
// or an unknown fact that says why, or else it is tolerated. An unknown fact makes nothing happen
// that wouldn't happen if it were known. The looks after it, which the golden holds, don't know of
// any of this.
func (sto *story) failEach(component, step string) {
	sto.t.Helper()
	if testing.Short() { // what one run comes to is nothing that goroutines share
		return
	}
	warm := sto.repo
	sto.repo = sto.cloneRepository()
	sto.faults = faulttest.Faults{Deep: true}
	want, known, err := sto.lookAnew(component)
	callers := sto.faults.Callers()
	sto.faults = faulttest.Faults{}
	sto.repo = warm
	if err != nil {
		return // the next look says why
	}
	for _, caller := range callers {
		if sto.failed[caller] {
			continue
		}
		sto.failed[caller] = true
		sto.repo = sto.cloneRepository()
		sto.faults = faulttest.Faults{Deep: true, Caller: caller}
		steps, text, err := sto.lookAnew(component)
		hit := sto.faults.Hit
		sto.faults = faulttest.Faults{}
		sto.repo = warm
		switch {
		case hit == "":
			continue // what it does was done by the look before
		case errors.Is(err, faulttest.ErrInjected), err != nil && hit == "context": // which may say what came before
		case err != nil:
			sto.t.Errorf("%s: after %s had failed: %v", step, caller, err)
		case !strings.Contains(text, faulttest.ErrInjected.Error()):
			sto.t.Errorf("%s: nothing says that %s failed", step, caller)
		}
		for s := range maps.Keys(steps) {
			if !want[s] {
				sto.t.Errorf("%s: after %s had failed it is decided to %s, and otherwise to %q", step, caller, s, slices.Sorted(maps.Keys(want)))
			}
		}
	}
	sto.failNext(component, step, want)
	sto.repo = sto.cloneRepository()
	again, text, err := sto.lookAnew(component)
	sto.repo = warm
	if sto.must(err); !maps.Equal(again, want) || text != known {
		sto.t.Errorf("%s: after the failures it is decided to %q, and before to %q", step, slices.Sorted(maps.Keys(again)), slices.Sorted(maps.Keys(want)))
	}
}

// failNext evaluates a unit as a process that has evaluated it before, in this story, as often as a
// call fails that hasn't failed yet. Its memory of a failed look must change no decision once none
// fails.
func (sto *story) failNext(component, step string, want map[string]bool) {
	sto.t.Helper()
	if testing.Short() { // what one run comes to is nothing that goroutines share
		return
	}
	if sto.running == nil {
		sto.running = sto.newProcess()
	}
	for {
		sto.faults = faulttest.Faults{Deep: true, Once: sto.failedNext}
		steps, text, err := sto.lookWith(sto.running, component)
		hit, caller := sto.faults.Hit, sto.faults.HitCaller
		sto.faults = faulttest.Faults{}
		switch {
		case hit == "":
			if sto.must(err); !maps.Equal(steps, want) {
				sto.t.Errorf("%s: who looked before decides to %q, and who begins to %q", step, slices.Sorted(maps.Keys(steps)), slices.Sorted(maps.Keys(want)))
			}
			return
		case errors.Is(err, faulttest.ErrInjected), err != nil && hit == "context":
			continue
		case err != nil:
			sto.t.Errorf("%s: who looked before, after %s had failed: %v", step, caller, err)
		case !strings.Contains(text, faulttest.ErrInjected.Error()):
			sto.t.Errorf("%s: to who looked before nothing says that %s failed", step, caller)
		}
		for s := range maps.Keys(steps) {
			if !want[s] {
				sto.t.Errorf("%s: who looked before, after %s had failed, decides to %s, and otherwise to %q", step, caller, s, slices.Sorted(maps.Keys(want)))
			}
		}
	}
}

// cloneRepository is the repository as a process has it that has just cloned it: nothing of its mirror is
// remembered, so that reading it may fail.
func (sto *story) cloneRepository() *branch.Repository {
	sto.t.Helper()
	r := *sto.repo
	r.Mirror = sto.openMirror()
	_, err := r.Mirror.Fetch(sto.ctx())
	sto.must(err)
	return &r
}

// newProcess is the gatherer of a process that has just begun.
func (sto *story) newProcess() *Gatherer {
	o := sto.options
	o.Repos = slices.Clone(o.Repos)
	for i := range o.Repos {
		if o.Repos[i].ID == sto.repo.ID {
			o.Repos[i] = sto.repo
		}
	}
	o.Resolver = appset.New(appset.Options{})
	return New(o)
}

// lookAnew gives what a process that has just begun decides to do, and the facts for it.
func (sto *story) lookAnew(component string) (steps map[string]bool, known string, err error) {
	sto.t.Helper()
	return sto.lookWith(sto.newProcess(), component)
}

// lookWith gives what a process decides to do, and the facts for it.
func (sto *story) lookWith(g *Gatherer, component string) (steps map[string]bool, known string, err error) {
	sto.t.Helper()
	ctx := sto.faults.Context(sto.ctx())
	s, err := g.Targets.Snapshot(ctx, sto.repo)
	if err != nil {
		return nil, "", err
	}
	ev, d, err := g.Evaluate(ctx, s, sto.unit(component), false)
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
	sto.must(err)
	pulls, err := json.Marshal(ev.OpenPulls)
	sto.must(err)
	return steps, string(raw) + string(pulls), nil
}

// failUntilDone does something as often as a call fails that hasn't failed yet in this story,
// before its effect or after it, until none is left. Each failure must be its error, and its
// earlier effects must not keep it from coming to its end. Before each time the state before may be
// restored.
func (sto *story) failUntilDone(what string, before func(), do func(ctx context.Context) error) {
	sto.t.Helper()
	for {
		if before != nil {
			before()
		}
		sto.faults = faulttest.Faults{Deep: true, Once: sto.failedDirectly}
		err := do(sto.faults.Context(sto.ctx()))
		hit, caller := sto.faults.Hit, sto.faults.HitCaller
		sto.faults = faulttest.Faults{}
		switch {
		case hit == "" && err != nil:
			sto.t.Fatalf("%s: without a failure: %v", what, err)
		case hit == "":
			return
		case err != nil && (hit == "context" || errors.Is(err, faulttest.ErrInjected) || strings.Contains(err.Error(), faulttest.ErrInjected.Error())): // as failEach has it
		default:
			sto.t.Errorf("%s: after %s had failed: %v", what, caller, err)
		}
	}
}

// failReads has the readings about a unit beside its look fail, call by call, and the records after
// one. The last time is as if nothing had failed.
func (sto *story) failReads(step string, ev *Evaluation, d *promotion.Decision) {
	sto.t.Helper()
	if testing.Short() { // what one run comes to is nothing that goroutines share
		return
	}
	warm := sto.repo.Mirror
	defer func() { sto.repo.Mirror = warm }()
	var g *Gatherer
	fresh := func() { // nothing is remembered, of what is read now or of what another read
		sto.repo.Mirror = sto.cloneRepository().Mirror
		g = sto.newProcess()
	}
	read := func(what string, do func(ctx context.Context) error) {
		sto.t.Helper()
		sto.failUntilDone(step+": "+what, fresh, do)
	}
	last := sto.seen
	sto.seen = ev.Snapshot
	read("changed units", func(ctx context.Context) error {
		s, err := g.Targets.Snapshot(ctx, sto.repo)
		if err != nil {
			return err
		}
		if last == nil {
			return nil
		}
		_, all, err := g.Targets.ChangedUnits(ctx, last, s)
		if all && sto.faults.Hit != "" { // what can't be told concerns all
			return faulttest.ErrInjected
		}
		return err
	})
	read("origins", func(ctx context.Context) error { _, err := g.History.FindOrigins(ctx, ev.Snapshot); return err })
	read("leftovers", func(ctx context.Context) error { _, err := g.Leftovers(ctx, ev); return err })
	read("what is next", func(ctx context.Context) error { _, err := g.Records.NextQueued(ctx, ev.Snapshot); return err })
	read("what is open", func(ctx context.Context) error { _, err := g.PullCache.OpenPulls(ctx, sto.repo); return err })
	read("seen heads", func(ctx context.Context) error { _, err := g.History.SeenHeads(ctx, sto.repo); return err })
	read("holds", func(ctx context.Context) error { _, _, err := g.History.FindHolds(ctx, sto.repo); return err })
	for number, p := range ev.OpenPulls {
		sto.failEffects(read, func() *Gatherer { return g }, ev, p)
		read("members", func(ctx context.Context) error { _, _, err := g.PullMembers(ctx, ev, number); return err })
	}
	for i := range ev.Environments() {
		env := &ev.Environments()[i]
		read("moved branches", func(ctx context.Context) error { _, err := g.MovedBranches(ctx, ev, env.Name); return err })
		for _, c := range ev.Components {
			at := c.Env(env.Name)
			if at == nil {
				continue
			}
			if at.Landed.OK {
				read("past", func(ctx context.Context) error {
					_, err := g.History.FindPast(ctx, &c.ComponentBasis, at, 5)
					return err
				})
			}
			for k := range at.PastPulls {
				sto.failDifference(step, fresh, func() *Gatherer { return g }, c, at, at.PastPulls[k].Number)
			}
			if at.Open == nil {
				continue
			}
			sto.failDifference(step, fresh, func() *Gatherer { return g }, c, at, at.Open.Number)
			read("commits", func(ctx context.Context) error {
				_, err := g.Authors.ReleaseCommits(ctx, &c.ComponentBasis, env.Name, at.Open.Release)
				return err
			})
			read("authors", func(ctx context.Context) error {
				_, err := g.Authors.ReleaseAuthors(ctx, &c.ComponentBasis, env.Name, at.Open.Release)
				if sto.faults.Hit == "" { // that they aren't known isn't the subject here
					return nil
				}
				return err
			})
		}
	}
	for i, c := range ev.Components {
		read("records", func(ctx context.Context) error { _, _, err := g.Records.ListChanged(ctx, c); return err })
		read("limits", func(ctx context.Context) error { _, err := g.Records.CountUsedLimits(ctx, c); return err })
		read("what is written", sto.inTx(func(ctx context.Context, tx *store.Tx) error {
			for _, write := range []func() error{
				func() error { return g.Records.RecordQueued(ctx, tx, c, &d.Components[i]) },
				func() error { return g.Records.RecordSeenQueued(ctx, tx, c) },
				func() error { return g.SettlePulls(ctx, tx, c) },
				func() error { return ForgetUngated(ctx, tx, c) },
				func() error {
					return ForgetUngatedOf(ctx, tx, promotion.Unit{Repo: sto.repo.ID, Pipeline: "shop", Component: "gone"})
				},
			} {
				if err := write(); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// failEffects has what is worked out about an open pull request's edits fail, call by call.
func (sto *story) failEffects(read func(what string, do func(ctx context.Context) error), g func() *Gatherer, ev *Evaluation, p *OpenPull) {
	sto.t.Helper()
	env := ev.Environment(p.Environment)
	if env == nil || env.Tip == "" || len(p.Edits) == 0 || p.HeadState == promotion.HeadModified {
		return
	}
	moved := effects.ComponentNames(p.Members)
	read("reach", func(ctx context.Context) error {
		_, _, err := g().Effects.Reach(ctx, &ev.Basis, moved, env.Name, p.Base, p.Edits)
		return err
	})
	read("isolation", func(ctx context.Context) error {
		_, err := g().Effects.WhyNotIsolated(ctx, &ev.Basis, moved, env.Name, env.Tip, p.Edits)
		return err
	})
	read("effects", func(ctx context.Context) error {
		_, err := g().Effects.ListEffects(ctx, &ev.Basis, moved, env.Name, p.Base, p.Edits)
		return err
	})
	if p.Revert && p.Reverts != nil {
		read("the revert composed anew", func(ctx context.Context) error {
			_, err := g().ComposeRevertOnto(ctx, ev, p, env.Tip)
			return err
		})
	}
}

// failDifference has the comparison of what a pull request does fail, call by call, where there
// is one to be seen.
func (sto *story) failDifference(step string, fresh func(), g func() *Gatherer, c *ComponentEvaluation, env *promotion.Env, number int) {
	sto.t.Helper()
	var none *effects.NoDifferenceError
	sto.failUntilDone(step+": difference", fresh, func(ctx context.Context) error {
		_, err := g().Effects.Difference(ctx, sto.repo, c.Facts.Unit, env.Name, number)
		if errors.As(err, &none) && sto.faults.Hit == "" {
			return nil
		}
		return err
	})
}
