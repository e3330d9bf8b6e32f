package controller

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// performSteps does a decision's steps but merges, which it leaves to the repository's merge key.
// acted says that a step made a change after which the unit must be evaluated again. A step that
// fails in an environment stops the later ones there: those of the component or, where it is about
// a pull request, all of the unit's. Where the repository was fetched since the decision, no
// release moves. The next look follows at once, and the fetched commits may have withdrawn them.
func (co *Controller) performSteps(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision,
	fetchedSince bool) (acted bool, failed stepFailures) {
	failed = newStepFailures(len(ev.Components))
	for _, step := range d.Steps() {
		env := promotion.EnvironmentOf(step.Action)
		if failed.blocks(step.Component, env) || fetchedSince && bringsReleases(step.Action) {
			continue
		}
		var err error
		switch x := step.Action.(type) {
		case promotion.FactRequest: // answered before, or it can't be
			continue
		case promotion.Merge:
			err = co.enqueueMerge(ctx, ev.Unit, x.Revert)
		case promotion.Refresh, promotion.Sync:
			if _, err := co.opts.Actor.Do(ctx, ev, d, step); err != nil {
				// The verdict waits and asks again; nothing else stands still for it.
				co.opts.Log.Warn("Argo CD could not be asked", zap.Error(err))
			}
			continue
		default:
			var needsLook bool
			needsLook, err = co.opts.Actor.Do(ctx, ev, d, step)
			acted = acted || needsLook
		}
		if err != nil && ctx.Err() != nil {
			return acted, failed
		}
		failed.of(step.Component).record(env, err)
	}
	return acted, failed
}

// bringsReleases says that an action puts releases on a branch from which people may merge them.
func bringsReleases(a promotion.Action) bool {
	switch a.(type) {
	case promotion.Open, promotion.Replace:
		return true
	default:
		return false
	}
}

// stepFailures are the failures of a unit's steps: first those about pull requests, then
// each component's own.
type stepFailures []failures

func newStepFailures(components int) stepFailures {
	f := make(stepFailures, components+1)
	for i := range f {
		f[i] = failures{}
	}
	return f
}

// of are the failures of a component; -1 is those about pull requests.
func (s stepFailures) of(component int) failures { return s[component+1] }

// blocks says that a step isn't done after what failed.
func (s stepFailures) blocks(component int, env string) bool {
	if component >= 0 {
		return s.of(-1)[env] != nil || s.of(component)[env] != nil
	}
	return slices.ContainsFunc(s, func(f failures) bool { return f[env] != nil })
}

// report says in the decision what failed in which environment, where people look for it; false
// when there is nothing to say. A step that only went stale is no failure.
func (s stepFailures) report(d *promotion.Decision) bool {
	said := false
	for i := range d.Components {
		for j := range d.Components[i].Envs {
			st := &d.Components[i].Envs[j]
			for _, own := range []failures{s.of(-1), s.of(i)} {
				if err := own[st.Environment]; err != nil && !isStale(err) {
					st.Why = append(st.Why, promotion.Reason{Code: cause.Failing, Text: err.Error() + "; it is tried again"})
					said = true
				}
			}
		}
	}
	return said
}

// joined is nil when nothing failed; where something really did, what only moved
// meanwhile isn't worth telling.
func (s stepFailures) joined() error {
	all := failures{}
	for _, own := range s {
		for env, err := range own {
			all.record(env, err)
		}
	}
	var stale, broken error
	for _, env := range slices.Sorted(maps.Keys(all)) {
		if err := all[env]; isStale(err) {
			stale = errors.Join(stale, err)
		} else {
			broken = errors.Join(broken, err)
		}
	}
	if broken != nil {
		return broken
	}
	return stale
}

// failures are the failed steps, by environment: the rest depends on the first one there, and other
// environments go on.
type failures map[string]error

// record adds a failure. One that only moved meanwhile doesn't hide, nor soften, a
// real one of another component in the same environment.
func (f failures) record(env string, err error) {
	old := f[env]
	switch {
	case err == nil, old != nil && isStale(err) && !isStale(old):
	case old != nil && isStale(old) && !isStale(err):
		f[env] = err
	default:
		f[env] = errors.Join(old, err)
	}
}
