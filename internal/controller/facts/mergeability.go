package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// describeMergeability fills in what the forge said of a merge of an open pull request onto its
// environment's tip, and which of its own rules keep it from one.
func (ga *Gatherer) describeMergeability(ctx context.Context, ev *Evaluation, env *promotion.Env, p *OpenPull, r *pullRecord) error {
	repo, mergeable := ev.Snapshot.Repo, p.PR.Mergeable
	if mergeable == forge.MergeableDirty || mergeable == forge.MergeableBehind {
		outdated := p.Base != env.Tip
		p.Stale = outdated && mergeable == forge.MergeableDirty
		if !outdated {
			// Composed on the newest that is known here, it can't conflict nor be behind: the
			// forge knows something newer, or answers about what was.
			mergeable = forge.MergeableUnknown
			ga.PullCache.ForgetMergeable(repo, p.Number)
			for _, c := range ev.Components[:min(1, len(ev.Components))] {
				c.requestFetch(repo.ID, fmt.Sprintf("what keeps #%d from merging at %s", p.Number, p.Head))
			}
		}
	}
	p.Mergeable, p.MergeNote, p.MergeUnread = promotion.MergeState(mergeable), p.PR.MergeReason, false
	p.UncomputedSince = ga.PullCache.uncomputedSince(repo, p.Number, p.Head, mergeable, env.Tip)
	if err := ga.Rules.addRules(ctx, repo, p, r.detail, repo.Bot()); err != nil {
		return err
	}
	if p.judgedBy != nil {
		ev.RetryAt = branch.Earliest(ev.RetryAt, p.judgedBy.retry)
	}
	if p.Revert && p.Rules.DropsApprovals { // of a revert they matter to nothing else
		var err error
		if p.Review, err = ga.Reviews.ApprovalFacts(ctx, repo, p.Head, p.Base, &r.detail.reviews, people.ApprovalPeriod{},
			ev.Fresh); err != nil {
			return fmt.Errorf("look at the approvals of #%d: %w", p.Number, err)
		}
	}
	return ga.addRefusal(ctx, repo, p, &r.Pull)
}

// answerMergeability reads the open pull requests of an environment again of which it isn't
// known whether the forge would merge them.
func (ga *Gatherer) answerMergeability(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	for _, view := range []*promotion.Pull{env.Open, env.Revert} {
		if view == nil || !view.MergeUnread {
			continue
		}
		p, r := c.Evaluation.OpenPulls[view.Number], c.Evaluation.openRecord(env.Name, view.Number)
		if p == nil || r == nil {
			return fmt.Errorf("#%d isn't open any more: %w", view.Number, forge.ErrConflict)
		}
		if err := ga.readMergeability(ctx, c.Evaluation, env, p, r); err != nil {
			return err
		}
		for _, other := range c.Evaluation.Components {
			at := other.Env(env.Name)
			for _, v := range []*promotion.Pull{at.Open, at.Revert, at.WrongKind, at.BatchPull} {
				if v != nil && v.Number == p.Number {
					v.Mergeable, v.MergeNote, v.MergeUnread, v.UncomputedSince = p.Mergeable, p.MergeNote, p.MergeUnread, p.UncomputedSince
					v.Stale, v.Rules, v.Refusal = p.Stale, p.Rules, p.Refusal
					if p.Revert {
						v.Review = p.Review
					}
				}
			}
		}
	}
	return nil
}

// awaitsTurn says that the forge hasn't computed yet whether an open pull request can be merged,
// and that its unit waits in the repository's merge queue for its turn. Mergeability is read then:
// each merge before moves the branch, and the forge computes anew.
func (ga *Gatherer) awaitsTurn(ctx context.Context, ev *Evaluation, pr *forge.PullRequest) (bool, error) {
	if ev.Fresh || pr.Mergeable != forge.MergeableUnknown && pr.Mergeable != "" {
		return false, nil
	}
	queue, err := ga.opts.Store.MergeQueue(ctx, ev.Snapshot.Repo.ID)
	return slices.Contains(queue, wake.UnitName(ev.Unit)), err
}

// openRecord is an open pull request of an environment as the store has it; nil where there is
// none.
func (ev *Evaluation) openRecord(env string, number int) *pullRecord {
	for _, byEnv := range ev.pulls {
		for _, r := range byEnv[env] {
			if r.PR.Number == number {
				return r
			}
		}
	}
	return nil
}

// readMergeability reads a pull request again, and what explains why the forge doesn't merge it.
// The error is forge.ErrConflict where it has changed since it was evaluated.
func (ga *Gatherer) readMergeability(ctx context.Context, ev *Evaluation, env *promotion.Env, p *OpenPull, r *pullRecord) error {
	repo := ev.Snapshot.Repo
	pr, err := ga.PullCache.RefreshPullRequest(ctx, repo, p.Number)
	if err != nil {
		return err
	}
	if pr.State != forge.Open || pr.Head != p.Head {
		return fmt.Errorf("#%d is another than was looked at: %w", p.Number, forge.ErrConflict)
	}
	p.PR.Mergeable, p.PR.MergeReason = pr.Mergeable, pr.MergeReason
	if d, ok := ga.PullCache.details.Get(detailKey(repo, p.Number)); ok && isStopped(pr) {
		if r.detail, err = ga.PullCache.completeDetail(ctx, repo, d, true, true); err != nil {
			return err
		}
	}
	return ga.describeMergeability(ctx, ev, env, p, r)
}
