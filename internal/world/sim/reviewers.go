package sim

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// onOpened lets people see to a pull request of the service's.
func (sim *Simulation) onOpened(number int) {
	pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil {
		return
	}
	sim.report("%s is opened", describePull(number, pr.Branch))
	delete(sim.truth.rewritten, statusOf(pr.Head)) // another one with this head may have it already
	sim.judgeOpened(pr)
	sim.after(sim.between(5*time.Second, 2*time.Minute), func() { sim.seeTo(number) })
	if sim.chance.IntN(4) == 0 {
		sim.after(sim.between(time.Second, 5*time.Second), func() { sim.approveOwn(number) })
	}
	sim.tempt(pr)
}

// approveOwn lets who made a release approve it before anybody else has looked.
func (sim *Simulation) approveOwn(number int) {
	pr, err := sim.forge.As(author).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil || pr.State != forge.Open {
		return
	}
	if ref, ok := promotion.ParseBranch(pr.Branch); ok {
		carried, _ := sim.carriedBy(pr, ref)
		who := author
		if slices.Contains(sim.makersOf(pr, ref), second) {
			who = second
		}
		sim.approve(pr, who, carried) // she may not
	}
}

// makersOf are who made what a pull request brings.
func (sim *Simulation) makersOf(pr *forge.PullRequest, ref promotion.BranchRef) (makers []string) {
	for _, c := range sim.componentsOf(ref) {
		if p := (target{c, ref.Environment}); sim.changes(pr, p) {
			makers = append(makers, sim.makersOfRelease(c, sim.tagAt(pr.Head, p))...)
		}
	}
	return makers
}

// makersOfRelease are who put a release where it comes from: somebody who went back to it did so too.
func (sim *Simulation) makersOfRelease(component, tag string) []string {
	return sim.truth.makers[deployment{target{component, sim.scenario.environments[0].name}, tag}]
}

// noteMaker keeps that somebody put a release where it comes from.
func (t *truth) noteMaker(d deployment, maker string) {
	if !slices.Contains(t.makers[d], maker) {
		t.makers[d] = append(t.makers[d], maker)
	}
}

// approversOf are who is asked to approve a pull request: none who asked for it, nor who made what it brings.
func (sim *Simulation) approversOf(pr *forge.PullRequest, ref promotion.BranchRef) []string {
	env := sim.scenario.environment(ref.Environment)
	all, makers := []string{reviewer, second, third}, sim.makersOf(pr, ref)
	isLifted := slices.ContainsFunc(sim.componentsOf(ref), func(c string) bool { return sim.isLifted(target{c, env.name}) })
	if isLifted && slices.Contains(makers, second) {
		all = append(all, fourth)
	}
	all = slices.DeleteFunc(all, func(who string) bool { return slices.Contains(makers, who) })
	if len(all) < env.approvals {
		all = append(all, fourth)
	}
	if !isLifted {
		all = all[:env.approvals]
	}
	return all
}

// seeTo is what a reviewer does about a pull request, until it is no longer open.
func (sim *Simulation) seeTo(number int) {
	pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil || pr.State != forge.Open {
		return
	}
	ref, _ := promotion.ParseBranch(pr.Branch)
	env := sim.scenario.environment(ref.Environment)
	carried, good := sim.carriedBy(pr, ref)
	if good && !ref.Revert && env.approvals > 0 {
		approvers := sim.approversOf(pr, ref)
		if i := slices.IndexFunc(approvers, func(who string) bool { return !sim.truth.reviewed[approval{number, pr.Head, who}] }); i >= 0 {
			if i == len(approvers)-1 {
				sim.temptToRevert(pr, ref)
			}
			sim.approve(pr, approvers[i], carried)
			if i < len(approvers)-1 { // the next one comes a while after
				latest := 2 * time.Minute
				if sim.temptApproved(pr, ref) {
					latest = 40 * time.Second // before what is there instead is verified, and takes its place
				}
				sim.after(sim.between(10*time.Second, latest), func() { sim.seeTo(number) })
				return
			}
		}
	}
	isByHand := !env.auto
	if ref.Revert {
		isByHand = env.onDegraded != "revert-and-merge"
	}
	if good && isByHand && !pr.HasLabel(promotion.LabelHold) && sim.chance.IntN(3) > 0 {
		sim.mergeByHand(pr, ref)
	}
	sim.after(sim.between(time.Minute, 5*time.Minute), func() { sim.seeTo(number) })
}

// putRight is what a reviewer does every so often about a state that lasts until a person acts.
// That is a pull request over which another person pushed, or an environment with a person's
// release.
func (sim *Simulation) putRight() {
	sim.after(sim.between(5*time.Minute, 20*time.Minute), sim.putRight)
	if !sim.faulty {
		return
	}
	for _, pr := range sim.ours() {
		ref, ok := promotion.ParseBranch(pr.Branch)
		if _, good := sim.carriedBy(&pr, ref); ok && !good {
			sim.closeOne(pr, ref)
		}
	}
	all, err := sim.forge.As(bot).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	for _, p := range sim.scenario.targets() {
		if !sim.scenario.isSource(p.env) && sim.lastLanding(p).byPerson && sim.truth.lifted[p].IsZero() {
			sim.promoteOver(p, all)
		}
	}
}

// insist lets a reviewer ask once more, in some cases, for a release that a revert has just removed
// from a target. Its health there before then no longer counts.
func (sim *Simulation) insist(p target) {
	often := 1
	if sim.scenario.insiders { // who may want something of it
		often = 2
	}
	if sim.scenario.isSource(p.env) || sim.chance.IntN(3) >= often {
		return
	}
	sim.after(sim.between(time.Minute, 15*time.Minute), func() {
		if !sim.faulty {
			return
		}
		all, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, time.Time{})
		sim.must(err)
		sim.promoteOver(p, all)
	})
}

// promoteOver asks for a promotion to a target, over what a person put there or a revert put
// back, on any pull request that was about it.
func (sim *Simulation) promoteOver(p target, all []forge.PullRequest) {
	for _, pr := range all {
		ref, ok := promotion.ParseBranch(pr.Branch)
		if !ok || pr.Author != bot || ref.Revert {
			continue
		}
		if ref.Environment == p.env && slices.Contains(sim.componentsOf(ref), p.component) {
			sim.promoteTo(reviewer, pr, ref)
			return
		}
	}
}

// carriedBy is a pull request's content; good says that its text names the same.
func (sim *Simulation) carriedBy(pr *forge.PullRequest, ref promotion.BranchRef) (carried string, good bool) {
	base, _, err := sim.remote.MergeBase(sim.ctx, sim.head(), pr.Head)
	sim.must(err)
	good = true
	for _, c := range sim.scenario.components {
		p := target{c, ref.Environment}
		if tag := sim.tagAt(pr.Head, p); tag != sim.tagAt(base, p) {
			carried += c + ":" + tag + " "
			_, known := sim.truth.quality[deployment{p, tag}]
			good = good && (known || ref.Revert)
		}
	}
	return carried, good && carried != ""
}

// approval is what somebody says of a head: another pull request with the same one needs
// another.
type approval struct {
	pull      int
	head, who string
}

func (sim *Simulation) approve(pr *forge.PullRequest, who, carried string) {
	given := approval{pr.Number, pr.Head, who}
	if sim.truth.reviewed[given] {
		return
	}
	sim.truth.reviewed[given] = true
	if err := sim.forge.Review(sim.repo, pr.Number, who, memoryforge.Approve, ""); err != nil {
		sim.broke("harness", "%v", err)
		return
	}
	if sim.truth.approvals[pr.Number] == nil {
		sim.truth.approvals[pr.Number] = map[string]string{}
	}
	sim.truth.approvals[pr.Number][who] = carried
	sim.report("%s approves #%d: %s", who, pr.Number, carried)
}

// mergeByHand merges at once, past the merge queue where there is one; or joins that.
func (sim *Simulation) mergeByHand(pr *forge.PullRequest, ref promotion.BranchRef) {
	if sim.scenario.queues && sim.chance.IntN(2) == 0 {
		sim.queueByHand(pr)
		return
	}
	before := sim.head()
	sim.merging = true
	merge := func() (string, error) {
		return sim.forge.MergeByHand(sim.repo, pr.Number, reviewer, sim.scenario.method)
	}
	if ref.Revert && !sim.scenario.queues && sim.chance.IntN(3) == 0 {
		merge = func() (string, error) { return sim.mergeInOwnWords(pr) }
	}
	landed, err := merge()
	sim.merging = false
	if err != nil {
		sim.report("%s can't merge #%d: %v", reviewer, pr.Number, err)
		return
	}
	sim.report("%s merges #%d", reviewer, pr.Number)
	sim.noteMergedByHand(pr, ref, before, landed)
}

// noteMergedByHand keeps what came by a merge that a person wanted.
func (sim *Simulation) noteMergedByHand(pr *forge.PullRequest, ref promotion.BranchRef, before, landed string) {
	sim.noteLandings(before, landed, false)
	unmanaged := sim.truth.forged[pr.Number] || sim.truth.unmarked[ref.Component] // maybe no promotion to the service
	sim.noteUnwatched(landed, unmanaged || sim.now.Sub(pr.CreatedAt)-sim.slowedSince(pr.CreatedAt) < knownAfter)
	if ref.Revert {
		sim.noteBystanders(before, landed)
		for _, c := range sim.componentsOf(ref) {
			if p := (target{c, ref.Environment}); sim.tagAt(before, p) != sim.tagAt(landed, p) && sim.isBack(p) {
				sim.noteRestored(p)
				sim.insist(p)
				sim.truth.reverted[deployment{p, sim.tagAt(before, p)}] = sim.now
				sim.result.Reverts++
			}
		}
		return
	}
	for _, c := range sim.componentsOf(ref) {
		if p := (target{c, ref.Environment}); sim.tagAt(before, p) != sim.tagAt(landed, p) {
			sim.result.Promotions++
			sim.outrun(p, sim.tagAt(landed, p))
			if d := (deployment{p, sim.tagAt(landed, p)}); sim.truth.forged[pr.Number] && sim.isKeptOut(d) && !sim.isLifted(p) {
				continue // it is there, and stays kept out everywhere else
			}
			sim.truth.returns(deployment{p, sim.tagAt(landed, p)})
			sim.noteWanted(p, sim.tagAt(landed, p))
		}
	}
}
