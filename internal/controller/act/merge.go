package act

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// mergePull merges exactly the head that was judged, and nothing when what it was
// judged on has moved since.
func (a *Actor) mergePull(ctx context.Context, s *subject, x promotion.Merge) error {
	r, env := s.ev.Snapshot.Repo, s.ev.Environment(s.env)
	in, err := a.openInput(ctx, s)
	if err != nil {
		return err
	}
	moved, err := a.opts.Gatherer.MovedBranches(ctx, s.ev, s.env)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		return fmt.Errorf("%w: somebody pushed to %s while #%d was judged", ErrStale, strings.Join(moved, ", "), x.Pull)
	}
	title, message := prtext.MergeMessage(in)
	landed, err := r.Forge.Merge(ctx, r.Name, forge.MergeRequest{Number: x.Pull, Head: x.Head, Method: s.ev.Pipeline.Spec.Merge.Method, Title: r.Words(title), Message: r.Words(message)})
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
	unjudged, err := whyUnjudged(ctx, r.Mirror, s.number, landed, x.Tip)
	if err != nil {
		return err
	}
	if unjudged != "" {
		a.opts.Log.Warn(unjudged, unitFields(s.unit())...)
	}
	return a.recordMerged(ctx, s, env.Branch, landed, unjudged)
}

// whyUnjudged says that what landed didn't land on the commit that it was judged on:
// a forge pins a merge's head and not its base, so that a push in the very same moment
// can't be kept from coming between. "" when it did.
func whyUnjudged(ctx context.Context, m *git.Mirror, number int, landed, tip string) (string, error) {
	info, err := m.Commit(ctx, landed)
	if err != nil {
		return "", fmt.Errorf("look at what #%d landed as: %w", number, err)
	}
	if len(info.Parents) == 0 || info.Parents[0] == tip {
		return "", nil
	}
	return fmt.Sprintf("#%d landed on %s and was judged on %s: somebody pushed in the same moment; look at what came between", number, wording.Short(info.Parents[0]), wording.Short(tip)), nil
}

// recordMerged writes down that it was merged, and what is wrong with that, if anything.
func (a *Actor) recordMerged(ctx context.Context, s *subject, branch, landed, unjudged string) error {
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
			events := []store.Event{ev}
			if unjudged != "" {
				ev = newEvent(c, s.env, s.number, "unjudged", unjudged)
				ev.IdempotencyKey = fmt.Sprintf("unjudged|%s|%d|%s", wake.UnitName(u), s.number, landed)
				events = append(events, ev)
			}
			_, err = tx.AddEvents(ctx, events...)
			return err
		})
	})
}
