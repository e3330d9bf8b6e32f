package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// pullHold is a hold that a command set on a pull request. The label shows it, and is
// where it is found again without the store; but anybody who may write takes a label
// off, and the command that lifts a hold asks for more.
type pullHold struct {
	By  string `json:"by"`
	Via string `json:"via,omitempty"` // as in history.HoldFile
}

// changePullHold sets or lifts a hold on a pull request. What shows it comes first and goes
// last, so that nobody finds a label missing that is only on its way.
func (e *Controller) changePullHold(ctx context.Context, r *Repository, o Command, set bool) error {
	key := facts.PullHoldKey(r.ID, o.Pull)
	if !set {
		if err := e.opts.Store.DeleteState(ctx, key); err != nil {
			return err
		}
		return r.Forge.RemoveLabel(ctx, r.Name, o.Pull, promotion.LabelHold)
	}
	raw, err := json.Marshal(pullHold{By: o.By, Via: holdVia(o)})
	if err != nil {
		return fmt.Errorf("keep who holds #%d: %w", o.Pull, err)
	}
	if err := r.Forge.AddLabels(ctx, r.Name, o.Pull, promotion.LabelHold); err != nil {
		return err
	}
	return e.opts.Store.PutState(ctx, key, raw)
}

// readPullHold is the hold that a command set on a pull request; false when there is none.
func (e *Controller) readPullHold(ctx context.Context, r *Repository, number int) (h pullHold, held bool, err error) {
	raw, held, err := e.opts.Store.State(ctx, facts.PullHoldKey(r.ID, number))
	if err != nil || !held {
		return h, false, err
	}
	if json.Unmarshal(raw, &h) != nil {
		h = pullHold{} // it holds all the same
	}
	return h, true, nil
}

// setPullHoldItself says that who lifts a hold on a pull request has set it.
func (e *Controller) setPullHoldItself(ctx context.Context, r *Repository, o Command) (bool, error) {
	h, held, err := e.readPullHold(ctx, r, o.Pull)
	return held && h.By != "" && h.Via == holdVia(o) && strings.EqualFold(h.By, o.By), err
}

// restorePullHold puts the label back that somebody took off by hand from a pull request
// which a command holds, and says why.
func (e *Controller) restorePullHold(ctx context.Context, r *Repository, number int) error {
	h, held, err := e.readPullHold(ctx, r, number)
	if err != nil || !held {
		return err
	}
	pr, err := e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, number) // the hold may be newer than what was read
	switch {
	case err != nil:
		return err
	case pr.State != forge.Open:
		return e.opts.Store.DeleteState(ctx, facts.PullHoldKey(r.ID, number))
	case pr.HasLabel(promotion.LabelHold):
		return nil
	}
	if err := r.Forge.AddLabels(ctx, r.Name, number, promotion.LabelHold); err != nil {
		return err
	}
	if _, err := r.Forge.CreateComment(ctx, r.Name, number, prtext.HoldIsBack(h.By)); err != nil {
		return err
	}
	_, err = e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, number)
	return err
}
