package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// leaveQueue takes a pull request out of the forge's merge queue. Where it has landed by now,
// or is about to, that is forge.ErrConflict.
func (a *Actor) leaveQueue(ctx context.Context, s *subject, x promotion.LeaveQueue) error {
	r := s.ev.Snapshot.Repo
	// First: if the process dies in between, it isn't taken for what the forge dropped.
	err := a.opts.Store.Tx(ctx, "leaveQueue", func(tx *store.Tx) error { return facts.PutLeftQueue(ctx, tx, r.ID, x.Pull, s.pull.PR.Head) })
	if err != nil {
		return err
	}
	left := r.Forge.LeaveQueue(forge.WithPriority(ctx, forge.PriorityUrgent), r.Name, x.Pull)
	if left != nil && !errors.Is(left, forge.ErrConflict) {
		return left
	}
	pr, err := a.opts.Gatherer.RefreshPullRequest(ctx, r, x.Pull)
	if err == nil && pr.State != forge.Open {
		err = a.opts.Store.DeleteState(ctx, facts.JoinedQueueKey(r.ID, x.Pull))
	}
	if left != nil || err != nil {
		return errors.Join(left, err)
	}
	return a.recordLeft(ctx, s, fmt.Sprintf("#%d left the forge's merge queue: %s", x.Pull, x.Why))
}

// recordJoined writes down that a head joined the forge's merge queue, before anything else may fail,
// and has the pull request read again: until then it counts as queued.
func (a *Actor) recordJoined(ctx context.Context, s *subject, head, message string) error {
	counts := s.unit().Pipeline
	if s.pull.Revert {
		counts = ""
	}
	return a.opts.Store.Tx(ctx, "queued", func(tx *store.Tx) error {
		repo := s.ev.Snapshot.Repo.ID
		if err := facts.PutJoinedQueue(ctx, tx, repo, s.number, head, counts, a.opts.Now()); err != nil {
			return err
		}
		if err := tx.WakeAs(ctx, store.Urgent, wake.ForPull(repo, s.number).String()); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			_, err := tx.AddEvents(ctx, newEvent(c, s.env, s.number, "queued", message))
			return err
		})
	})
}

// recordLeft writes down that a pull request left the forge's merge queue: by what it was judged
// is over.
func (a *Actor) recordLeft(ctx context.Context, s *subject, message string) error {
	return a.opts.Store.Tx(ctx, "unqueued", func(tx *store.Tx) error {
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			if err := tx.DeleteState(ctx, facts.MergingKey(c.Facts.Unit, s.number)); err != nil {
				return err
			}
			_, err := tx.AddEvents(ctx, newEvent(c, s.env, s.number, "unqueued", message))
			return err
		})
	})
}
