package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// holdPull puts a pull request on hold and gives the hold that stands then. One that stands
// already is never made weaker: a label that somebody set by hand has no end, and of two
// ends the later counts. What shows it comes first and goes last, so that nobody finds a
// label missing that is only on its way.
func (e *Controller) holdPull(ctx context.Context, r *Repository, o Command, end time.Time) (promotion.Hold, error) {
	h, held, err := facts.ReadPullHold(ctx, e.opts.Store, r.ID, o.Pull)
	if err != nil {
		return promotion.Hold{}, err
	}
	switch {
	case !held || h.IsOver(e.opts.Clock.Now()):
		pr, err := e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, o.Pull)
		if err != nil {
			return promotion.Hold{}, err
		}
		if !end.IsZero() && !held && pr.HasLabel(promotion.LabelHold) {
			return promotion.Hold{}, nil // by hand
		}
		h = facts.PullHold{By: o.By, Via: holdVia(o), Until: end}
	case end.IsZero() || !h.Until.IsZero() && end.After(h.Until):
		h.Until = end
	}
	raw, err := json.Marshal(h)
	if err != nil {
		return promotion.Hold{}, fmt.Errorf("keep who holds #%d: %w", o.Pull, err)
	}
	if err := r.Forge.AddLabels(ctx, r.Name, o.Pull, promotion.LabelHold); err != nil {
		return promotion.Hold{}, err
	}
	return promotion.Hold{By: h.By, Until: h.Until}, e.opts.Store.PutState(ctx, facts.PullHoldKey(r.ID, o.Pull), raw)
}

// liftPullHold lifts the hold on a pull request, whoever set it.
func (e *Controller) liftPullHold(ctx context.Context, r *Repository, number int) error {
	if err := e.opts.Store.DeleteState(ctx, facts.PullHoldKey(r.ID, number)); err != nil {
		return err
	}
	return r.Forge.RemoveLabel(ctx, r.Name, number, promotion.LabelHold)
}

// setPullHoldItself says that who lifts a hold on a pull request has set it.
func (e *Controller) setPullHoldItself(ctx context.Context, r *Repository, o Command) (bool, error) {
	h, held, err := facts.ReadPullHold(ctx, e.opts.Store, r.ID, o.Pull)
	return held && h.By != "" && h.Via == holdVia(o) && strings.EqualFold(h.By, o.By), err
}

// keepPullHold sees to a hold that a command set on a pull request: it puts the label back
// that somebody took off by hand, with a sentence, and takes it off at the hold's end. It
// gives when that is; zero: there is no hold, or it has no end.
func (e *Controller) keepPullHold(ctx context.Context, r *Repository, number int) (time.Time, error) {
	h, held, err := facts.ReadPullHold(ctx, e.opts.Store, r.ID, number)
	if err != nil || !held {
		return time.Time{}, err
	}
	pr, err := e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, number) // the hold may be newer than what was read
	switch {
	case err != nil:
		return time.Time{}, err
	case pr.State != forge.Open:
		return time.Time{}, e.opts.Store.DeleteState(ctx, facts.PullHoldKey(r.ID, number))
	case h.IsOver(e.opts.Clock.Now()):
		return time.Time{}, e.endPullHold(ctx, r, number)
	case pr.HasLabel(promotion.LabelHold):
		return h.Until, nil
	}
	if err := r.Forge.AddLabels(ctx, r.Name, number, promotion.LabelHold); err != nil {
		return time.Time{}, err
	}
	if _, err := r.Forge.CreateComment(ctx, r.Name, number, prtext.HoldIsBack(h.By)); err != nil {
		return time.Time{}, err
	}
	_, err = e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, number)
	return h.Until, err
}

// endPullHold takes off the label of a hold that has come to its end. Who held it is
// forgotten last: after a crash in between the label isn't taken for somebody's own.
func (e *Controller) endPullHold(ctx context.Context, r *Repository, number int) error {
	if err := r.Forge.RemoveLabel(ctx, r.Name, number, promotion.LabelHold); err != nil {
		return err
	}
	if _, err := e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, number); err != nil {
		return err
	}
	return e.opts.Store.DeleteState(ctx, facts.PullHoldKey(r.ID, number))
}
