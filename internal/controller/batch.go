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
		if err := e.opts.Actor.Present(ctx, c, &d.Components[i]); err != nil {
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
func (e *Controller) evaluateBatch(ctx context.Context, s *facts.Snapshot, u promotion.Unit, fresh bool) (*facts.BatchEvaluation, *promotion.BatchDecision, error) {
	b, err := e.opts.Gatherer.GatherBatch(ctx, s, u, fresh)
	if err != nil {
		return nil, nil, err
	}
	for range maxRounds {
		d := promotion.DecideBatch(b.Facts())
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

func (e *Controller) storeBatchEvaluation(ctx context.Context, b *facts.BatchEvaluation, d *promotion.BatchDecision) error {
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

// performBatchActions does each component's own actions, then the shared ones. One
// component's failure keeps nobody else from what is its own, but what they do
// together in that environment waits for it.
func (e *Controller) performBatchActions(ctx context.Context, b *facts.BatchEvaluation, d *promotion.BatchDecision) (acted bool, err error) {
	f := failures{}
	for i, c := range b.Evaluations {
		did, err := e.performUnitActions(ctx, c, &d.Components[i], f)
		acted = acted || did
		if err != nil {
			return acted, err
		}
	}
	shared := failures{}
	for _, a := range d.Actions {
		env := promotion.EnvironmentOf(a)
		if f.hasFailed(env) || shared.hasFailed(env) {
			continue
		}
		if _, ok := a.(promotion.Merge); ok {
			err = e.enqueueMerge(ctx, b.Unit)
		} else {
			c, joined := b.SharedEvaluation(d, env, promotion.PullOf(a), promotion.MembersOf(a))
			if err = e.opts.Actor.Do(ctx, c, joined, a); err == nil {
				acted = true
			}
		}
		if ctx.Err() != nil {
			return acted, err
		}
		shared.recordFailure(env, err)
	}
	return acted, f.addAll(shared).joinedErr()
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
	for i, c := range b.Evaluations {
		for _, a := range d.Components[i].Actions {
			if m, ok := a.(promotion.Merge); ok {
				present := func() error { return e.opts.Actor.Present(ctx, c, &d.Components[i]) }
				return e.mergeEvaluated(ctx, r, c, &d.Components[i], m, present)
			}
		}
	}
	for _, a := range d.Actions {
		if m, ok := a.(promotion.Merge); ok {
			c, joined := b.SharedEvaluation(d, m.Environment, m.Pull, m.Members)
			present := func() error { return e.opts.Actor.PresentBatch(ctx, b, d) }
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
