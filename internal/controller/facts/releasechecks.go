package facts

import (
	"context"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// minChecksInterval and maxChecksInterval bound how often the checks on a commit that landed
	// are read again: after a tenth of the time since it landed. A check that reports late was
	// mostly going to take long.
	minChecksInterval = time.Minute
	maxChecksInterval = 10 * time.Minute
)

// releaseCheckFacts fills in the checks on the commits by which what a pull request moves
// landed in the environments right before, where a gate goes by them. They are read again
// where something was heard of the pull request since, as a status of such a commit is.
func (ga *Gatherer) releaseCheckFacts(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, p *promotion.Pull) error {
	if !slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Checks != nil && g.Checks.On == policies.OnRelease }) {
		return nil
	}
	now, notBefore := ga.opts.Now(), c.notifiedAt(env, p.Number)
	p.Review.ReleaseChecks = nil
	for _, name := range env.Spec.After {
		on := policies.ReleaseChecks{Environment: name}
		a := findLanding(c.Env(name), p.Release)
		if a == nil {
			on.Err = "no history tells by which commit " + wording.Short(p.Release) + " landed in " + name
			p.Review.ReleaseChecks = append(p.Review.ReleaseChecks, on)
			continue
		}
		interval := min(max(now.Sub(a.At)/10, minChecksInterval), maxChecksInterval)
		read, err := ga.Reviews.ReadCommitChecks(ctx, c.Snapshot.Repo, a.Commit, notBefore, interval, c.Fresh)
		if err != nil {
			return err
		}
		on.Commit, on.Checks, on.Err, on.NextAt = a.Commit, people.ListChecks(read.Checks), read.Why, read.At.Add(interval)
		p.Review.ReleaseChecks = append(p.Review.ReleaseChecks, on)
	}
	return nil
}

// notifiedAt is when something was last heard of a pull request, by our clock; zero where it
// isn't known.
func (c *ComponentEvaluation) notifiedAt(env *promotion.Env, pull int) time.Time {
	for _, p := range c.Evaluation.pulls.of(c, env.Name) {
		if p.PR.Number == pull {
			return p.NotifiedAt
		}
	}
	return time.Time{}
}

// findLanding is the newest arrival of a release in an environment that wasn't a revert's;
// nil where there is none.
func findLanding(env *promotion.Env, release string) *promotion.Arrival {
	if env == nil {
		return nil
	}
	for i := range env.History { // newest first
		if a := &env.History[i]; a.Release == release && a.By != promotion.ByRevert && a.Commit != "" {
			return a
		}
	}
	return nil
}
