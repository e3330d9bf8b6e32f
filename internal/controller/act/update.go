package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// updateHead brings a pull request up to date with its base, so that it can be merged once the
// forge has checked it again. Until then it is its turn. Its files are as they were on its base, so
// the same edits are made on the newest commit.
func (a *Actor) updateHead(ctx context.Context, s *subject, x promotion.Merge) error {
	r := s.ev.Snapshot.Repo
	if _, err := a.ensureOpen(ctx, r, x.Pull, x.Head); err != nil {
		return err
	}
	if err := a.opts.Gatherer.PullCache.TakeUpdateTurn(ctx, a.opts.Store, r, s.pull.PR.Base, x.Pull); err != nil {
		return err
	}
	if x.KeepApprovals {
		err := r.Forge.UpdateBranch(ctx, r.Name, x.Pull, x.Head)
		if err == nil {
			// It may do that later: the run that sees its new head says so.
			if err := a.opts.Gatherer.PullCache.RecordUpdateSent(ctx, a.opts.Store, r, s.pull.PR.Base, x.Pull, x.Head); err != nil {
				return err
			}
			_, err = a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, x.Pull)
		}
		if !errors.Is(err, forge.ErrUnsupported) {
			return err
		}
	}
	head, err := a.recomposeOnTip(ctx, s, x)
	if err != nil {
		return err
	}
	pr, err := a.refreshPushed(ctx, s)
	if err != nil {
		return err
	}
	return a.opts.Store.Tx(ctx, "updated", func(tx *store.Tx) error {
		if !x.Revert {
			if err := putOnlyPushed(ctx, tx, s, pr, head); err != nil {
				return err
			}
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			_, err := tx.AddEvents(ctx, UpdatedEvent(c, s.env, s.pull.PR, x.Head))
			return err
		})
	})
}

// UpdatedEvent says that a pull request was brought up to date from a head.
func UpdatedEvent(c *facts.ComponentEvaluation, env string, pr *forge.PullRequest, from string) store.Event {
	e := newEvent(c, env, pr.Number, event.Updated, fmt.Sprintf("#%d brought up to date with %s, to be merged", pr.Number, pr.Base))
	e.IdempotencyKey = fmt.Sprintf("updated|%s|%d|%s", wake.UnitName(c.Facts.Unit), pr.Number, from)
	return e
}

// recomposeOnTip composes a pull request anew on the newest commit, with the edits that it has.
func (a *Actor) recomposeOnTip(ctx context.Context, s *subject, x promotion.Merge) (head string, err error) {
	if x.Revert {
		in, err := a.openInput(ctx, s)
		if err != nil {
			return "", err
		}
		return a.pushBranch(ctx, s, &in, s.pull.PR.Branch, x.Tip, s.pull.Edits)
	}
	return a.pushPromotion(ctx, s, a.newTextInput(s, false), x.Tip, s.pull.Edits)
}
