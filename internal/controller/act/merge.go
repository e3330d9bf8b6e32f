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
func (a *Actor) mergePull(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, x promotion.Merge) error {
	r := c.Snapshot.Repo
	env := findEnv(c, x.Environment)
	if env.Tip != x.Tip {
		return fmt.Errorf("%w: %s is at %s", ErrStale, env.Branch, wording.Short(env.Tip))
	}
	in := a.newTextInput(ctx, c, d, x.Environment, x.Revert)
	in.Number = x.Pull
	pull := env.Open
	if x.Revert {
		pull = env.Revert
		if of := c.RevertedPulls[x.Pull]; of != nil {
			in.RevertedPull = of.Number
		}
		if err := a.readEvidence(ctx, c, x.Pull, &in); err != nil {
			return err
		}
	}
	in.Release, in.Name = pull.Release, pull.Name
	a.describeEdits(ctx, c, &in, c.HeadBases[x.Pull], c.HeadEdits[x.Pull])
	title, message := prtext.MergeMessage(in)
	landed, err := r.Forge.Merge(ctx, r.Name, forge.MergeRequest{Number: x.Pull, Head: x.Head, Method: c.Facts.Pipeline.Spec.Merge.Method, Title: title, Message: message})
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
	return a.recordMerge(ctx, c, x, landed)
}

func (a *Actor) recordMerge(ctx context.Context, c *facts.Evaluation, x promotion.Merge, landed string) error {
	env := findEnv(c, x.Environment)
	kind, release := promotion.KindPromotion, ""
	switch {
	case x.Revert:
		kind, release = promotion.KindRevert, env.Revert.Release
	case env.Open != nil:
		release = env.Open.Release
	}
	of := 0
	if promoted := c.RevertedPulls[x.Pull]; x.Revert && promoted != nil {
		of = promoted.Number
	}
	return a.opts.Store.Tx(ctx, "merged", func(tx *store.Tx) error {
		staged := false
		return eachMember(c, release, 0, func(c *facts.Evaluation, release string, _ int64) error {
			u := c.Facts.Unit
			p, ok, err := tx.PromotionByPull(ctx, wake.UnitName(u), u.Repo, x.Pull)
			if err != nil {
				return err
			}
			if ok && !staged && a.opts.Metrics != nil {
				a.opts.Metrics.Stage(x.Environment, "merged", c.Facts.Now.Sub(p.CreatedAt))
				staged = true
			}
			if of != 0 {
				if err := a.updatePromotion(ctx, tx, c, x.Environment, of, release, promotion.Reverted); err != nil {
					return err
				}
			}
			if err := a.putPromotionRow(ctx, tx, c, x.Environment, x.Pull, kind, release, "merged"); err != nil {
				return err
			}
			ev := newEvent(c, x.Environment, x.Pull, "merged", fmt.Sprintf("#%d merged into %s as %s", x.Pull, env.Branch, wording.Short(landed)))
			ev.IdempotencyKey = facts.MergedEventKey(u, x.Pull)
			_, err = tx.AddEvents(ctx, ev)
			return err
		})
	})
}
