package facts

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// revertWindow is the time that limits.revertsPer10Minutes counts over.
const revertWindow = 10 * time.Minute

// gatherLimits counts what is in use of the pipeline's limits, from the pull requests:
// the forge's own record, which outlives this store.
func (o *recordGatherer) gatherLimits(ctx context.Context, c *ComponentEvaluation) (promotion.Limits, error) {
	l, err := o.CountUsedLimits(ctx, c)
	if err != nil {
		return l, err
	}
	if c.Pipeline.Spec.BatchesByEnvironment() {
		return l, nil // one pull request an environment: nobody waits for a place
	}
	return l, o.countAhead(ctx, c.Facts.Unit, &l)
}

// CountUsedLimits counts what is open and what was opened and merged lately, as the
// store's copy of the pull requests says now.
func (o *recordGatherer) CountUsedLimits(ctx context.Context, c *ComponentEvaluation) (promotion.Limits, error) {
	l := promotion.Limits{OpenByOthers: map[string]int{}, QueuedAhead: map[string]int{}, RevertsByEnv: map[string]int{}, RevertsByCluster: map[string]int{}}
	degraded := c.degradedSince()
	u, now := c.Facts.Unit, c.Facts.Now
	err := o.pulls.eachCachedPull(ctx, c.Snapshot.Repo, u.Pipeline+"/", func(promotion.BranchRef, string) bool { return true }, func(ref promotion.BranchRef, e *cachedPull) {
		o.countPull(c, &l, ref, &e.PR, now, degraded)
	})
	return l, err
}

// degradedSince says since when the unit's environments are degraded with what
// they carry.
func (c *ComponentEvaluation) degradedSince() map[string]time.Time {
	out := map[string]time.Time{}
	for _, env := range c.Facts.Envs {
		if !env.Release.OK || !env.Landed.OK {
			continue
		}
		for _, a := range env.History {
			if a.Commit == env.Landed.Value.Commit && a.Release == env.Release.Value.ID && a.DegradedAt.After(a.VerifiedAt) {
				out[env.Name] = a.DegradedAt
			}
		}
	}
	return out
}

// countPull adds one pull request. A revert counts for as long as its window lasts,
// and for an environment that became degraded within that window until it is
// mended: what was held while many failed stays held when time passes, and is reported once.
func (o *recordGatherer) countPull(c *ComponentEvaluation, l *promotion.Limits, ref promotion.BranchRef, pr *forge.PullRequest, now time.Time, degraded map[string]time.Time) {
	if pr.Author != c.Snapshot.Repo.BotLogin {
		return
	}
	if ref.Revert {
		since := now
		if bad, ok := degraded[ref.Environment]; ok {
			since = bad
		}
		if since.Sub(pr.CreatedAt) > revertWindow {
			return
		}
		l.RevertsByEnv[ref.Environment]++
		if l.OldestRecentRevert.IsZero() || pr.CreatedAt.Before(l.OldestRecentRevert) {
			l.OldestRecentRevert = pr.CreatedAt
		}
		for cluster := range c.clustersOf(ref, pr) {
			l.RevertsByCluster[cluster]++
		}
		return
	}
	if pr.State == forge.Open && !c.Pipeline.Spec.BatchesByEnvironment() && ref.Component != c.Facts.Unit.Component {
		l.OpenByOthers[ref.Environment]++
	}
	if pr.State == forge.Merged && now.Sub(pr.MergedAt) < time.Hour {
		l.MergesLastHour++
		if l.OldestMerge.IsZero() || pr.MergedAt.Before(l.OldestMerge) {
			l.OldestMerge = pr.MergedAt
		}
	}
}

// clustersOf are the clusters that a pull request of ours deploys to: those of
// its component, or of all components that it moves.
func (c *ComponentEvaluation) clustersOf(ref promotion.BranchRef, pr *forge.PullRequest) map[string]bool {
	components := []string{ref.Component}
	for _, p := range markedMembers(pr.Body) {
		components = append(components, p.Component)
	}
	out := map[string]bool{}
	for _, name := range components {
		if at := c.envAt(ref.Environment, name); at != nil {
			for i := range at.Targets {
				out[ClusterOf(&at.Targets[i])] = true
			}
		}
	}
	return out
}
