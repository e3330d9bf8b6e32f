package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// rounds bounds how often one run asks for another expensive fact or acts and
// looks again; what is left waits for the next run.
const rounds = 8

// unit judges one component and does what was decided.
func (e *Engine) unit(ctx context.Context, r *Repository, u promotion.Unit) (time.Time, error) {
	defer e.lockUnit(facts.UnitName(u))()
	s, err := e.o.Observer.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	switch _, known := s.Unit(u); {
	case s.IsBatch(u):
		return e.together(ctx, r, s, u)
	case known == nil && u.Component == promotion.BatchName && s.Pipeline(u.Pipeline) != nil:
		// Its components travel alone by now: each sees to what is left.
		return time.Time{}, e.o.Store.Wake(ctx, unitKeys(s, u.Pipeline)...)
	case known != nil && s.Runner(u) != u:
		return time.Time{}, e.redirect(ctx, s, u)
	}
	c, d, err := e.judge(ctx, s, u, false)
	if errors.Is(err, facts.ErrNoUnit) {
		if p := s.Pipeline(u.Pipeline); p != nil && len(p.Problems) > 0 {
			return time.Time{}, nil // it may only be that it can't be resolved right now
		}
		return time.Time{}, e.gone(ctx, u)
	}
	if err != nil {
		return time.Time{}, err
	}
	if err := e.note(ctx, c, d); err != nil {
		return time.Time{}, err
	}
	if err := e.fetchUnknown(ctx, r, c); err != nil {
		return time.Time{}, err
	}
	acted, err := e.perform(ctx, c, d)
	if err != nil {
		return time.Time{}, err
	}
	if acted {
		// What was done is news: look again with fresh eyes.
		return e.o.Clock.Now(), nil
	}
	if err := e.o.Actor.Present(ctx, c, d); err != nil {
		return time.Time{}, err
	}
	return sooner(d.Next, c.Again()), e.o.Actor.Tidy(ctx, c)
}

// sooner is the earlier of two times; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fetchUnknown looks at the repository when Argo CD is ahead of what was fetched:
// the push's own event may be lost or late. The unit looks again after the fetch,
// also when it only brought a branch that isn't tracked. A revision that a fetch didn't bring
// (a hydrated branch, another repository) is asked for once.
func (e *Engine) fetchUnknown(ctx context.Context, r *Repository, c *facts.Case) error {
	news := false
	e.mu.Lock()
	for _, rev := range c.Unknown {
		if !e.asked[rev] {
			e.asked[rev], news = true, true
		}
	}
	if len(e.asked) > maxAsked {
		clear(e.asked)
	}
	if len(c.Unknown) > 0 {
		e.awaits[facts.Key(c.Snapshot.Runner(c.Facts.Unit))] = r.ID
	}
	e.mu.Unlock()
	if !news {
		return nil
	}
	return e.o.Store.Wake(ctx, RepoKey(r.ID))
}

// maxAsked bounds the memory of revisions that were fetched for.
const maxAsked = 10_000

// judge gathers facts and decides, answering looks until none is left. A
// component that travels with others is judged with them.
func (e *Engine) judge(ctx context.Context, s *facts.Snapshot, u promotion.Unit, fresh bool) (*facts.Case, *promotion.Decision, error) {
	if _, known := s.Unit(u); known != nil && s.Runner(u) != u {
		b, d, err := e.judgeTogether(ctx, s, u, fresh)
		if err != nil {
			return nil, nil, err
		}
		if c, i := b.Case(u.Component); c != nil {
			return c, &d.Components[i], nil
		}
	}
	c, err := e.o.Observer.Facts(ctx, s, u, fresh)
	if err != nil {
		return nil, nil, err
	}
	for range rounds {
		d := promotion.Decide(c.Facts)
		looks := 0
		for _, a := range d.Actions {
			if l, ok := a.(promotion.FactRequest); ok {
				looks++
				if err := e.o.Observer.Answer(ctx, c, l); err != nil {
					return nil, nil, err
				}
			}
		}
		if looks == 0 {
			return c, &d, nil
		}
	}
	return nil, nil, fmt.Errorf("judging %s asked for facts %d times without coming to an end", facts.UnitName(u), rounds)
}

// note writes down what was seen and decided, in one transaction.
func (e *Engine) note(ctx context.Context, c *facts.Case, d *promotion.Decision) error {
	row, err := facts.PackView(c, d)
	if err != nil {
		return err
	}
	records, lives, err := e.o.Observer.Records(ctx, c)
	if err != nil {
		return err
	}
	key := facts.Key(c.Facts.Unit)
	e.mu.Lock()
	e.active[key] = busy(d)
	e.mu.Unlock()
	e.noteDeaf(c)
	return e.o.Store.Tx(ctx, "judged", func(tx *store.Tx) error {
		if err := tx.PutObservations(ctx, c.Memories...); err != nil {
			return err
		}
		if err := tx.PutUnit(ctx, row); err != nil {
			return err
		}
		if err := e.o.Observer.PutQueue(ctx, tx, c, d); err != nil {
			return err
		}
		for _, p := range records {
			if _, err := tx.PutPromotion(ctx, p); err != nil {
				return err
			}
		}
		_, err := tx.AddEvents(ctx, append(lives, storms(c, d)...)...)
		return err
	})
}

// storms tells once a window that so many reverts were opened that everything holds.
func storms(c *facts.Case, d *promotion.Decision) []store.Event {
	u, since := c.Facts.Unit, c.Facts.Limits.OldestRecentRevert
	var out []store.Event
	for _, e := range d.Envs {
		i := slices.IndexFunc(e.Why, func(w promotion.Reason) bool { return w.Code == "storm" })
		if i < 0 {
			continue
		}
		out = append(out, store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: e.Environment, Kind: "storm",
			Message: e.Why[i].Text, IdempotencyKey: fmt.Sprintf("storm|%s|%s|%s|%d", u.Repo, u.Pipeline, e.Environment, since.Unix())})
	}
	return out
}

// busy says that a unit waits for Argo CD: every reconciliation is news for it.
func busy(d *promotion.Decision) bool {
	for _, e := range d.Envs {
		if e.State == promotion.Verifying || e.State == promotion.Degraded || e.Revert != 0 {
			return true
		}
		for _, t := range e.Targets {
			if e.State != promotion.Idle && e.State != promotion.Baseline && t.State != string(verification.Verified) {
				return true
			}
		}
	}
	return false
}

// perform does the decision's actions but merges, for which it asks the
// repository's merge key. acted says that something was done that must be looked at.
func (e *Engine) perform(ctx context.Context, c *facts.Case, d *promotion.Decision) (acted bool, err error) {
	f := failures{}
	if acted, err = e.performOwn(ctx, c, d, f); err != nil {
		return acted, err
	}
	return acted, f.err()
}

// performOwn is perform of one component among others: what fails goes to the
// failures, where its environments are skipped. The error is the context's end.
func (e *Engine) performOwn(ctx context.Context, c *facts.Case, d *promotion.Decision, f failures) (acted bool, err error) {
	own := failures{}
	defer func() { f.with(own) }()
	for _, a := range d.Actions {
		env := promotion.EnvironmentOf(a)
		if own.in(env) {
			continue
		}
		switch a.(type) {
		case promotion.Merge:
			err = e.wish(ctx, c.Snapshot.Runner(c.Facts.Unit))
		case promotion.Refresh, promotion.Sync:
			if err := e.o.Actor.Do(ctx, c, d, a); err != nil {
				// The verdict waits and asks again; nothing else stands still for it.
				e.o.Log.Warn("Argo CD could not be asked", zap.Error(err))
			}
			continue
		default:
			if err = e.o.Actor.Do(ctx, c, d, a); err == nil {
				acted = true
			}
		}
		if err != nil && ctx.Err() != nil {
			return acted, err
		}
		own.note(env, err)
	}
	return acted, nil
}

// failures are what failed, by environment: what came first there is what the
// rest stands on, and what is elsewhere goes on.
type failures map[string]error

func (f failures) in(env string) bool { return f[env] != nil }

// note adds a failure. One that only moved meanwhile doesn't hide, nor soften, a
// real one of another component in the same environment.
func (f failures) note(env string, err error) {
	old := f[env]
	switch {
	case err == nil, old != nil && moved(err) && !moved(old):
	case old != nil && moved(old) && !moved(err):
		f[env] = err
	default:
		f[env] = errors.Join(old, err)
	}
}

// with adds others.
func (f failures) with(others failures) failures {
	for env, err := range others {
		f.note(env, err)
	}
	return f
}

// err is nil when nothing failed; where something really did, what only moved
// meanwhile isn't worth telling.
func (f failures) err() error {
	var again, broken error
	for _, env := range slices.Sorted(maps.Keys(f)) {
		if err := f[env]; moved(err) {
			again = errors.Join(again, err)
		} else {
			broken = errors.Join(broken, err)
		}
	}
	if broken != nil {
		return broken
	}
	return again
}

// wish asks the repository's merge key to merge for a unit.
func (e *Engine) wish(ctx context.Context, u promotion.Unit) error {
	return e.o.Store.Tx(ctx, "wish", func(tx *store.Tx) error {
		if err := tx.EnqueueMerge(ctx, u.Repo, facts.UnitName(u)); err != nil {
			return err
		}
		return tx.Wake(ctx, "merge:"+u.Repo)
	})
}

// merges serves the repository's merge wishes, one after the other: fetch, judge
// again with fresh facts, merge what is still to be merged.
func (e *Engine) merges(ctx context.Context, r *Repository) (time.Time, error) {
	slot := "merge|" + r.ID
	ok, err := e.o.Store.TakeSlot(ctx, slot, e.o.Owner, mergeSlotTTL)
	if err != nil {
		return time.Time{}, err
	}
	if !ok {
		return e.o.Clock.Now().Add(retryFirst), nil
	}
	defer func() {
		if err := e.o.Store.FreeSlot(context.WithoutCancel(ctx), slot, e.o.Owner); err != nil {
			e.o.Log.Warn("the merge slot could not be given back; it comes free by itself", zap.Error(err))
		}
	}()
	wishes, err := e.o.Store.MergeQueue(ctx, r.ID)
	if err != nil {
		return time.Time{}, err
	}
	var failed error
	for _, w := range wishes {
		u, ok := parseUnit(w)
		var err error
		if ok {
			err = e.mergeUnit(ctx, r, u)
		}
		if err != nil && !moved(err) {
			// Its wish stays; the others' don't wait for it.
			failed = errors.Join(failed, fmt.Errorf("merge for %s: %w", w, err))
			if ctx.Err() != nil || errors.Is(err, forge.ErrRateLimited) {
				break // nobody's would be served now
			}
			continue
		}
		again := e.o.Clock.Now()
		if err != nil {
			again = again.Add(mergeAgain)
		}
		if err := e.o.Store.Tx(ctx, "wish-served", func(tx *store.Tx) error {
			if err := tx.DequeueMerge(ctx, r.ID, w); err != nil {
				return err
			}
			return tx.WakeAt(ctx, again, "unit:"+w)
		}); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, failed
}

// mergeAgain lets the forge settle after a merge that came too early: right
// after another one GitHub answers "Base branch was modified".
const mergeAgain = 250 * time.Millisecond

// mergeSlotTTL bounds how long a lost process keeps a repository from merging.
const mergeSlotTTL = 2 * time.Minute

func (e *Engine) mergeUnit(ctx context.Context, r *Repository, u promotion.Unit) error {
	defer e.lockUnit(facts.UnitName(u))()
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return err
	}
	s, err := e.o.Observer.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	if s.IsBatch(u) {
		return e.mergeTogether(ctx, r, s, u)
	}
	c, d, err := e.judge(ctx, s, u, true)
	if errors.Is(err, facts.ErrNoUnit) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.note(ctx, c, d); err != nil {
		return err
	}
	for _, a := range d.Actions {
		if m, ok := a.(promotion.Merge); ok {
			return e.mergeNow(ctx, r, c, d, m, func() error { return e.o.Actor.Present(ctx, c, d) })
		}
	}
	return nil
}

// mergeNow merges what was just judged.
func (e *Engine) mergeNow(ctx context.Context, r *Repository, c *facts.Case, d *promotion.Decision, m promotion.Merge, present func() error) error {
	// What is merged shows that its gates passed, also when the run that
	// wished for the merge died before it said so: the forge may require it.
	if err := present(); err != nil {
		return err
	}
	err := e.o.Actor.Do(ctx, c, d, m)
	switch {
	case errors.Is(err, forge.ErrNotMergeable):
		// The forge's own rules stand in the way: the next look says which.
		e.o.Log.Info("the forge refuses the merge", zap.Int("pull", m.Pull), zap.Error(err))
		if _, terr := e.o.Observer.Touch(ctx, r.Repository, m.Pull); terr != nil {
			return terr
		}
		e.o.Observer.NoteRefused(r.Repository, m.Pull, m.Head, err)
		return nil
	case err != nil:
		return err
	}
	return e.o.Store.Wake(ctx, RepoKey(r.ID)) // the branch has a new head
}

// unitKeys are the wake keys of a pipeline's components.
func unitKeys(s *facts.Snapshot, pipeline string) []string {
	var keys []string
	for _, u := range s.AllUnits() {
		if u.Pipeline == pipeline {
			keys = append(keys, facts.Key(u))
		}
	}
	return sorted(keys)
}
