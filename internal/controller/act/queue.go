package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline/event"
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
	pr, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, x.Pull)
	if err == nil && pr.State != forge.Open {
		err = facts.DropJoinedQueue(ctx, a.opts.Store, r.ID, x.Pull)
	}
	if left != nil || err != nil {
		return errors.Join(left, err)
	}
	return a.recordLeft(ctx, s, fmt.Sprintf("#%d left the forge's merge queue: %s", x.Pull, x.Why))
}

// joinedQueue reads the place of a head that joined the forge's merge queue, and records that it
// joined even where that fails. Until the place is read it counts as queued.
func (a *Actor) joinedQueue(ctx context.Context, s *subject, head string) error {
	at := a.opts.Now()
	ctx = forge.WithMergeQueue(ctx) // nobody may have written down yet that there is one
	_, unread := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, s.ev.Snapshot.Repo, s.number)
	return errors.Join(a.recordJoined(ctx, s, head, at), unread)
}

// recordJoined writes down that a head joined the forge's merge queue.
func (a *Actor) recordJoined(ctx context.Context, s *subject, head string, at time.Time) error {
	message := fmt.Sprintf("#%d joined the forge's merge queue into %s", s.number, s.ev.Environment(s.env).Branch)
	return a.opts.Store.Tx(ctx, "queued", func(tx *store.Tx) error {
		if err := facts.PutJoinedQueue(ctx, tx, s.unit(), s.number, head, s.pull.Revert, at); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			_, err := tx.AddEvents(ctx, newEvent(c, s.env, s.number, event.Queued, message))
			return err
		})
	})
}

// recordLeft writes down that a pull request left the forge's merge queue: by what it was judged
// is over.
func (a *Actor) recordLeft(ctx context.Context, s *subject, message string) error {
	return a.opts.Store.Tx(ctx, "unqueued", func(tx *store.Tx) error {
		if err := s.forgetMerging(ctx, tx); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			_, err := tx.AddEvents(ctx, newEvent(c, s.env, s.number, event.Unqueued, message))
			return err
		})
	})
}

// forgetMerging forgets by what a merge is judged that isn't about to be made any more.
func (s *subject) forgetMerging(ctx context.Context, tx *store.Tx) error {
	return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
		return facts.Merging.Drop(ctx, tx, facts.OfMerge(c.Facts.Unit, s.number))
	})
}
