package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// leaveQueue takes a pull request out of the forge's merge queue. Where it has landed by now,
// or is about to, that is forge.ErrConflict.
func (a *Actor) leaveQueue(ctx context.Context, s *subject, x promotion.LeaveQueue) error {
	r := s.ev.Snapshot.Repo
	left := r.Forge.LeaveQueue(forge.WithPriority(ctx, forge.PriorityUrgent), r.Name, x.Pull)
	if left != nil && !errors.Is(left, forge.ErrConflict) {
		return left
	}
	_, err := a.opts.Gatherer.RefreshPullRequest(ctx, r, x.Pull)
	if left != nil || err != nil {
		return errors.Join(left, err)
	}
	return a.recordQueued(ctx, s, "unqueued", fmt.Sprintf("#%d left the forge's merge queue: %s", x.Pull, x.Why))
}

// recordQueued writes down that a pull request joined the forge's merge queue, or left it.
func (a *Actor) recordQueued(ctx context.Context, s *subject, kind, message string) error {
	return a.opts.Store.Tx(ctx, kind, func(tx *store.Tx) error {
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			if kind == "unqueued" { // by what it was judged is over
				if err := tx.DeleteState(ctx, facts.MergingKey(c.Facts.Unit, s.number)); err != nil {
					return err
				}
			}
			_, err := tx.AddEvents(ctx, newEvent(c, s.env, s.number, kind, message))
			return err
		})
	})
}
