package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// runBatch judges all components of a pipeline that travel together and does
// what was decided: one run, whichever of them woke it.
func (e *Controller) runBatch(ctx context.Context, r *Repository, s *facts.Snapshot, u promotion.Unit) (time.Time, error) {
	b, d, err := e.evaluateBatch(ctx, s, u, false)
	if err != nil {
		return time.Time{}, err
	}
	if err := e.storeBatchEvaluation(ctx, b, d); err != nil {
		return time.Time{}, err
	}
	acted, err := e.performBatchActions(ctx, b, d)
	if err != nil {
		return time.Time{}, err
	}
	if acted {
		return e.opts.Clock.Now(), nil
	}
	for i, c := range b.Evaluations {
		if err := e.fetchUnknown(ctx, r, c); err != nil {
			return time.Time{}, err
		}
		if err := e.opts.Actor.Present(ctx, c, componentDecision(d, i, c)); err != nil {
			return time.Time{}, err
		}
		if err := e.opts.Actor.DeleteLeftovers(ctx, c); err != nil {
			return time.Time{}, err
		}
	}
	if err := e.opts.Actor.PresentBatch(ctx, b, d); err != nil {
		return time.Time{}, err
	}
	return earliest(d.Next, b.PullEvaluation().RetryAt()), e.opts.Actor.DeleteLeftovers(ctx, b.PullEvaluation())
}

// evaluateBatch gathers facts and decides, answering looks until none is left.
func (e *Controller) evaluateBatch(ctx context.Context, s *facts.Snapshot, u promotion.Unit, fresh bool) (*facts.BatchEvaluation, *promotion.Decision, error) {
	b, err := e.opts.Gatherer.GatherBatch(ctx, s, u, fresh)
	if err != nil {
		return nil, nil, err
	}
	for range maxRounds {
		d := promotion.Decide(b.Facts())
		looks := 0
		for i := range d.Components {
			for _, a := range d.Components[i].Actions {
				if l, ok := a.(promotion.FactRequest); ok {
					looks++
					if err := e.opts.Gatherer.AnswerRequest(ctx, b.Evaluations[i], l); err != nil {
						return nil, nil, err
					}
				}
			}
		}
		own := looks
		for _, a := range d.Actions {
			if l, ok := a.(promotion.FactRequest); ok && own == 0 { // what moves together hangs on each one's own
				if err := e.opts.Gatherer.AnswerBatchRequest(ctx, b, l); err != nil {
					return nil, nil, err
				}
				looks++
			}
		}
		if looks == 0 {
			return b, &d, nil
		}
	}
	return nil, nil, fmt.Errorf("judging %s asked for facts %d times without coming to an end", wake.UnitName(b.Unit), maxRounds)
}

func (e *Controller) storeBatchEvaluation(ctx context.Context, b *facts.BatchEvaluation, d *promotion.Decision) error {
	anyBusy := false
	for i, c := range b.Evaluations {
		if err := e.storeEvaluation(ctx, c, &d.Components[i]); err != nil {
			return err
		}
		anyBusy = anyBusy || waitsForArgoCD(&d.Components[i])
	}
	e.apps.setAwaiting(wake.ForUnit(b.Unit), anyBusy, nil)
	return nil
}

// componentDecision is a component's decision with what is done to the pull requests
// that move it.
func componentDecision(d *promotion.Decision, i int, c *facts.Evaluation) *promotion.ComponentDecision {
	out := d.Components[i]
	out.Actions = nil
	for _, s := range d.Steps() {
		about := s.Component == i
		if a, ok := s.Action.(promotion.PullAction); ok {
			_, members := a.Subject()
			_, about = promotion.FindMember(members, c.Facts.Unit.Component)
		}
		if about {
			out.Actions = append(out.Actions, s.Action)
		}
	}
	return &out
}

// actionEvaluation is what an action on a pull request is done with: a component's own
// evaluation where the pull request is its own, else that of all its members.
func actionEvaluation(b *facts.BatchEvaluation, d *promotion.Decision, a promotion.PullAction) (c *facts.Evaluation, joined *promotion.ComponentDecision, own bool) {
	number, members := a.Subject()
	if len(members) == 1 {
		c, i := b.EvaluationOf(members[0].Component)
		o, opens := a.(promotion.OpenRevert)
		if c != nil && (opens && !o.Batch || !opens && c.OwnsPull(number)) {
			return c, componentDecision(d, i, c), true
		}
	}
	c, joined = b.SharedEvaluation(d, promotion.EnvironmentOf(a), number, members)
	return c, joined, false
}

// performBatchActions does the decision's steps. One component's failure keeps nobody
// else from what is its own, but what they do together in that environment waits
// for it.
func (e *Controller) performBatchActions(ctx context.Context, b *facts.BatchEvaluation, d *promotion.Decision) (acted bool, err error) {
	own, shared := make([]failures, len(d.Components)), failures{}
	all := func() failures {
		f := failures{}
		for i := range own {
			f.addAll(own[i])
		}
		return f.addAll(shared)
	}
	for i := range own {
		own[i] = failures{}
	}
	for _, s := range d.Steps() {
		env := promotion.EnvironmentOf(s.Action)
		if s.Component >= 0 {
			if shared.hasFailed(env) {
				continue
			}
			c := b.Evaluations[s.Component]
			did, err := e.performUnitActions(ctx, c, &promotion.ComponentDecision{Actions: []promotion.Action{s.Action}, Envs: d.Components[s.Component].Envs}, own[s.Component])
			acted = acted || did
			if err != nil {
				return acted, err
			}
			continue
		}
		if all().hasFailed(env) {
			continue
		}
		a, ok := s.Action.(promotion.PullAction)
		if !ok {
			continue
		}
		if _, ok := a.(promotion.Merge); ok {
			err = e.enqueueMerge(ctx, b.Unit)
		} else {
			c, joined, _ := actionEvaluation(b, d, a)
			if err = e.opts.Actor.Do(ctx, c, joined, a); err == nil {
				acted = true
			}
		}
		if ctx.Err() != nil {
			return acted, err
		}
		shared.recordFailure(env, err)
	}
	return acted, all().joinedErr()
}

// mergeBatch merges one pull request that the components of a pipeline say
// may be merged, judged anew; it is for the repository's merge key.
func (e *Controller) mergeBatch(ctx context.Context, r *Repository, s *facts.Snapshot, u promotion.Unit) error {
	b, d, err := e.evaluateBatch(ctx, s, u, true)
	if err != nil {
		return err
	}
	if err := e.storeBatchEvaluation(ctx, b, d); err != nil {
		return err
	}
	for _, a := range d.Actions {
		if m, ok := a.(promotion.Merge); ok {
			c, joined, own := actionEvaluation(b, d, m)
			present := func() error {
				if own {
					return e.opts.Actor.Present(ctx, c, joined)
				}
				return e.opts.Actor.PresentBatch(ctx, b, d)
			}
			return e.mergeEvaluated(ctx, r, c, joined, m, present)
		}
	}
	return nil
}

// wakeRunner wakes the run that looks after a component which travels with others.
func (e *Controller) wakeRunner(ctx context.Context, s *facts.Snapshot, u promotion.Unit) error {
	return e.opts.Store.Wake(ctx, wake.ForUnit(s.RunsAs(u)).String())
}

// forgetUnit forgets a unit that the tracked branch no longer has.
func (e *Controller) forgetUnit(ctx context.Context, u promotion.Unit) error {
	return e.opts.Store.Tx(ctx, "gone", func(tx *store.Tx) error {
		if err := e.opts.Gatherer.DropQueued(ctx, tx, u); err != nil {
			return err
		}
		return tx.DeleteUnit(ctx, wake.UnitName(u))
	})
}
