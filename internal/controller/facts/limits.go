package facts

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// revertWindow is the time that limits.revertsPer10Minutes counts over.
const revertWindow = 10 * time.Minute

// gatherLimits counts what is in use of the pipeline's limits, from the pull requests:
// the forge's own record, which outlives this store.
func (rg *recordGatherer) gatherLimits(ctx context.Context, c *ComponentEvaluation) (promotion.Limits, error) {
	records, err := rg.readLimitRecords(ctx, c.Facts.Unit.Repo)
	if err != nil {
		return promotion.Limits{}, err
	}
	l, err := rg.countUsedLimits(ctx, c, records)
	if err == nil && !c.Pipeline.Spec.BatchesByEnvironment() { // one pull request an environment: none waits for a place
		err = rg.countAhead(ctx, c.Facts.Unit, records, &l)
	}
	return l, err
}

// readLimitRecords reads at once what is on record of a repository's merges that are under way and of who waits for a
// place.
func (rg *recordGatherer) readLimitRecords(ctx context.Context, repo string) (record.Rows, error) {
	return record.ReadAll(ctx, rg.store, record.Within{Repo: repo}, Merging, joinedQueues, queued)
}

// CountUsedLimits counts what is open and what was opened and merged lately, as the
// store's copy of the pull requests says now.
func (rg *recordGatherer) CountUsedLimits(ctx context.Context, c *ComponentEvaluation) (promotion.Limits, error) {
	records, err := rg.readLimitRecords(ctx, c.Facts.Unit.Repo)
	if err != nil {
		return promotion.Limits{}, err
	}
	return rg.countUsedLimits(ctx, c, records)
}

func (rg *recordGatherer) countUsedLimits(ctx context.Context, c *ComponentEvaluation, records record.Lister) (promotion.Limits, error) {
	l := promotion.Limits{OpenByOthers: map[string]int{}, QueuedAhead: map[string]int{}, RevertsByEnv: map[string]int{},
		RevertsByCluster: map[string]int{}}
	u, now := c.Facts.Unit, c.Facts.Now
	open := map[string]int{}
	for _, login := range c.Snapshot.Repo.Logins() {
		used, err := rg.store.PullUsage(ctx, u.Repo, u.Pipeline, login, u.Component, promotion.BranchPrefix+u.Pipeline+"/",
			now.Add(-time.Hour))
		if err != nil {
			return l, err
		}
		l.MergesLastHour, l.OldestMerge = l.MergesLastHour+used.Merged, branch.Earliest(l.OldestMerge, used.OldestMerge)
		for env, n := range used.OpenByEnv {
			open[env] += n
		}
	}
	var err error
	if l.QueuedMerges, err = rg.listMergesUnderWay(ctx, records, u.Repo, u.Pipeline, now.Add(-time.Hour)); err != nil {
		return l, err
	}
	if !c.Pipeline.Spec.BatchesByEnvironment() {
		l.OpenByOthers = open
	}
	degraded, since := c.degradedSince(), now
	for _, bad := range degraded {
		since = branch.Earliest(since, bad)
	}
	rows, err := rg.store.RevertPulls(ctx, u.Repo, u.Pipeline, since.Add(-revertWindow))
	if err != nil {
		return l, err
	}
	for _, row := range rows {
		since := now
		if bad, ok := degraded[row.Environment]; ok {
			since = bad
		}
		if c.Snapshot.Repo.WasOurs(row.Author, 0, row.CreatedAt) && row.Component != "" && since.Sub(row.CreatedAt) <= revertWindow {
			if err := rg.countRevert(c, &l, row); err != nil {
				return l, err
			}
		}
	}
	return l, nil
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
			if a.Commit == env.Landed.Value.Commit && a.Release == env.Release.Value.ID && a.IsDegraded() {
				out[env.Name] = a.DegradedAt
			}
		}
	}
	return out
}

// countRevert adds one revert. It counts for as long as its window lasts, and for an environment
// that became degraded within that window until it is mended. A promotion that was held while many
// failed stays held when time passes, and is reported once.
func (rg *recordGatherer) countRevert(c *ComponentEvaluation, l *promotion.Limits, row store.Pull) error {
	e, err := rg.pulls.decodePull(row)
	if err != nil {
		return err
	}
	l.RevertsByEnv[row.Environment]++
	l.OldestRecentRevert = branch.Earliest(l.OldestRecentRevert, row.CreatedAt)
	for cluster := range rg.clustersOf(c, row.Environment, row.Component, e.PR.Body) {
		l.RevertsByCluster[cluster]++
	}
	return nil
}

// clustersOf are the clusters that a pull request of ours deploys to: those of
// its component, or of all components that it moves.
func (rg *recordGatherer) clustersOf(c *ComponentEvaluation, env, component, body string) map[string]bool {
	components := []string{component}
	for _, p := range branch.MarkedMembers(body) {
		components = append(components, p.Component)
	}
	out := map[string]bool{}
	for _, name := range components {
		if at := c.EnvAt(env, name); at != nil {
			for i := range at.Targets {
				out[rg.argocds.ClusterOf(&at.Targets[i])] = true
			}
		}
	}
	return out
}
