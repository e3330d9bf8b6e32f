package sim

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// limits are the pipeline's: how many promotions may be open in an environment or merged by the
// service in an hour, and how many reverts may be opened in ten minutes.
type limits struct{ open, merges, reverts int }

func (s *scenario) limits() limits {
	if s.limited {
		return limits{open: 1, merges: 10, reverts: 1}
	}
	return limits{open: 10, merges: 1000, reverts: 10}
}

const (
	mergesWindow  = time.Hour
	revertsWindow = 10 * time.Minute
	// clocksDiffer is by how much the processes' clocks may, and a time is cut.
	clocksDiffer = 2 * time.Minute
)

// limitedFor is how much longer things take to come to their end where few are merged in an hour.
func (sim *Simulation) limitedFor() time.Duration {
	if sim.scenario.limited {
		return mergesWindow + 10*time.Minute
	}
	return 0
}

// listOurs lists the service's pull requests of a kind that were opened since then.
func (sim *Simulation) listOurs(revert bool, since time.Time) []forge.PullRequest {
	all, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, since)
	sim.must(err)
	var out []forge.PullRequest
	for i := range all {
		if ref, ok := promotion.ParseBranch(all[i].Branch); ok && all[i].Author == bot && ref.Revert == revert &&
			!all[i].CreatedAt.Before(since) {
			out = append(out, all[i])
		}
	}
	return out
}

// judgeOpenLimits judges that the service opens no more than it may.
func (sim *Simulation) judgeOpenLimits(pr *forge.PullRequest, ref promotion.BranchRef) {
	most := sim.scenario.limits()
	if ref.Revert {
		counted := sim.listCounted(ref)
		oldest := slices.MinFunc(counted, func(a, b forge.PullRequest) int { return a.CreatedAt.Compare(b.CreatedAt) })
		if n := len(counted) - 1; n >= most.reverts && !sim.requestedRevert(ref) && !sim.isSlowedSince(oldest.CreatedAt.Add(-time.Minute)) {
			sim.broke(ruleLimits, "%s is opened, and %d were within ten minutes", describePull(pr.Number, pr.Branch), n)
		}
		return
	}
	n, oldest := 0, sim.now
	for _, other := range sim.ours() {
		if of, ok := promotion.ParseBranch(other.Branch); ok && !of.Revert && of.Environment == ref.Environment &&
			other.Number != pr.Number {
			n++
			if other.CreatedAt.Before(oldest) {
				oldest = other.CreatedAt
			}
		}
	}
	if n >= most.open && !sim.scenario.batch && !sim.isSlowedSince(oldest.Add(-time.Minute)) {
		sim.broke(ruleLimits, "%s is opened, and %d are open there", describePull(pr.Number, pr.Branch), n)
	}
}

// listCounted lists the reverts that count when one is opened in an environment: of the last ten
// minutes, and there of those before it became unwell.
func (sim *Simulation) listCounted(ref promotion.BranchRef) []forge.PullRequest {
	within := sim.now.Add(clocksDiffer - revertsWindow)
	since := within
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		h := sim.truth.health[deployment{p, sim.tagAt(sim.head(), p)}]
		if h == nil || h.badSince.IsZero() {
			continue
		}
		if bad := h.badSince.Add(clocksDiffer - revertsWindow); bad.Before(since) {
			since = bad
		}
	}
	return slices.DeleteFunc(sim.listOurs(true, since), func(pr forge.PullRequest) bool {
		of, _ := promotion.ParseBranch(pr.Branch)
		return of.Environment != ref.Environment && pr.CreatedAt.Before(within)
	})
}

// noteMergesLimit judges that the service merges no more promotions than it may, and keeps when it did.
func (sim *Simulation) noteMergesLimit(name string) {
	var within []time.Time
	for _, at := range sim.truth.merges {
		if sim.now.Sub(at) < mergesWindow-clocksDiffer {
			within = append(within, at)
		}
	}
	if n := len(within); n >= sim.scenario.limits().merges {
		sim.broke(ruleLimits, "%s was merged, and %d were within an hour", name, n)
	}
	sim.truth.merges = append(within, sim.now)
}

// nearsLimit says that a limit keeps something from an environment, or may.
func (sim *Simulation) nearsLimit(env string) bool {
	if !sim.scenario.limited {
		return false
	}
	for _, pr := range sim.ours() {
		if ref, _ := promotion.ParseBranch(pr.Branch); ref.Environment == env {
			return true
		}
	}
	return sim.hasRecentRevert(sim.now) || sim.countMerged() >= sim.scenario.limits().merges/2
}

// countMerged counts the service's promotions that were merged within an hour, by whom ever.
func (sim *Simulation) countMerged() (n int) {
	since := sim.now.Add(-mergesWindow - clocksDiffer)
	all, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, since)
	sim.must(err)
	for i := range all {
		if ref, ok := promotion.ParseBranch(all[i].Branch); ok && !ref.Revert && all[i].Author == bot && all[i].MergedAt.After(since) {
			n++
		}
	}
	return n
}

// isHeldByLimit says that something in an environment is unhealthy and may be held, because so many
// were reverted. Until a person mends it the next releases wait too, and there may be no room for
// others.
func (sim *Simulation) isHeldByLimit(env string) bool {
	return sim.scenario.limited && slices.ContainsFunc(sim.scenario.components, func(c string) bool {
		p := target{c, env}
		h := sim.truth.health[deployment{p, sim.tagAt(sim.head(), p)}]
		return h != nil && !h.badSince.IsZero() && sim.hasRecentRevert(h.badSince)
	})
}

// hasRecentRevert says that so many reverts were opened before a time, or since, that one more may be held.
func (sim *Simulation) hasRecentRevert(at time.Time) bool {
	return sim.scenario.limited && len(sim.listOurs(true, at.Add(-revertsWindow-clocksDiffer))) >= sim.scenario.limits().reverts
}
