package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// describeLanded joins what Git knows with our pull requests: who brought it.
func (ga *Gatherer) describeLanded(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, m branch.OriginMemo,
	ours []*pullRecord) (promotion.Landed, error) {
	r, commit := c.Snapshot.Repo, m.Origin.Commit
	l := promotion.Landed{Commit: commit.SHA, At: commit.CommitTime, By: promotion.ByPerson, Author: commit.Author.Name}
	if len(commit.Parents) > 0 {
		l.Parent = commit.Parents[0]
	}
	if !m.Origin.Found {
		l.By = promotion.ByBaseline
		return l, nil
	}
	var err error
	own := findMergedAs(r, ours, commit.SHA)
	if own != nil {
		if !own.PR.MergedAt.IsZero() {
			l.At = own.PR.MergedAt
		}
		composed, err := ga.isComposedLanding(ctx, c, env, own)
		if err != nil {
			return l, fmt.Errorf("look at whether #%d landed as Liftlock composed it: %w", own.PR.Number, err)
		}
		if composed {
			l.By, l.Pull, l.Author = promotion.ByPromotion, own.PR.Number, ""
			if own.ref.Revert {
				l.By = promotion.ByRevert
			}
			return l, nil
		}
	}
	if m.Origin.First {
		l.By, err = ga.History.WhoMoved(ctx, &c.ComponentBasis, env, m)
		return l, err
	}
	old, err := history.PredatesBaseline(ctx, r.Mirror, commit, c.Pipeline.Baseline)
	switch {
	case err != nil:
		return l, err
	case old:
		l.By = promotion.ByBaseline
	case isAdopted(env, commit.SHA):
		l.By = promotion.ByHand
	case own != nil: // the commit may name us: a squash's author is who opened the pull request
		l.ModifiedPull, l.Author = own.PR.Number, own.PR.MergedBy
	}
	return l, nil
}

// isAdopted says that a person's commit is on record as the promotion that would have come to the
// environment. That was decided while it was so, and holds as long as the commit's release is
// there.
func isAdopted(env *promotion.Env, commit string) bool {
	return slices.ContainsFunc(env.History, func(a promotion.Arrival) bool {
		return a.By == promotion.ByHand && a.Commit == commit && a.Release == env.Release.Value.ID && a.WithdrawnAt.IsZero()
	})
}

// findMergedAs finds the pull request of ours that was merged as a commit; nil when there is none.
func findMergedAs(r *branch.Repository, pulls []*pullRecord, commit string) *pullRecord {
	i := slices.IndexFunc(pulls, func(p *pullRecord) bool {
		return p.PR.MergeCommit != "" && p.PR.MergeCommit == commit && p.isOurs(r)
	})
	if i < 0 {
		return nil
	}
	return pulls[i]
}

// findNewestMerge is the pull request of ours that was merged last into an environment's branch; nil when
// there is none.
func findNewestMerge(r *branch.Repository, env *promotion.Env, pulls []*pullRecord) *forge.PullRequest {
	var newest *forge.PullRequest
	for _, p := range pulls {
		pr := &p.PR
		if pr.State != forge.Merged || pr.MergeCommit == "" || !p.isOurs(r) || pr.Base != env.Branch {
			continue
		}
		if newest == nil || pr.MergedAt.After(newest.MergedAt) {
			newest = pr
		}
	}
	return newest
}
