package act

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// mergePull merges exactly the head that was judged, and nothing when the
// environment's branch has moved since.
func (a *Actor) mergePull(ctx context.Context, s *subject, x promotion.Merge) error {
	r, env := s.ev.Snapshot.Repo, s.ev.Environment(s.env)
	if env.Tip != x.Tip {
		return fmt.Errorf("%w: %s is at %s", ErrStale, env.Branch, wording.Short(env.Tip))
	}
	in, err := a.openInput(ctx, s)
	if err != nil {
		return err
	}
	title, message := prtext.MergeMessage(in)
	landed, err := r.Forge.Merge(ctx, r.Name, forge.MergeRequest{Number: x.Pull, Head: x.Head, Method: s.ev.Pipeline.Spec.Merge.Method, Title: title, Message: message})
	if err != nil {
		return err
	}
	pr, err := a.opts.Gatherer.RefreshPullRequest(ctx, r, x.Pull)
	if err != nil {
		return err
	}
	if err := r.Forge.DeleteBranch(ctx, r.Name, pr.Branch); err != nil {
		a.opts.Log.Warn("a merged branch could not be deleted; it is tried again", zap.String("branch", pr.Branch), zap.Error(err))
	}
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return err
	}
	return a.recordMerged(ctx, s, env.Branch, landed)
}

func (a *Actor) recordMerged(ctx context.Context, s *subject, branch, landed string) error {
	kind := promotion.KindPromotion
	if s.pull.Revert {
		kind = promotion.KindRevert
	}
	return a.opts.Store.Tx(ctx, "merged", func(tx *store.Tx) error {
		staged := false
		return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
			u := c.Facts.Unit
			p, ok, err := tx.PromotionByPull(ctx, wake.UnitName(u), u.Repo, s.number)
			if err != nil {
				return err
			}
			if ok && !staged && a.opts.Metrics != nil {
				a.opts.Metrics.Stage(s.env, "merged", c.Facts.Now.Sub(p.CreatedAt))
				staged = true
			}
			if of := s.pull.Reverts; s.pull.Revert && of != nil {
				if err := a.updatePromotion(ctx, tx, c, s.env, of.Number, m.Release, promotion.Reverted); err != nil {
					return err
				}
			}
			if err := a.putPromotionRow(ctx, tx, c, s.env, s.number, kind, m.Release, "merged"); err != nil {
				return err
			}
			ev := newEvent(c, s.env, s.number, "merged", fmt.Sprintf("#%d merged into %s as %s", s.number, branch, wording.Short(landed)))
			ev.IdempotencyKey = facts.MergedEventKey(u, s.number)
			_, err = tx.AddEvents(ctx, ev)
			return err
		})
	})
}
