package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// runUnit evaluates a unit and carries out the decision. The unit is one component, or all of a
// pipeline's that move by one pull request an environment, whichever of them woke it.
func (co *Controller) runUnit(ctx context.Context, r *Repository, u promotion.Unit) (time.Time, error) {
	unlock, err := co.units.Lock(ctx, u)
	if err != nil {
		return time.Time{}, err
	}
	defer unlock()
	if err := co.ensureFresh(ctx, r); err != nil {
		return time.Time{}, err
	}
	fetches := co.fetchRequests.fetches()
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	switch _, known := s.Unit(u); {
	case known == nil && u.Component == promotion.BatchName && !s.IsBatch(u) && s.Pipeline(u.Pipeline) != nil:
		// Its components move alone by now: each sees to what is left.
		return time.Time{}, co.opts.Store.Wake(ctx, wake.Strings(componentKeys(s, u.Pipeline)...)...)
	case known != nil && s.RunsAs(u) != u:
		return time.Time{}, co.opts.Store.Wake(ctx, wake.ForUnit(s.RunsAs(u)).String())
	}
	co.apps.setTargets(s, co.opts.Gatherer.ArgoCDs.ArgoCDOf)
	recent := co.apps.beginLook(wake.ForUnit(u), co.opts.Clock.Now())
	defer co.apps.endLook(wake.ForUnit(u))
	clock := co.opts.Store.ReadClock()
	ev, d, err := co.opts.Gatherer.Evaluate(ctx, s, u, false)
	if errors.Is(err, branch.ErrNoUnit) {
		if p := s.Pipeline(u.Pipeline); p != nil && len(p.Problems) > 0 {
			return time.Time{}, nil // it may only be that it can't be resolved right now
		}
		return time.Time{}, co.forgetUnit(ctx, u)
	}
	if err != nil {
		return time.Time{}, err
	}
	if isPressing(ev, d) {
		setPressing(ctx)
	}
	if err := co.storeEvaluation(ctx, ev, d, recent, clock); err != nil {
		return time.Time{}, err
	}
	if err := errors.Join(co.releaseUpdateTurns(ctx, ev, d), co.awaitTurn(ctx, ev, d)); err != nil {
		return time.Time{}, err
	}
	again, unfetched := co.fetchUnknown(ctx, ev, fetches)
	acted, failed := co.performSteps(ctx, ev, d, again)
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	// A failure in one environment delays nothing in others: their next steps come at their time.
	next := branch.Earliest(d.Next, ev.RetryAt)
	if acted || again {
		// An action, or a fetch, is news: look again with fresh eyes.
		return co.opts.Clock.Now(), errors.Join(failed.joined(), unfetched)
	}
	if failed.report(d) {
		if err := co.storeEvaluation(ctx, ev, d, recent, clock); err != nil {
			return next, errors.Join(failed.joined(), err)
		}
	}
	edit, err := co.opts.Actor.Present(ctx, ev, d)
	if next = branch.Earliest(next, branch.Earliest(edit, ev.RetryAt)); err != nil {
		return next, errors.Join(failed.joined(), err)
	}
	return next, errors.Join(failed.joined(), unfetched, co.reportOrphans(ctx, ev), co.opts.Actor.DeleteLeftovers(ctx, ev))
}

// reportOrphans says on the unit's open pull requests into environments that the pipeline no longer
// has that nothing manages them. The earlier word that they may be merged holds no more.
func (co *Controller) reportOrphans(ctx context.Context, ev *facts.Evaluation) error {
	for _, pr := range ev.Orphans() {
		ref, ok := promotion.ParseBranch(pr.Branch)
		r, _ := co.repository(ev.Unit.Repo)
		if !ok || r == nil {
			continue
		}
		u := promotion.Unit{Repo: ev.Unit.Repo, Pipeline: ref.Pipeline, Component: ref.Component}
		if err := co.reportOrphan(ctx, r, &pr, u, ref.Environment); err != nil {
			return fmt.Errorf("say that nothing looks after #%d any more: %w", pr.Number, err)
		}
	}
	return nil
}

// isPressing says that something of the unit's breaks, or is about to, or is being reverted: what is to
// be done about it must not wait for others.
func isPressing(ev *facts.Evaluation, d *promotion.Decision) bool {
	for i, c := range ev.Components {
		for _, st := range d.Components[i].Envs {
			if st.State == promotion.Degraded || st.State == promotion.Reverting || st.Revert != 0 {
				return true
			}
			if slices.ContainsFunc(c.Env(st.Environment).Targets, func(t promotion.Target) bool { return t.Verdict.Worsening }) {
				return true
			}
		}
	}
	return false
}

// storeEvaluation records facts and decision, in one transaction for each component. With the last
// of them it records the digests of the Applications' states that were heard of before; nil: each
// stays news. clock is from before the evaluation. Where a machine sleeps in the middle of one, an
// Application that is Healthy from now on is not recorded as Healthy for as long as it slept.
func (co *Controller) storeEvaluation(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision, recent []string,
	clock store.ClockReading) error {
	awaited, children := map[string]bool{}, map[string]bool{}
	var unreachable []string
	for i, c := range ev.Components {
		co.addAwaited(awaited, children, c, d.Components[i].Envs)
		unreachable = append(unreachable, c.UnreachableArgoCDs...)
	}
	if co.apps.setAwaiting(wake.ForUnit(ev.Unit), awaited, unreachable) {
		how := wakeAfterBurst
		if co.apps.isAwaitedSettled(wake.ForUnit(ev.Unit)) {
			how = wakeAtOnce
		}
		co.pending.add(false, how, wake.ForUnit(ev.Unit))
	}
	co.apps.setChildren(wake.ForUnit(ev.Unit), children)
	if len(unreachable) > 0 {
		recent = nil // it wasn't judged by what was heard before
	}
	for i, c := range ev.Components {
		last := func(ctx context.Context, tx *store.Tx) error { return nil }
		if i == len(ev.Components)-1 {
			last = func(ctx context.Context, tx *store.Tx) error { return putJudgedStates(ctx, tx, ev.Unit, recent) }
		}
		if err := co.storeComponent(ctx, c, &d.Components[i], clock, last); err != nil {
			return err
		}
	}
	return nil
}

// storeComponent writes down what was seen and decided of one component, and what besides.
func (co *Controller) storeComponent(ctx context.Context, c *facts.ComponentEvaluation, d *promotion.ComponentDecision,
	clock store.ClockReading, besides func(context.Context, *store.Tx) error) error {
	row, err := facts.PackView(c, d)
	if err != nil {
		return err
	}
	records, events, err := co.opts.Gatherer.Records.ListChanged(ctx, c)
	if err != nil {
		return err
	}
	states, err := co.stateEvents(ctx, c, d, row.Digest)
	if err != nil {
		return err
	}
	events = slices.Concat(events, states, revertLimitEvents(c, d), driftEvents(c), updatedEvents(c))
	return co.opts.Store.Tx(ctx, "judged", func(tx *store.Tx) error {
		if err := tx.ConfirmClock(ctx, clock); err != nil {
			return fmt.Errorf("write down what was seen of %s: %w", c.Facts.Unit.Component, err)
		}
		if err := tx.PutObservations(ctx, c.Observations...); err != nil {
			return err
		}
		for _, u := range c.Ungated {
			if err := facts.UngatedMerges.Put(ctx, tx, record.OfPull(c.Facts.Unit.Repo, u.Pull), u); err != nil {
				return err
			}
		}
		for _, m := range c.Merges {
			if err := tx.AddAudit(ctx, m); err != nil {
				return err
			}
		}
		if len(records) > 0 { // what is there may be something else by now
			if err := facts.ForgetUngated(ctx, tx, c); err != nil {
				return err
			}
		}
		for _, m := range c.Metrics {
			if err := m.Store(ctx, tx); err != nil {
				return err
			}
		}
		for _, r := range c.Endpoints {
			if err := r.Store(ctx, tx); err != nil {
				return err
			}
		}
		for _, a := range c.Soaks {
			if err := tx.UpdateArrivalData(ctx, a); err != nil {
				return err
			}
		}
		if err := tx.PutUnit(ctx, row); err != nil {
			return err
		}
		if err := co.opts.Gatherer.Records.RecordQueued(ctx, tx, c, d); err != nil {
			return err
		}
		if err := co.opts.Gatherer.Records.RecordSeenQueued(ctx, tx, c); err != nil {
			return err
		}
		if err := co.opts.Gatherer.SettlePulls(ctx, tx, c); err != nil {
			return err
		}
		for _, p := range records {
			if _, err := tx.PutPromotion(ctx, p); err != nil {
				return err
			}
			if p.State != promotion.Opened {
				if err := facts.ForgetSettled(ctx, tx, p.Repo, p.Pull); err != nil {
					return err
				}
				if err := facts.Merging.Drop(ctx, tx, facts.OfMerge(c.Facts.Unit, p.Pull)); err != nil {
					return err
				}
			}
		}
		if err := besides(ctx, tx); err != nil {
			return err
		}
		_, err := tx.AddEvents(ctx, events...)
		return err
	})
}

// revertLimitEvents tells once a window that so many reverts were opened that everything holds.
func revertLimitEvents(c *facts.ComponentEvaluation, d *promotion.ComponentDecision) []store.Event {
	u, since := c.Facts.Unit, c.Facts.Limits.OldestRecentRevert
	var out []store.Event
	for _, e := range d.Envs {
		i := slices.IndexFunc(e.Why, func(w promotion.Reason) bool { return w.Code == cause.RevertLimit })
		if i < 0 {
			continue
		}
		out = append(out, store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component,
			Environment: e.Environment, Kind: event.RevertLimit,
			Message: e.Why[i].Text, IdempotencyKey: fmt.Sprintf("%s|%s|%s|%s|%d", event.RevertLimit, u.Repo, u.Pipeline, e.Environment,
				since.Unix())})
	}
	return out
}

// addAwaited adds the Applications of those environments that wait for Argo CD, of which
// every reconciliation is news, and all that are below targets. One in which nothing is found is
// no news of a target of which only the health counts.
func (co *Controller) addAwaited(awaited, children map[string]bool, c *facts.ComponentEvaluation, envs []promotion.EnvState) {
	for i := range envs {
		of := c.Unit.Envs[envs[i].Environment]
		if of == nil {
			continue
		}
		targets := c.ChildTargets(envs[i].Environment)
		for k := range targets {
			children[applicationName(co.opts.Gatherer.ArgoCDs.ArgoCDOf(&targets[k]), targets[k].Name)] = true
		}
		if !waitsForArgoCD(&envs[i]) {
			continue
		}
		for k := range of.Targets {
			if v, judged := envs[i].Targets[co.opts.Gatherer.ArgoCDs.TargetLabel(of, &of.Targets[k])]; !judged ||
				!onlyHealthCounts(&envs[i], &v) {
				targets = append(targets, of.Targets[k])
			}
		}
		for k := range targets {
			awaited[applicationName(co.opts.Gatherer.ArgoCDs.ArgoCDOf(&targets[k]), targets[k].Name)] = true
		}
	}
}

// waitsForArgoCD says that an environment waits for Argo CD.
func waitsForArgoCD(env *promotion.EnvState) bool {
	if env.State == promotion.Verifying || env.State == promotion.Degraded || env.Revert != 0 {
		return true
	}
	for _, t := range env.Targets {
		if env.State != promotion.Idle && env.State != promotion.Baseline && t.State != string(verification.Verified) {
			return true
		}
	}
	return false
}

// onlyHealthCounts says of an environment's target that it runs the commit, that its health is
// known to be about it, and that only its health decides its next state. A degraded target's
// unhealthy resources are read with every comparison, until its revert is open: they decide whether
// there is one.
func onlyHealthCounts(env *promotion.EnvState, t *promotion.TargetView) bool {
	return t.State == string(verification.Soaking) || t.State == string(verification.Degraded) && env.Revert != 0
}

// forgetUnit forgets a unit that the tracked branch no longer has.
func (co *Controller) forgetUnit(ctx context.Context, u promotion.Unit) error {
	return co.opts.Store.Tx(ctx, "gone", func(tx *store.Tx) error {
		if err := putJudgedStates(ctx, tx, u, nil); err != nil {
			return err
		}
		if err := co.opts.Gatherer.Records.DropQueued(ctx, tx, u); err != nil {
			return err
		}
		if err := facts.Deployments.Drop(ctx, tx, record.Unit(u)); err != nil {
			return err
		}
		if err := facts.ForgetUngatedOf(ctx, tx, u); err != nil {
			return err
		}
		return tx.DeleteUnit(ctx, wake.UnitName(u))
	})
}

// componentKeys are the keys of a pipeline's components.
func componentKeys(s *branch.Snapshot, pipeline string) []wake.Key {
	var keys []wake.Key
	for _, u := range s.AllUnits() {
		if u.Pipeline == pipeline {
			keys = append(keys, wake.ForUnit(u))
		}
	}
	return keys
}
