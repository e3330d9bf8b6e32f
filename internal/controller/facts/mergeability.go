package facts

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// describeMergeability fills in what the forge said of a merge of an open pull request onto its
// branch's tip.
func (o *Gatherer) describeMergeability(ev *Evaluation, p *OpenPull, tip string) {
	repo, mergeable := ev.Snapshot.Repo, p.PR.Mergeable
	if mergeable == forge.MergeableDirty {
		if p.Stale = p.Base != tip; !p.Stale {
			// Composed on the newest that is known here, it can't conflict: the forge knows
			// something newer, or answers about what was.
			mergeable = forge.MergeableUnknown
			o.forgetMergeable(repo, p.Number)
			for _, c := range ev.Components[:min(1, len(ev.Components))] {
				c.requestFetch(repo, fmt.Sprintf("what conflicts with #%d at %s", p.Number, p.Head))
			}
		}
	}
	p.Mergeable, p.MergeNote = promotion.MergeState(mergeable), p.PR.MergeReason
	p.UncomputedSince = o.uncomputedSince(repo, p.Number, p.Head, mergeable, tip)
}

// answerMergeability reads the open pull requests of an environment again of which it isn't
// known whether the forge would merge them.
func (o *Gatherer) answerMergeability(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	for _, view := range []*promotion.Pull{env.Open, env.Revert} {
		if view == nil || !view.MergeUnread {
			continue
		}
		p := c.OpenPulls[view.Number]
		pr, err := o.RefreshPullRequest(ctx, c.Snapshot.Repo, view.Number)
		if err != nil {
			return err
		}
		if pr.State != forge.Open || pr.Head != view.Head {
			return fmt.Errorf("#%d is another than was looked at: %w", view.Number, forge.ErrConflict)
		}
		p.PR.Mergeable, p.PR.MergeReason = pr.Mergeable, pr.MergeReason
		o.describeMergeability(c.Evaluation, p, env.Tip)
		for _, other := range c.Components {
			if at := other.Env(env.Name); at != nil {
				for _, v := range []*promotion.Pull{at.Open, at.Revert, at.WrongKind, at.BatchPull, &p.Pull} {
					if v != nil && v.Number == p.Number {
						v.Mergeable, v.MergeNote, v.UncomputedSince, v.Stale, v.MergeUnread = p.Mergeable, p.MergeNote, p.UncomputedSince, p.Stale, false
					}
				}
			}
		}
	}
	return nil
}
