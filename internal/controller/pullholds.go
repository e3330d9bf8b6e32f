package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// holdPull puts a pull request on hold and gives the strongest hold that stands then. Each holder's
// own stands beside the others'; a label that somebody set by hand has no end. The label comes
// first and goes last, so that it is never missing where it is only on its way.
func (co *Controller) holdPull(ctx context.Context, r *Repository, o Command, end time.Time) (promotion.Hold, error) {
	now := co.opts.Clock.Now()
	all, err := facts.ReadPullHolds(ctx, co.opts.Store, r.ID, o.Pull)
	if err != nil {
		return promotion.Hold{}, err
	}
	if !end.IsZero() && len(all) == 0 {
		pr, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, o.Pull)
		if err != nil {
			return promotion.Hold{}, err
		}
		if pr.HasLabel(promotion.LabelHold) {
			unfinished, err := labelling.Has(ctx, co.opts.Store, record.OfPull(r.ID, o.Pull))
			if err != nil || !unfinished {
				return promotion.Hold{}, err // by hand
			}
		}
		if err := labelling.Put(ctx, co.opts.Store, record.OfPull(r.ID, o.Pull), o.Source); err != nil {
			return promotion.Hold{}, err
		}
	}
	active := promotion.AddHold(promotion.ListActive(all, now), promotion.Holding{ByID: o.ByID, Via: holdVia(o), Subject: o.Subject,
		Hold: promotion.Hold{By: o.By, At: cmp.Or(o.At, now), Until: end, Reason: o.Command.Reason}})
	if err := r.Forge.AddLabels(ctx, r.Name, o.Pull, promotion.LabelHold); err != nil {
		return promotion.Hold{}, err
	}
	strongest, _ := promotion.FindStrongest(active)
	return strongest.Hold, co.storePullHolds(ctx, r, o.Pull, active)
}

func (co *Controller) storePullHolds(ctx context.Context, r *Repository, number int, active []promotion.Holding) error {
	about := record.OfPull(r.ID, number)
	return co.opts.Store.Tx(ctx, "hold", func(tx *store.Tx) error {
		return cmp.Or(facts.PullHolds.Put(ctx, tx, about, active), labelling.Drop(ctx, tx, about))
	})
}

// labelling names, while it isn't finished, a command (by its source). For it a pull request gets
// the label of a hold, or loses that of a lifted one. Where that is done again, the label isn't
// taken for one that a person set by hand.
var labelling = record.Declare[record.Pull, string](record.Declaration{
	Name: "labelling", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "The command for which the label of a hold is being set or removed.",
})

// isLabelling says that the label was about to be set, or taken off, for this command.
func (co *Controller) isLabelling(ctx context.Context, r *Repository, number int, source string) (bool, error) {
	of, ok, err := labelling.Get(ctx, co.opts.Store, record.OfPull(r.ID, number))
	return ok && of == source, err
}

// forgetPullHold forgets who holds a pull request.
func (co *Controller) forgetPullHold(ctx context.Context, r *Repository, number int) error {
	return co.opts.Store.Tx(ctx, "unhold", func(tx *store.Tx) error {
		about := record.OfPull(r.ID, number)
		return cmp.Or(facts.PullHolds.Drop(ctx, tx, about), labelling.Drop(ctx, tx, about))
	})
}

// liftPullHold lifts holds on a pull request, and gives the strongest of those that stand
// then; without any the label goes too. A command that comes late doesn't take off a label
// that nobody is known to have set by a command: it may be newer.
func (co *Controller) liftPullHold(ctx context.Context, r *Repository, o Command) (promotion.Hold, error) {
	number, lift, about := o.Pull, o.lift(), record.OfPull(r.ID, o.Pull)
	all, err := facts.ReadPullHolds(ctx, co.opts.Store, r.ID, number)
	if err != nil {
		return promotion.Hold{}, err
	}
	now := co.opts.Clock.Now()
	if len(all) == 0 {
		own, err := co.isLabelling(ctx, r, number, o.Source)
		switch {
		case err != nil:
			return promotion.Hold{}, err
		case own: // it is done again
		case lift.OwnOnly:
			return promotion.Hold{}, nil
		case lift.IsLate(now):
			if err := co.checkUnlabelled(ctx, r, number, lift.Given); err != nil {
				return promotion.Hold{}, err
			}
		}
	}
	active := lift.Of(promotion.ListActive(all, now))
	if strongest, held := promotion.FindStrongest(active); held {
		return strongest.Hold, co.storePullHolds(ctx, r, number, active)
	}
	err = co.opts.Store.Tx(ctx, "lift", func(tx *store.Tx) error {
		return cmp.Or(facts.PullHolds.Drop(ctx, tx, about), labelling.Put(ctx, tx, about, o.Source))
	})
	if err != nil {
		return promotion.Hold{}, err
	}
	if err := r.Forge.RemoveLabel(ctx, r.Name, number, promotion.LabelHold); err != nil {
		return promotion.Hold{}, err
	}
	return promotion.Hold{}, labelling.Drop(ctx, co.opts.Store, about)
}

// checkUnlabelled refuses what was written some time ago and would take off a label now.
func (co *Controller) checkUnlabelled(ctx context.Context, r *Repository, number int, written time.Time) error {
	pr, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, number)
	if err != nil {
		return err
	}
	if pr.HasLabel(promotion.LabelHold) {
		return newRefusal("that was written at %s and is only carried out now; #%d is on hold by its label %s, which somebody may have "+
			"set since: write it again, or take the label off",
			written.UTC().Format(time.RFC3339), number, promotion.LabelHold)
	}
	return nil
}

// keepPullHold keeps a hold that a command set on a pull request. It restores the label that a
// person removed by hand, with a sentence, and removes it at the hold's end. Closing a pull request
// lifts no hold: it may be opened again. It gives when the hold ends; zero: there is no hold, or it
// has no end.
func (co *Controller) keepPullHold(ctx context.Context, r *Repository, number int) (time.Time, error) {
	all, err := facts.ReadPullHolds(ctx, co.opts.Store, r.ID, number)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	h, held := promotion.FindStrongest(promotion.ListActive(all, co.opts.Clock.Now()))
	pr, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, number) // the hold may be newer than what was read
	switch {
	case err != nil:
		return time.Time{}, err
	case pr.State == forge.Merged:
		return time.Time{}, co.forgetPullHold(ctx, r, number)
	case !held:
		return time.Time{}, co.endPullHold(ctx, r, number)
	case pr.State != forge.Open || pr.HasLabel(promotion.LabelHold):
		return h.Until, nil
	}
	if err := r.Forge.AddLabels(ctx, r.Name, number, promotion.LabelHold); err != nil {
		return time.Time{}, err
	}
	co.announce(ctx, r, number, "the label is back at "+co.opts.Clock.Now().Format(time.RFC3339Nano), prtext.HoldIsBack(h.By))
	_, err = co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, number)
	return h.Until, err
}

// endPullHold takes off the label of a hold that has come to its end. The holder is forgotten last:
// after a crash in between the label isn't taken for one that a person set.
func (co *Controller) endPullHold(ctx context.Context, r *Repository, number int) error {
	if err := r.Forge.RemoveLabel(ctx, r.Name, number, promotion.LabelHold); err != nil {
		return err
	}
	if _, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, number); err != nil {
		return err
	}
	return co.forgetPullHold(ctx, r, number)
}

// forgetClosedHolds forgets who holds the pull requests that are merged, and those that have been
// closed for so long that their history is forgotten too.
func (co *Controller) forgetClosedHolds(ctx context.Context, tx *store.Tx, r *Repository) error {
	held, err := facts.PullHolds.List(ctx, tx, record.Within{Repo: r.ID})
	if err != nil {
		return err
	}
	labelled, err := labelling.List(ctx, tx, record.Within{Repo: r.ID})
	if err != nil {
		return err
	}
	numbers := map[int]bool{}
	for i := range held {
		numbers[held[i].About.Number] = true
	}
	for i := range labelled {
		numbers[labelled[i].About.Number] = true
	}
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		pr, known, err := tx.Pull(ctx, r.ID, number)
		if err != nil {
			return err
		}
		isOld := pr.State == string(forge.Closed) && pr.ClosedAt.Before(co.opts.Clock.Now().Add(-co.opts.Retention))
		if !known || !isOld && pr.State != string(forge.Merged) {
			continue
		}
		about := record.OfPull(r.ID, number)
		if err := cmp.Or(facts.PullHolds.Drop(ctx, tx, about), labelling.Drop(ctx, tx, about)); err != nil {
			return err
		}
	}
	return nil
}
