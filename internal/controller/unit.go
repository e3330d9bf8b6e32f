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
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// maxRounds bounds how often one run asks for another expensive fact or acts and
// looks again; what is left waits for the next run.
const maxRounds = 8

// runUnit judges one component and does what was decided.
func (e *Controller) runUnit(ctx context.Context, r *Repository, u promotion.Unit) (time.Time, error) {
	defer e.locks.lock(u)()
	s, err := e.opts.Gatherer.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	switch _, known := s.Unit(u); {
	case s.IsBatch(u):
		return e.runBatch(ctx, r, s, u)
	case known == nil && u.Component == promotion.BatchName && s.Pipeline(u.Pipeline) != nil:
		// Its components travel alone by now: each sees to what is left.
		return time.Time{}, e.opts.Store.Wake(ctx, wake.Strings(componentKeys(s, u.Pipeline)...)...)
	case known != nil && s.RunsAs(u) != u:
		return time.Time{}, e.wakeRunner(ctx, s, u)
	}
	c, d, err := e.evaluateUnit(ctx, s, u, false)
	if errors.Is(err, facts.ErrNoUnit) {
		if p := s.Pipeline(u.Pipeline); p != nil && len(p.Problems) > 0 {
			return time.Time{}, nil // it may only be that it can't be resolved right now
		}
		return time.Time{}, e.forgetUnit(ctx, u)
	}
	if err != nil {
		return time.Time{}, err
	}
	if err := e.storeEvaluation(ctx, c, d); err != nil {
		return time.Time{}, err
	}
	if err := e.fetchUnknown(ctx, r, c); err != nil {
		return time.Time{}, err
	}
	acted, err := e.performActions(ctx, c, d)
	if err != nil {
		return time.Time{}, err
	}
	if acted {
		// What was done is news: look again with fresh eyes.
		return e.opts.Clock.Now(), nil
	}
	if err := e.opts.Actor.Present(ctx, c, d); err != nil {
		return time.Time{}, err
	}
	return earliest(d.Next, c.RetryAt()), e.opts.Actor.DeleteLeftovers(ctx, c)
}

// earliest is the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fetchUnknown looks at the repository when Argo CD is ahead of what was fetched:
// the push's own event may be lost or late. The unit looks again after the fetch,
// also when it only brought a branch that isn't tracked. A revision that a fetch didn't bring
// (a hydrated branch, another repository) is asked for once.
func (e *Controller) fetchUnknown(ctx context.Context, r *Repository, c *facts.Evaluation) error {
	if !e.fetches.add(wake.ForUnit(c.Snapshot.RunsAs(c.Facts.Unit)), c.UnknownRevisions) {
		return nil
	}
	return e.opts.Store.Wake(ctx, wake.ForRepository(r.ID).String())
}

// evaluateUnit gathers facts and decides, answering looks until none is left. A
// component that travels with others is judged with them.
func (e *Controller) evaluateUnit(ctx context.Context, s *facts.Snapshot, u promotion.Unit, fresh bool) (*facts.Evaluation, *promotion.ComponentDecision, error) {
	if _, known := s.Unit(u); known != nil && s.RunsAs(u) != u {
		b, d, err := e.evaluateBatch(ctx, s, u, fresh)
		if err != nil {
			return nil, nil, err
		}
		if c, i := b.EvaluationOf(u.Component); c != nil {
			return c, componentDecision(d, i, c), nil
		}
	}
	c, err := e.opts.Gatherer.GatherUnit(ctx, s, u, fresh)
	if err != nil {
		return nil, nil, err
	}
	for range maxRounds {
		d := promotion.Decide(promotion.Facts{Components: []promotion.ComponentFacts{c.Facts}})
		looks := 0
		for _, a := range d.Components[0].Actions {
			if l, ok := a.(promotion.FactRequest); ok {
				looks++
				if err := e.opts.Gatherer.AnswerRequest(ctx, c, l); err != nil {
					return nil, nil, err
				}
			}
		}
		if looks == 0 {
			return c, componentDecision(&d, 0, c), nil
		}
	}
	return nil, nil, fmt.Errorf("judging %s asked for facts %d times without coming to an end", wake.UnitName(u), maxRounds)
}

// storeEvaluation writes down what was seen and decided, in one transaction.
func (e *Controller) storeEvaluation(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision) error {
	row, err := facts.PackView(c, d)
	if err != nil {
		return err
	}
	records, lives, err := e.opts.Gatherer.Records(ctx, c)
	if err != nil {
		return err
	}
	e.apps.setAwaiting(wake.ForUnit(c.Facts.Unit), waitsForArgoCD(d), c.UnreachableArgoCDs)
	return e.opts.Store.Tx(ctx, "judged", func(tx *store.Tx) error {
		if err := tx.PutObservations(ctx, c.Observations...); err != nil {
			return err
		}
		if err := tx.PutUnit(ctx, row); err != nil {
			return err
		}
		if err := e.opts.Gatherer.RecordQueued(ctx, tx, c, d); err != nil {
			return err
		}
		for _, p := range records {
			if _, err := tx.PutPromotion(ctx, p); err != nil {
				return err
			}
		}
		_, err := tx.AddEvents(ctx, append(lives, revertLimitEvents(c, d)...)...)
		return err
	})
}

// revertLimitEvents tells once a window that so many reverts were opened that everything holds.
func revertLimitEvents(c *facts.Evaluation, d *promotion.ComponentDecision) []store.Event {
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

// waitsForArgoCD says that a unit waits for Argo CD: every reconciliation is news for it.
func waitsForArgoCD(d *promotion.ComponentDecision) bool {
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

// performActions does the decision's actions but merges, for which it asks the
// repository's merge key. acted says that something was done that must be looked at.
func (e *Controller) performActions(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision) (acted bool, err error) {
	f := failures{}
	if acted, err = e.performUnitActions(ctx, c, d, f); err != nil {
		return acted, err
	}
	return acted, f.joinedErr()
}

// performUnitActions is perform of one component among others: what fails goes to the
// failures, where its environments are skipped. The error is the context's end.
func (e *Controller) performUnitActions(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, f failures) (acted bool, err error) {
	own := failures{}
	defer func() { f.addAll(own) }()
	for _, a := range d.Actions {
		env := promotion.EnvironmentOf(a)
		if own.hasFailed(env) {
			continue
		}
		switch a.(type) {
		case promotion.Merge:
			err = e.enqueueMerge(ctx, c.Snapshot.RunsAs(c.Facts.Unit))
		case promotion.Refresh, promotion.Sync:
			if err := e.opts.Actor.Do(ctx, c, d, a); err != nil {
				// The verdict waits and asks again; nothing else stands still for it.
				e.opts.Log.Warn("Argo CD could not be asked", zap.Error(err))
			}
			continue
		default:
			if err = e.opts.Actor.Do(ctx, c, d, a); err == nil {
				acted = true
			}
		}
		if err != nil && ctx.Err() != nil {
			return acted, err
		}
		own.recordFailure(env, err)
	}
	return acted, nil
}

// failures are what failed, by environment: what came first there is what the
// rest stands on, and what is elsewhere goes on.
type failures map[string]error

func (f failures) hasFailed(env string) bool { return f[env] != nil }

// recordFailure adds a failure. One that only moved meanwhile doesn't hide, nor soften, a
// real one of another component in the same environment.
func (f failures) recordFailure(env string, err error) {
	old := f[env]
	switch {
	case err == nil, old != nil && isStale(err) && !isStale(old):
	case old != nil && isStale(old) && !isStale(err):
		f[env] = err
	default:
		f[env] = errors.Join(old, err)
	}
}

// addAll adds others.
func (f failures) addAll(others failures) failures {
	for env, err := range others {
		f.recordFailure(env, err)
	}
	return f
}

// joinedErr is nil when nothing failed; where something really did, what only moved
// meanwhile isn't worth telling.
func (f failures) joinedErr() error {
	var again, broken error
	for _, env := range slices.Sorted(maps.Keys(f)) {
		if err := f[env]; isStale(err) {
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

// enqueueMerge asks the repository's merge key to merge for a unit.
func (e *Controller) enqueueMerge(ctx context.Context, u promotion.Unit) error {
	return e.opts.Store.Tx(ctx, "wish", func(tx *store.Tx) error {
		if err := tx.EnqueueMerge(ctx, u.Repo, wake.UnitName(u)); err != nil {
			return err
		}
		return tx.Wake(ctx, wake.ForMerge(u.Repo).String())
	})
}

// runMergeQueue serves the repository's merge wishes, one after the other: fetch, judge
// again with fresh facts, merge what is still to be merged.
func (e *Controller) runMergeQueue(ctx context.Context, r *Repository) (time.Time, error) {
	slot := "merge|" + r.ID
	ok, err := e.opts.Store.TakeSlot(ctx, slot, e.opts.Owner, mergeSlotTTL)
	if err != nil {
		return time.Time{}, err
	}
	if !ok {
		return e.opts.Clock.Now().Add(minRetryDelay), nil
	}
	defer func() {
		if err := e.opts.Store.FreeSlot(context.WithoutCancel(ctx), slot, e.opts.Owner); err != nil {
			e.opts.Log.Warn("the merge slot could not be given back; it comes free by itself", zap.Error(err))
		}
	}()
	queued, err := e.opts.Store.MergeQueue(ctx, r.ID)
	if err != nil {
		return time.Time{}, err
	}
	var failed error
	for _, w := range queued {
		u, ok := wake.ParseUnitName(w)
		var err error
		if ok {
			err = e.mergeUnit(ctx, r, u)
		}
		if err != nil && !isStale(err) {
			// Its wish stays; the others' don't wait for it.
			failed = errors.Join(failed, fmt.Errorf("merge for %s: %w", w, err))
			if ctx.Err() != nil || errors.Is(err, forge.ErrRateLimited) {
				break // nobody's would be served now
			}
			continue
		}
		again := e.opts.Clock.Now()
		if err != nil {
			again = again.Add(mergeRetryDelay)
		}
		if err := e.opts.Store.Tx(ctx, "wish-served", func(tx *store.Tx) error {
			if err := tx.DequeueMerge(ctx, r.ID, w); err != nil {
				return err
			}
			if !ok {
				return nil // nobody knows what it was
			}
			return tx.WakeAt(ctx, again, wake.ForUnit(u).String())
		}); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, failed
}

// mergeRetryDelay lets the forge settle after a merge that came too early: right
// after another one GitHub answers "Base branch was modified".
const mergeRetryDelay = 250 * time.Millisecond

// mergeSlotTTL bounds how long a lost process keeps a repository from merging.
const mergeSlotTTL = 2 * time.Minute

func (e *Controller) mergeUnit(ctx context.Context, r *Repository, u promotion.Unit) error {
	defer e.locks.lock(u)()
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return err
	}
	s, err := e.opts.Gatherer.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	if s.IsBatch(u) {
		return e.mergeBatch(ctx, r, s, u)
	}
	c, d, err := e.evaluateUnit(ctx, s, u, true)
	if errors.Is(err, facts.ErrNoUnit) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.storeEvaluation(ctx, c, d); err != nil {
		return err
	}
	for _, a := range d.Actions {
		if m, ok := a.(promotion.Merge); ok {
			return e.mergeEvaluated(ctx, r, c, d, m, func() error { return e.opts.Actor.Present(ctx, c, d) })
		}
	}
	return nil
}

// mergeEvaluated merges what was just judged.
func (e *Controller) mergeEvaluated(ctx context.Context, r *Repository, c *facts.Evaluation, d *promotion.ComponentDecision, m promotion.Merge, present func() error) error {
	// What is merged shows that its gates passed, also when the run that
	// wished for the merge died before it said so: the forge may require it.
	if err := present(); err != nil {
		return err
	}
	err := e.opts.Actor.Do(ctx, c, d, m)
	switch {
	case errors.Is(err, forge.ErrNotMergeable):
		// The forge's own rules stand in the way: the next look says which.
		e.opts.Log.Info("the forge refuses the merge", zap.Int("pull", m.Pull), zap.Error(err))
		if _, terr := e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, m.Pull); terr != nil {
			return terr
		}
		e.opts.Gatherer.RecordRefusedMerge(r.Repository, m.Pull, m.Head, err)
		return nil
	case err != nil:
		return err
	}
	return e.opts.Store.Wake(ctx, wake.ForRepository(r.ID).String()) // the branch has a new head
}

// componentKeys are the keys of a pipeline's components.
func componentKeys(s *facts.Snapshot, pipeline string) []wake.Key {
	var keys []wake.Key
	for _, u := range s.AllUnits() {
		if u.Pipeline == pipeline {
			keys = append(keys, wake.ForUnit(u))
		}
	}
	return keys
}
