package act

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// openRevert opens the revert of a landed promotion.
func (a *Actor) openRevert(ctx context.Context, s *subject, x promotion.OpenRevert) error {
	free, err := a.takeRevertSlot(ctx, s)
	if err != nil {
		return err
	}
	defer free()
	u := s.unit()
	in := a.newTextInput(s, true)
	in.Release, in.Name, in.RevertedPull, in.Evidence, in.By, in.Reason = x.Release, s.name(), x.Pull, x.Evidence, x.By, x.Reason
	branch := promotion.RevertBranch(u.Pipeline, s.env, u.Component, x.Release)
	pr, _, err := a.openPull(ctx, s, &in, branch, x.Tip, s.ev.RestoredEdits(s.env, x.Pull, s.members))
	if err != nil {
		return err
	}
	if a.opts.Metrics != nil {
		a.opts.Metrics.Reverted(s.env)
	}
	return a.opts.Store.Tx(ctx, "revert-opened", func(tx *store.Tx) error {
		if err := openings.Drop(ctx, tx, s.opening()); err != nil {
			return err
		}
		if err := a.putEvidence(ctx, tx, u.Repo, pr.Number, x); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
			if err := a.recordOpened(ctx, tx, c, s.env, pr.Number, promotion.KindRevert, m); err != nil {
				return err
			}
			if err := a.updatePromotion(ctx, tx, c, s.env, x.Pull, m.Release, promotion.Reverting); err != nil {
				return err
			}
			ev := newEvent(c, s.env, pr.Number, event.RevertOpened, fmt.Sprintf("#%d opened: takes #%d back from %s", pr.Number,
				x.Pull, s.env))
			ev.IdempotencyKey = facts.OpenedEventKey(c.Facts.Unit, pr.Number)
			_, err := tx.AddEvents(ctx, ev)
			return err
		})
	})
}

// recomposeRevert composes an open revert anew on the newest commit.
func (a *Actor) recomposeRevert(ctx context.Context, s *subject, x promotion.RecomposeRevert) error {
	r := s.ev.Snapshot.Repo
	if s.pull.Reverts == nil || s.pull.Head != x.Head {
		return fmt.Errorf("%w: the revert #%d", ErrStale, x.Pull)
	}
	if _, err := a.ensureOpen(ctx, r, x.Pull, x.Head); err != nil {
		return err
	}
	edits, err := a.opts.Gatherer.ComposeRevertOnto(ctx, s.ev, s.pull, x.Tip)
	if err != nil {
		return err
	}
	in := a.newTextInput(s, true)
	if err := a.readEvidence(ctx, s, &in); err != nil {
		return err
	}
	a.describeEdits(ctx, s, &in, effects.Commits{Base: x.Tip}, edits)
	if _, err := a.pushBranch(ctx, s, &in, s.pull.PR.Branch, x.Tip, edits); err != nil {
		return err
	}
	_, err = a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, x.Pull)
	return err
}
