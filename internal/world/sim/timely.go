package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// comesWithin is how long a release may take to come where it may, when everything that it has to
// wait for is there and nothing goes wrong. In that time it is found verified, composed, opened and
// merged. A sweep takes longer to come round.
const comesWithin = 4 * time.Minute

// eligible is a release that may come to a target.
type eligible struct {
	tag   string
	since time.Time
}

// judgeTimely judges, while a process has nothing to do, whether what may go on does.
func (sim *Simulation) judgeTimely() {
	sim.judgeRevertsMerged()
	sim.judgeObsolete()
	for _, p := range sim.scenario.targets() {
		tag := sim.mayComeTo(p)
		if tag == "" {
			delete(sim.truth.eligible, p)
			continue
		}
		e := sim.truth.eligible[p]
		if e.tag != tag || sim.isSlowedSince(e.since) {
			sim.truth.eligible[p] = eligible{tag, sim.now}
			continue
		}
		if sim.now.Sub(e.since) > comesWithin && !sim.hasCome(p, tag) {
			sim.broke(ruleSlow, "%s may come to %s since %v; the service says: %s", tag, p, e.since.Sub(sim.began), sim.describeDecision(p))
		}
	}
}

// judgeRevertsMerged judges whether reverts that the service merges by itself, of what is unwell by its own doing,
// are merged.
func (sim *Simulation) judgeRevertsMerged() {
	for _, pr := range sim.ours() {
		ref, _ := promotion.ParseBranch(pr.Branch)
		if !ref.Revert || !sim.mayMergeRevert(&pr, ref.Environment) {
			delete(sim.truth.mergeable, pr.Number)
			continue
		}
		since, ok := sim.truth.mergeable[pr.Number]
		if !ok || sim.isSlowedSince(since) {
			sim.truth.mergeable[pr.Number] = sim.now
			continue
		}
		if sim.now.Sub(since) > comesWithin {
			sim.broke(ruleSlow, "%s may be merged since %v, which takes back what is unwell", describePull(pr.Number, pr.Branch),
				since.Sub(sim.began))
		}
	}
}

// judgeObsolete judges whether promotions with what may not come any more are closed, or composed without it.
func (sim *Simulation) judgeObsolete() {
	for _, pr := range sim.ours() {
		ref, _ := promotion.ParseBranch(pr.Branch)
		bars := sim.whatBars(&pr, ref)
		if bars == "" {
			delete(sim.truth.obsolete, pr.Number)
			continue
		}
		since, ok := sim.truth.obsolete[pr.Number]
		if !ok || sim.isSlowedSince(since) {
			sim.truth.obsolete[pr.Number] = sim.now
			continue
		}
		if sim.now.Sub(since) > polledWithin+comesWithin {
			sim.broke(ruleSlow, "%s is open since %v with %s", describePull(pr.Number, pr.Branch), since.Sub(sim.began), bars)
		}
	}
}

// whatBars is what a promotion brings that may not come, where nobody has done anything about it; empty: nothing,
// for certain.
func (sim *Simulation) whatBars(pr *forge.PullRequest, ref promotion.BranchRef) string {
	switch {
	case ref.Revert, sim.scenario.needsCommand(ref.Environment), pr.Base != trunk, !sim.isLeftAlone(pr):
		return ""
	case !sim.truth.brokenSince.IsZero(), len(sim.truth.wideHolds) > 0, sim.truth.unmarked[ref.Component]:
		return ""
	}
	for _, c := range sim.movedBy(pr.Number, ref.Environment) {
		p := target{c, ref.Environment}
		tag := sim.tagAt(pr.Head, p)
		if sim.isLifted(p) {
			return ""
		}
		for _, up := range sim.scenario.upstream(p.env) {
			if at := sim.restrainedSince(p, up, tag); !at.IsZero() {
				return fmt.Sprintf("%s of %s, which was taken back from %s at %v", tag, c, up, at.Sub(sim.began))
			}
		}
	}
	return ""
}

// mayMergeRevert says that nothing keeps a revert from being merged by the service.
func (sim *Simulation) mayMergeRevert(pr *forge.PullRequest, env string) bool {
	if sim.scenario.environment(env).onDegraded != "revert-and-merge" || !sim.truth.brokenSince.IsZero() || !sim.isLeftAlone(pr) {
		return false
	}
	moved := sim.movedBy(pr.Number, env)
	return len(moved) > 0 && !slices.ContainsFunc(moved, func(c string) bool {
		x := sim.appOf(target{c, env})
		return !sim.needsRevert(x) || x.state.Health != degraded || x.health != degraded || !x.runsAll()
	})
}

// isSlowedSince says that something went wrong since then, or was slow.
func (sim *Simulation) isSlowedSince(at time.Time) bool {
	return sim.wasTroubledSince(at.Add(-time.Minute)) || sim.failed.After(at) || sim.slowedSince(at) > 0
}

// mayComeTo is the release that nothing keeps from coming to a target by itself; empty: there is none for
// certain.
func (sim *Simulation) mayComeTo(p target) (tag string) {
	env := sim.scenario.environment(p.env)
	why := sim.excuseOf(p.component)
	switch f := &sim.scenario; {
	case f.batch && !sim.isBatchCalm(env), f.noRefresh, f.isSource(p.env), f.needsCommand(p.env):
		return ""
	case why != "" && why != excusedByRevert: // what that keeps away is known
		return ""
	case !sim.truth.brokenSince.IsZero(), sim.isHeldWide(p.component), sim.nearsLimit(p.env), sim.inIncident(), sim.isSquatted(p),
		!sim.isCalm(p, healthyFor):
		return ""
	}
	for _, up := range env.after {
		from := target{p.component, up}
		is := sim.tagAt(sim.head(), from)
		if tag != "" && tag != is || !sim.isCalm(from, sim.scenario.provesFor()) || sim.lastLanding(from).restores {
			return ""
		}
		tag = is
	}
	if tag == firstTag || tag == sim.tagAt(sim.head(), p) || sim.isRestrained(p, tag) {
		return ""
	}
	for _, pr := range sim.ours() {
		if ref, _ := promotion.ParseBranch(pr.Branch); ref.Environment == p.env && !sim.isLeftAlone(&pr) {
			return ""
		}
	}
	return tag
}

// isBatchCalm says that all components are calm in an environment and right before it: none that came together is
// waited for.
func (sim *Simulation) isBatchCalm(env *environment) bool {
	for _, c := range sim.scenario.components {
		for _, up := range env.after {
			if !sim.isCalm(target{c, up}, sim.scenario.provesFor()) {
				return false
			}
		}
		if !sim.isCalm(target{c, env.name}, healthyFor) {
			return false
		}
	}
	return true
}

// isHeldWide says that there is a hold on more than a pull request, but for one on other components alone.
func (sim *Simulation) isHeldWide(component string) bool {
	for _, h := range sim.truth.wideHolds {
		if h.scope != "component" || h.since.IsZero() || slices.Contains(h.components, component) {
			return true
		}
	}
	return false
}

// isRestrained says that something keeps a release from a target, there or before, or may.
func (sim *Simulation) isRestrained(p target, tag string) bool {
	return slices.ContainsFunc(append(sim.scenario.upstream(p.env), p.env), func(env string) bool {
		d := deployment{target{p.component, env}, tag}
		_, withdrawn := sim.truth.withdrawn[d]
		_, vetoed := sim.truth.vetoed[d]
		if h := sim.truth.health[d]; h != nil && (h.wasBad || !h.badSince.IsZero()) {
			return true
		}
		if len(sim.incidents) > 0 && env != p.env && sim.tagAt(sim.head(), d.target) != tag {
			return true // it may have left while one made it unwell
		}
		if withdrawn || vetoed || sim.truth.waived[d] || sim.truth.bystanders[d] {
			return true
		}
		return sim.isKeptOut(d) || sim.hasOpenRevert(env)
	})
}

// isLeftAlone says that nobody has done anything about a pull request.
func (sim *Simulation) isLeftAlone(pr *forge.PullRequest) bool {
	switch n := pr.Number; {
	case pr.HasLabel(promotion.LabelHold), pr.Queue == forge.Queued, sim.truth.forged[n], !sim.truth.acknowledged[n].IsZero():
		return false
	}
	return len(sim.truth.approvals[pr.Number]) == 0
}

// isCalm says that what a target has landed long enough ago, by the service or where releases come from, and
// has been well since for longer than that.
func (sim *Simulation) isCalm(p target, least time.Duration) bool {
	x, tag := sim.appOf(p), sim.tagAt(sim.head(), p)
	h := sim.truth.health[deployment{p, tag}]
	if last := sim.lastLanding(p); last.byPerson && !sim.scenario.isSource(p.env) {
		return false
	}
	if x.tag != tag || x.state.Health != healthy || x.stale || !x.runsAll() {
		return false
	}
	return h.isWellFor(sim.now) > least
}

// hasCome says that a release is in a target, or as far as it comes by itself: an open pull request.
func (sim *Simulation) hasCome(p target, tag string) bool {
	env := sim.scenario.environment(p.env)
	if env.auto && env.approvals == 0 && !sim.scenario.queues {
		return false // then it would be there
	}
	for _, pr := range sim.ours() {
		if ref, _ := promotion.ParseBranch(pr.Branch); !ref.Revert && ref.Environment == p.env && sim.tagAt(pr.Head, p) == tag {
			return true
		}
	}
	return false
}
