package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// queuedReverts says of the units in a repository's queue which of them want to merge a revert.
var queuedReverts = record.Declare[record.Unit, bool](record.Declaration{
	Name: "queued-revert", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "The component waits for the merge of a revert, and goes before those that wait for a promotion's.",
})

// enqueueMerge asks the repository's merge key to merge for a unit; a revert before all promotions.
func (co *Controller) enqueueMerge(ctx context.Context, u promotion.Unit, revert bool) error {
	return co.opts.Store.Tx(ctx, "enqueueMerge", func(tx *store.Tx) error {
		if err := tx.EnqueueMerge(ctx, u.Repo, wake.UnitName(u)); err != nil {
			return err
		}
		if revert {
			if err := queuedReverts.Put(ctx, tx, record.Unit(u), true); err != nil {
				return err
			}
		}
		return tx.WakeAs(ctx, store.Urgent, wake.ForMerge(u.Repo).String())
	})
}

// awaitTurn has a unit wait for its turn to merge that would merge now but for the forge, which is
// still computing whether it can. It waits where others are merged before it. Each of them moves
// the branch, so that the forge computes anew. Hundreds that look again each time would use up its
// limits.
func (co *Controller) awaitTurn(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision) error {
	waits, revert := awaitsMergeability(ev, d)
	if !waits {
		return nil
	}
	queued, err := co.opts.Store.MergeQueue(ctx, ev.Unit.Repo)
	if err != nil || len(queued) == 0 {
		return err
	}
	return co.enqueueMerge(ctx, ev.Unit, revert)
}

// errUncomputed ends a turn in which the forge didn't come to tell whether it would merge.
var errUncomputed = fmt.Errorf("%w: the forge is still computing whether it can be merged", act.ErrStale)

// runMergeQueue serves the repository's merge wishes, one after the other: judge again with
// fresh facts, merge what is still to be merged. It fetches before the first and after
// whatever went wrong: a merge fetches what it made, and refuses to come when somebody else
// has pushed since.
func (co *Controller) runMergeQueue(ctx context.Context, r *Repository) (time.Time, error) {
	slot := "merge|" + r.ID
	ok, err := co.takeMergeSlot(ctx, slot)
	if err != nil {
		return time.Time{}, err
	}
	if !ok {
		return co.opts.Clock.Now().Add(minRetryDelay), nil
	}
	defer func() {
		if err := co.opts.Store.FreeSlot(context.WithoutCancel(ctx), slot, co.opts.Owner); err != nil {
			co.opts.Log.Warn("the merge slot could not be given back; it comes free by itself", zap.Error(err))
		}
	}()
	queued, err := co.opts.Store.MergeQueue(ctx, r.ID)
	if err != nil {
		return time.Time{}, err
	}
	var failed error
	isFetched, served := false, map[string]bool{}
	for {
		w, err := co.nextMerge(ctx, r.ID, queued, served)
		if err != nil || w == "" {
			return time.Time{}, errors.Join(failed, err)
		}
		// The merges before may have taken longer than the slot holds.
		if ok, err := co.takeMergeSlot(ctx, slot); err != nil || !ok {
			return co.opts.Clock.Now().Add(minRetryDelay), errors.Join(failed, err)
		}
		served[w] = true
		u, ok := wake.ParseUnitName(w)
		if ok {
			err = co.mergeUnit(ctx, r, u, !isFetched)
			isFetched = err == nil || errors.Is(err, errUncomputed)
		}
		if err != nil && !isStale(err) {
			// Its wish stays; the others' don't wait for it.
			failed = errors.Join(failed, fmt.Errorf("merge for %s: %w", w, err))
			if ctx.Err() != nil || errors.Is(err, forge.ErrRateLimited) {
				return time.Time{}, failed // no turn would be served now
			}
			continue
		}
		again := co.opts.Clock.Now().Add(co.mergeDelay(w, err != nil))
		if err := co.opts.Store.Tx(ctx, "dequeueMerges", func(tx *store.Tx) error {
			if err := tx.DequeueMerge(ctx, r.ID, w); err != nil {
				return err
			}
			if !ok {
				return nil // nobody knows what it was
			}
			if err := queuedReverts.Drop(ctx, tx, record.Unit(u)); err != nil {
				return err
			}
			return tx.WakeAt(ctx, again, wake.ForUnit(u).String())
		}); err != nil {
			return time.Time{}, err
		}
	}
}

// nextMerge is whose turn it is among the unserved units in a repository's queue. Units that want
// to merge a revert come first, also where that came up after the queue was read, so that none
// waits behind hundreds of promotions. Empty: all have been served.
func (co *Controller) nextMerge(ctx context.Context, repo string, queued []string, served map[string]bool) (string, error) {
	reverts, err := queuedReverts.List(ctx, co.opts.Store, record.Within{Repo: repo})
	if err != nil {
		return "", err
	}
	for i := range reverts {
		if w := wake.UnitName(promotion.Unit(reverts[i].About)); !served[w] {
			return w, nil
		}
	}
	i := slices.IndexFunc(queued, func(w string) bool { return !served[w] })
	if i < 0 {
		return "", nil
	}
	return queued[i], nil
}

// mergeRetryDelay lets the forge settle after a merge that came too early: right
// after another one GitHub answers "Base branch was modified".
const mergeRetryDelay = 250 * time.Millisecond

// mergeDelay is how long a unit rests after its turn to merge. It is zero, or twice as long each
// time that the world had moved or another merge wasn't over.
func (co *Controller) mergeDelay(unit string, stale bool) time.Duration {
	co.mu.Lock()
	defer co.mu.Unlock()
	if !stale {
		delete(co.staleMerges, unit)
		return 0
	}
	co.staleMerges[unit]++
	return max(mergeRetryDelay, staleDelay(co.staleMerges[unit]))
}

// mergeSlotLeases bounds how long a lost process keeps a repository from merging: two
// minutes with the store's usual lease.
const mergeSlotLeases = 4

// takeMergeSlot takes, or goes on having, what one process at a time has that merges in a
// repository.
func (co *Controller) takeMergeSlot(ctx context.Context, slot string) (bool, error) {
	return co.opts.Store.TakeSlot(ctx, slot, co.opts.Owner, mergeSlotLeases*co.opts.Lease)
}

// mergeUnit merges one pull request of a unit that, evaluated again, after a fetch where one
// is due, may be merged.
func (co *Controller) mergeUnit(ctx context.Context, r *Repository, u promotion.Unit, fetch bool) error {
	unlock, err := co.units.Lock(ctx, u)
	if err != nil {
		return err
	}
	defer unlock()
	if fetch {
		if _, err := co.fetch(ctx, r); err != nil {
			return err
		}
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	if s.RunsAs(u) != u {
		return nil // it is merged for all of its pipeline by now
	}
	co.apps.setTargets(s, co.opts.Gatherer.ArgoCDs.ArgoCDOf)
	for delay := firstMergeableDelay; ; delay *= 2 {
		clock := co.opts.Store.ReadClock()
		ev, d, err := co.opts.Gatherer.Evaluate(ctx, s, u, true)
		if errors.Is(err, branch.ErrNoUnit) {
			return nil
		}
		if err != nil {
			return err
		}
		// All but the merge is left to the unit's own run, for which every state that was heard of
		// stays news.
		if err := co.storeEvaluation(ctx, ev, d, nil, clock); err != nil {
			return err
		}
		for _, step := range d.Steps() {
			if m, ok := step.Action.(promotion.Merge); ok {
				return co.mergeEvaluated(ctx, r, ev, d, step, m)
			}
		}
		switch waits, _ := awaitsMergeability(ev, d); {
		case !waits:
			return nil
		case delay > lastMergeableDelay:
			return errUncomputed
		}
		if !co.sleepFor(ctx, delay) {
			return ctx.Err()
		}
	}
}

// A merge moves the branch, and the forge computes anew, for a moment, whether the next pull
// request can be merged. That one is read again for so long before another one's turn comes. One
// that left the queue each time would wait for longer and longer.
const (
	firstMergeableDelay = 250 * time.Millisecond
	lastMergeableDelay  = time.Second
)

// awaitsMergeability says that a pull request would be merged but for the forge, which is still
// computing whether it can be. The forge's own merge queue finds that out for its members. revert
// says that one of them is a revert.
func awaitsMergeability(ev *facts.Evaluation, d *promotion.Decision) (waits, revert bool) {
	awaits := func(number int, gates []policies.Result) bool {
		p := ev.OpenPulls[number]
		if p == nil || p.Queued || p.UncomputedSince.IsZero() || !ev.Environment(p.Environment).MergesByItself(p.Revert) {
			return false
		}
		return !slices.ContainsFunc(gates, func(g policies.Result) bool {
			return g.Outcome != policies.Pass && g.Gate != promotion.GateMergeable
		})
	}
	for i := range d.Components {
		for _, st := range d.Components[i].Envs {
			if awaits(st.Revert, st.RevertGates) {
				return true, true
			}
			waits = waits || awaits(st.Pull, st.Gates)
		}
	}
	return waits, false
}

// mergeEvaluated merges what was just evaluated.
func (co *Controller) mergeEvaluated(ctx context.Context, r *Repository, ev *facts.Evaluation, d *promotion.Decision, step promotion.Step,
	m promotion.Merge) error {
	// A merged pull request shows that its gates passed, also when the run that queued it died before
	// it said so: the forge may require it. A comment that is put off comes with the unit's next
	// look, after this.
	_, err := co.opts.Actor.Present(ctx, ev, d)
	if err != nil {
		return err
	}
	_, err = co.opts.Actor.Do(ctx, ev, d, step)
	switch {
	case errors.Is(err, forge.ErrNotMergeable):
		// The forge's own rules stand in the way: the next look says which.
		co.opts.Log.Info("the forge refuses the merge", zap.Int("pull", m.Pull), zap.Error(err))
		if _, terr := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, m.Pull); terr != nil {
			return terr
		}
		return co.opts.Gatherer.PullCache.RecordRefusedMerge(ctx, r.Repository, m.Pull, m.Head, err)
	case err != nil:
		return err
	}
	return co.opts.Store.Wake(ctx, wake.ForRepository(r.ID).String()) // the branch has a new head
}
