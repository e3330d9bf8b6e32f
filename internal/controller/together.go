package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// together judges all components of a pipeline that travel together and does
// what was decided: one run, whichever of them woke it.
func (e *Engine) together(ctx context.Context, r *Repository, s *facts.Snapshot, u promotion.Unit) (time.Time, error) {
	b, d, err := e.judgeTogether(ctx, s, u, false)
	if err != nil {
		return time.Time{}, err
	}
	if err := e.noteTogether(ctx, b, d); err != nil {
		return time.Time{}, err
	}
	acted, err := e.performTogether(ctx, b, d)
	if err != nil {
		return time.Time{}, err
	}
	if acted {
		return e.o.Clock.Now(), nil
	}
	for i, c := range b.Cases {
		if err := e.fetchUnknown(ctx, r, c); err != nil {
			return time.Time{}, err
		}
		if err := e.o.Actor.Present(ctx, c, &d.Components[i]); err != nil {
			return time.Time{}, err
		}
		if err := e.o.Actor.Tidy(ctx, c); err != nil {
			return time.Time{}, err
		}
	}
	if err := e.o.Actor.PresentTogether(ctx, b, d); err != nil {
		return time.Time{}, err
	}
	return sooner(d.Next, b.Own().Again()), e.o.Actor.Tidy(ctx, b.Own())
}

// judgeTogether gathers facts and decides, answering looks until none is left.
func (e *Engine) judgeTogether(ctx context.Context, s *facts.Snapshot, u promotion.Unit, fresh bool) (*facts.Batch, *promotion.BatchDecision, error) {
	b, err := e.o.Observer.Batch(ctx, s, u, fresh)
	if err != nil {
		return nil, nil, err
	}
	for range rounds {
		d := promotion.DecideBatch(b.Facts())
		looks := 0
		for i := range d.Components {
			for _, a := range d.Components[i].Actions {
				if l, ok := a.(promotion.FactRequest); ok {
					looks++
					if err := e.o.Observer.Answer(ctx, b.Cases[i], l); err != nil {
						return nil, nil, err
					}
				}
			}
		}
		own := looks
		for _, a := range d.Actions {
			if l, ok := a.(promotion.FactRequest); ok && own == 0 { // what moves together hangs on each one's own
				if err := e.o.Observer.AnswerTogether(ctx, b, l); err != nil {
					return nil, nil, err
				}
				looks++
			}
		}
		if looks == 0 {
			return b, &d, nil
		}
	}
	return nil, nil, fmt.Errorf("judging %s asked for facts %d times without coming to an end", facts.UnitName(b.Unit), rounds)
}

func (e *Engine) noteTogether(ctx context.Context, b *facts.Batch, d *promotion.BatchDecision) error {
	anyBusy := false
	for i, c := range b.Cases {
		if err := e.note(ctx, c, &d.Components[i]); err != nil {
			return err
		}
		anyBusy = anyBusy || busy(&d.Components[i])
	}
	e.mu.Lock()
	e.active[facts.Key(b.Unit)] = anyBusy
	e.mu.Unlock()
	return nil
}

// performTogether does each component's own actions, then the shared ones. One
// component's failure keeps nobody else from what is its own, but what they do
// together in that environment waits for it.
func (e *Engine) performTogether(ctx context.Context, b *facts.Batch, d *promotion.BatchDecision) (acted bool, err error) {
	f := failures{}
	for i, c := range b.Cases {
		did, err := e.performOwn(ctx, c, &d.Components[i], f)
		acted = acted || did
		if err != nil {
			return acted, err
		}
	}
	shared := failures{}
	for _, a := range d.Actions {
		env := promotion.EnvironmentOf(a)
		if f.in(env) || shared.in(env) {
			continue
		}
		if _, ok := a.(promotion.Merge); ok {
			err = e.wish(ctx, b.Unit)
		} else {
			c, joined := b.Shared(d, env, promotion.PullOf(a), promotion.MembersOf(a))
			if err = e.o.Actor.Do(ctx, c, joined, a); err == nil {
				acted = true
			}
		}
		if ctx.Err() != nil {
			return acted, err
		}
		shared.note(env, err)
	}
	return acted, f.with(shared).err()
}

// mergeTogether merges one pull request that the components of a pipeline say
// may be merged, judged anew; it is for the repository's merge key.
func (e *Engine) mergeTogether(ctx context.Context, r *Repository, s *facts.Snapshot, u promotion.Unit) error {
	b, d, err := e.judgeTogether(ctx, s, u, true)
	if err != nil {
		return err
	}
	if err := e.noteTogether(ctx, b, d); err != nil {
		return err
	}
	for i, c := range b.Cases {
		for _, a := range d.Components[i].Actions {
			if m, ok := a.(promotion.Merge); ok {
				present := func() error { return e.o.Actor.Present(ctx, c, &d.Components[i]) }
				return e.mergeNow(ctx, r, c, &d.Components[i], m, present)
			}
		}
	}
	for _, a := range d.Actions {
		if m, ok := a.(promotion.Merge); ok {
			c, joined := b.Shared(d, m.Environment, m.Pull, m.Members)
			present := func() error { return e.o.Actor.PresentTogether(ctx, b, d) }
			return e.mergeNow(ctx, r, c, joined, m, present)
		}
	}
	return nil
}

// redirect wakes the run that looks after a component which travels with others.
func (e *Engine) redirect(ctx context.Context, s *facts.Snapshot, u promotion.Unit) error {
	return e.o.Store.Wake(ctx, facts.Key(s.Runner(u)))
}

// gone forgets a unit that the tracked branch no longer has.
func (e *Engine) gone(ctx context.Context, u promotion.Unit) error {
	return e.o.Store.Tx(ctx, "gone", func(tx *store.Tx) error {
		if err := e.o.Observer.DropQueue(ctx, tx, u); err != nil {
			return err
		}
		return tx.DeleteUnit(ctx, facts.UnitName(u))
	})
}
