package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// These are things that the service may never do, judged by the world's own knowledge. The numbers
// are those of the invariants in docs/promotion.md.
const (
	ruleUnverified  = "1: a release moved on that was not verified before"
	ruleTwice       = "2: two open pull requests for the same"
	ruleUnmanaged   = "3: something else than the carried fields changed"
	ruleUngated     = "4: merged while a gate or a hold stood against it"
	ruleBytes       = "5: a revert that doesn't restore the bytes"
	ruleQuarantine  = "6: a release that was taken back came again"
	ruleHandsOff    = "6: a person's own value was overwritten"
	ruleNeedless    = "a revert without a degradation"
	ruleRepeated    = "7: the same comment again and again"
	ruleRerequested = "7: somebody's review is requested again and again"
	ruleRedeployed  = "7: the same deployment is created again and again"
	ruleRejoined    = "7: what the merge queue dropped joins it again and again"
	ruleNoRest      = "9: it doesn't come to rest"
	ruleUnfinished  = "it doesn't come to its end"
	ruleDegradation = "8: a degradation was lost"
	ruleLate        = "8: a degradation was answered late"
	ruleStale       = "10: judged on less than another process had seen"
	ruleUnseen      = "11: what was done isn't looked at again"
	ruleUnanswered  = "11: what was said isn't looked at"
	ruleWithdrawn   = "9: a release moved on that a person had taken back"
	ruleVeto        = "9: a release that a person closed was merged"
	ruleOlder       = "9: an older release came over a newer one"
	ruleUnsettled   = "9: merged over what had not come to its end"
	ruleLease       = "12: something was changed after the lease's end"
	ruleClaim       = "12: stored what another run had the key for"
	ruleStranger    = "4: a stranger's command was carried out"
	ruleRewritten   = "7: the same is written again and again"
	rulePanic       = "14: a run panicked"
	ruleUnforeseen  = "14: a run failed by nothing that went wrong"
	ruleSlow        = "15: what could go on doesn't"
	ruleLimits      = "18: more than a limit allows"
	ruleUnrecorded  = "17: a merge past the gates isn't on record as it was"
	ruleText        = "16: a pull request doesn't say what it moves"
	ruleShown       = "16: what is shown isn't what is"
	ruleKept        = "16: what may not come was composed"
	ruleDiscovered  = "19: what came in by itself shouldn't have"
	ruleMissed      = "19: what should have come in by itself hasn't"
)

// insight is what must be known where a merge is judged.
type insight struct {
	began    time.Time // what happened before; zero: nothing
	lookedAt time.Time // the same, of the branch
	// For how long what happens, and what happens to the branch, may be unknown; 0 for what is
	// merged right away.
	late, branchLate time.Duration
}

// insightOf is what a run knows that merges: what happened before it began. nil: nothing.
func insightOf(t *task) insight {
	if t == nil {
		return insight{}
	}
	return insight{began: t.began, lookedAt: t.lookedAt}
}

// judgeMerge judges a merge by the service itself, or by the merge queue that it had it join.
func (sim *Simulation) judgeMerge(known insight, pr *forge.PullRequest, before, after string) {
	ref, ok := promotion.ParseBranch(pr.Branch)
	if !ok {
		sim.broke(ruleUnmanaged, "%s was merged", describePull(pr.Number, pr.Branch))
		return
	}
	changed, err := sim.remote.Changed(sim.ctx, before, after)
	if err != nil {
		sim.broke("harness", "compare what was merged: %v", err)
		return
	}
	moved := sim.movedTargets(ref, before, after)
	for _, c := range changed {
		if sim.truth.resetAt.After(known.lookedAt) {
			break // the merge brings back what was reset away, and nothing could know
		}
		if !slices.ContainsFunc(sim.scenario.components, func(name string) bool {
			p := target{name, ref.Environment}
			return c.Path == sim.scenario.file(p) && moved[p] && (name == ref.Component || ref.Component == promotion.BatchName)
		}) {
			sim.broke(ruleUnmanaged, "the merge of %s changed %s", describePull(pr.Number, pr.Branch), c.Path)
			return
		}
	}
	for p := range moved {
		if ref.Revert {
			sim.judgeRevert(known, pr, p, before, after)
		} else {
			sim.judgePromotion(known, pr, p, before, after)
		}
	}
	if !ref.Revert && known.late == 0 {
		sim.noteMergesLimit(describePull(pr.Number, pr.Branch))
	}
	sim.judgeRestraints(known, pr, ref, moved)
	sim.judgeGates(pr, ref, moved, after)
}

// movedTargets are the targets of an environment that a move of the branch brings something to.
func (sim *Simulation) movedTargets(ref promotion.BranchRef, before, after string) map[target]bool {
	moved := map[target]bool{}
	for _, c := range sim.scenario.components {
		if p := (target{c, ref.Environment}); sim.tagAt(before, p) != sim.tagAt(after, p) {
			moved[p] = true
		}
	}
	return moved
}

// commandsActWithin is how long it may take until a command is heard of. A merge in that time may
// be the one that it asked for, and a later one isn't.
const commandsActWithin = 15 * time.Minute

// judgePromotion judges what a merge brought to a target.
func (sim *Simulation) judgePromotion(known insight, pr *forge.PullRequest, p target, before, after string) {
	tag, env := sim.tagAt(after, p), sim.scenario.environment(p.env)
	name := describePull(pr.Number, pr.Branch)
	if want := sim.scenario.overlayWith(p.component, tag); sim.bytesAt(after, p) != want {
		sim.broke(ruleUnmanaged, "the merge of %s left %q in %s", name, sim.bytesAt(after, p), sim.scenario.file(p))
	}
	now := deployment{p, tag}
	allowed := sim.isLifted(p)
	if requested, ok := sim.truth.lifted[p]; ok && sim.now.Sub(requested) > commandsActWithin {
		delete(sim.truth.lifted, p)
	}
	for _, up := range env.after {
		d := deployment{target{p.component, up}, tag}
		// it is heard of a moment later, or earlier by a hair of the clocks
		if sim.wellFor(d) < sim.scenario.provesFor()-time.Second && !allowed {
			sim.broke(ruleUnverified, "%s brought %s to %s, which was well for %v in %s", name, tag, p, sim.wellFor(d), up)
		}
	}
	for _, up := range sim.scenario.upstream(p.env) {
		d := deployment{target{p.component, up}, tag}
		if at := sim.keptOutSince(d); !at.IsZero() && !allowed && known.began.After(at) && sim.now.Sub(at) >= known.late {
			sim.broke(ruleQuarantine, "%s brought %s to %s, which was taken back from %s at %v", name, tag, p, up, at.Sub(sim.began))
		}
		if pull := sim.openRevertOf(d); pull != nil && known.began.After(pull.CreatedAt) {
			sim.broke(ruleQuarantine, "%s brought %s to %s, which #%d has been about to take back from %s", name, tag, p, pull.Number, up)
		}
		if bad := sim.badFor(d); bad > 3*time.Minute+known.late && !sim.inIncident() && sim.wholeFor(3*time.Minute+known.late) && !allowed {
			sim.broke(ruleUnverified, "%s brought %s to %s, which was degraded in %s for %v", name, tag, p, up, bad)
		}
	}
	if at := sim.keptOutSince(now); !at.IsZero() && !allowed && known.began.After(at) && sim.now.Sub(at) >= known.late {
		sim.broke(ruleQuarantine, "%s brought %s to %s again, which was taken back from there at %v", name, tag, p, at.Sub(sim.began))
	}
	sim.judgeOpenable(known, name, p, tag, sim.tagAt(before, p), allowed)
	if last := sim.lastLanding(p); sim.isOwn(p, last) && !allowed && sim.now.Sub(last.at) >= known.branchLate {
		sim.broke(ruleHandsOff, "%s brought %s to %s over %s, which a person put there", name, tag, p, sim.tagAt(before, p))
	}
	sim.judgeRevertedNow(name, p, tag)
	sim.noteFurther(known, now)
	sim.truth.returns(now)
	sim.result.Promotions++
}

// openRevertOf is the service's open pull request that takes back what a target has; nil: there is none.
func (sim *Simulation) openRevertOf(d deployment) *forge.PullRequest {
	if sim.tagAt(sim.head(), d.target) != d.tag {
		return nil
	}
	for _, pr := range sim.ours() {
		ref, _ := promotion.ParseBranch(pr.Branch)
		if ref.Revert && ref.Environment == d.target.env && slices.Contains(sim.movedBy(pr.Number, ref.Environment), d.target.component) {
			return &pr
		}
	}
	return nil
}

// isOwn says that what landed in a target is a person's own value, and not what the service would bring.
func (sim *Simulation) isOwn(p target, last landing) bool {
	return last.byPerson && !last.adopted && !sim.arrivedBefore(p, last.tag).After(last.at)
}

// isLifted says whether somebody who may has asked for a promotion to a target, also where
// the database was lost since, before the command was read.
func (sim *Simulation) isLifted(p target) bool {
	if before, ok := sim.truth.liftedBefore[p]; ok && sim.now.Sub(before) <= commandsActWithin {
		return true
	}
	return !sim.truth.lifted[p].IsZero()
}

// judgeRevert judges what a revert took back from a target.
func (sim *Simulation) judgeRevert(known insight, pr *forge.PullRequest, p target, before, after string) {
	name, last := describePull(pr.Number, pr.Branch), sim.broughtBy(p)
	if last.byPerson && sim.now.Sub(last.at) >= known.branchLate {
		sim.broke(ruleHandsOff, "%s took %s back from %s, which a person put there", name, last.tag, p)
		return
	}
	if last.before != "" && sim.bytesAt(after, p) != sim.bytesAt(last.before, p) {
		sim.broke(ruleBytes, "%s left %q in %s, before it was %q", name, sim.bytesAt(after, p), sim.scenario.file(p),
			sim.bytesAt(last.before, p))
	}
	sim.truth.reverted[deployment{p, sim.tagAt(before, p)}] = sim.now
	sim.result.Reverts++
}

// judgeRestraints judges whether something stood against a merge: a hold, or a pipeline file
// that is broken.
func (sim *Simulation) judgeRestraints(known insight, pr *forge.PullRequest, ref promotion.BranchRef, moved map[target]bool) {
	name := describePull(pr.Number, pr.Branch)
	if since, held := sim.truth.heldSince[pr.Number]; held && known.began.After(since) && sim.wholeSince(since) {
		sim.broke(ruleUngated, "%s was merged with a hold since %v", name, since.Sub(sim.began))
	}
	if since, held := sim.truth.acknowledged[pr.Number]; held && known.began.After(since) {
		sim.broke(ruleUngated, "%s was merged, but that it is on hold was acknowledged at %v", name, since.Sub(sim.began))
	}
	if since := sim.truth.brokenSince; !since.IsZero() && known.lookedAt.After(since) {
		sim.broke(ruleUngated, "%s was merged with a pipeline file that is broken since %v", name, since.Sub(sim.began))
	}
	if ref.Revert {
		return
	}
	for p := range moved {
		for _, h := range sim.truth.wideHolds {
			if h.covers(p) && !h.since.IsZero() && known.began.After(h.since) {
				sim.broke(ruleUngated, "%s was merged, but that the %s is on hold was acknowledged at %v", name, h.scope,
					h.since.Sub(sim.began))
			}
		}
	}
}

// judgeGates judges whether people had agreed to a merge.
func (sim *Simulation) judgeGates(pr *forge.PullRequest, ref promotion.BranchRef, moved map[target]bool, after string) {
	env, name := sim.scenario.environment(ref.Environment), describePull(pr.Number, pr.Branch)
	if ref.Revert {
		if env.onDegraded != "revert-and-merge" {
			sim.broke(ruleUngated, "%s was merged, but %s leaves that to people", name, env.name)
		}
		return
	}
	if !env.auto {
		sim.broke(ruleUngated, "%s was merged, but %s leaves that to people", name, env.name)
	}
	carried, makers := "", map[string]bool{}
	for _, p := range slices.SortedFunc(maps.Keys(moved), func(a, b target) int { return strings.Compare(a.component, b.component) }) {
		carried += p.component + ":" + sim.tagAt(after, p) + " "
		for _, maker := range sim.makersOfRelease(p.component, sim.tagAt(after, p)) {
			makers[maker] = true
		}
	}
	approved := 0
	for who, what := range sim.truth.approvals[pr.Number] {
		// A head that was approved unchanged may move less by now: a reset of the branch made it
		// more then.
		asItIs := what == carried || sim.truth.reviewed[approval{pr.Number, pr.Head, who}]
		if asItIs && !makers[who] && slices.Contains([]string{reviewer, second, third, fourth}, who) {
			approved++
		}
	}
	if approved < env.approvals {
		sim.broke(ruleUngated, "%s was merged with %s; %d of %d had approved that: %v", name, carried, approved, env.approvals,
			sim.truth.approvals[pr.Number])
	}
}

func (sim *Simulation) bytesAt(commit string, p target) string {
	data, err := sim.remote.Tree(commit).ReadFile(sim.scenario.file(p))
	if err != nil {
		return fmt.Sprintf("unreadable: %v", err)
	}
	return string(data)
}

// inIncident says that the cluster is, or was a moment ago, unwell.
func (sim *Simulation) inIncident() bool {
	return slices.ContainsFunc(sim.incidents, func(s span) bool {
		return !sim.now.Before(s.from) && sim.now.Before(s.to.Add(10*time.Minute))
	})
}

// wholeFor says that nothing was away for a while, so that what happened must be known.
func (sim *Simulation) wholeFor(d time.Duration) bool { return sim.wholeSince(sim.now.Add(-d)) }

func (sim *Simulation) wholeSince(at time.Time) bool {
	for _, until := range sim.away {
		if until.After(at) {
			return false
		}
	}
	return true
}

// judgeOpened judges a pull request that the service opened.
func (sim *Simulation) judgeOpened(pr *forge.PullRequest) {
	ref, ok := promotion.ParseBranch(pr.Branch)
	if !ok {
		return
	}
	for _, other := range sim.openPulls() {
		of, ours := promotion.ParseBranch(other.Branch)
		if !ours || other.Number == pr.Number || other.Author != bot {
			continue
		}
		isLike := of.Revert == ref.Revert && of.Environment == ref.Environment && of.Component == ref.Component
		if isLike && sim.sharesComponent(pr, &other, ref.Environment) {
			sim.broke(ruleTwice, "%s was opened beside %s", describePull(pr.Number, pr.Branch), describePull(other.Number, other.Branch))
		}
	}
	sim.judgeOpenLimits(pr, ref)
	sim.judgeText(pr, ref)
	if !ref.Revert {
		sim.judgeVetoes(pr, ref)
		sim.judgeOpenedUnverified(pr, ref)
		return
	}
	sim.judgeFurther(pr, ref)
	if sim.scenario.environment(ref.Environment).onDegraded == "hold" && !sim.requestedRevert(ref) {
		sim.broke(ruleUngated, "%s was opened, but %s holds and asks", describePull(pr.Number, pr.Branch), ref.Environment)
	}
	// Somebody may have merged something since it was decided; then it closes itself.
	base, _, err := sim.remote.MergeBase(sim.ctx, sim.head(), pr.Head)
	if err != nil {
		sim.broke("harness", "find what a revert is based on: %v", err)
	}
	var fine []string
	for _, c := range sim.scenario.components {
		p := target{c, ref.Environment}
		now := sim.tagAt(base, p)
		if ref.Component != c && ref.Component != promotion.BatchName || sim.tagAt(pr.Head, p) == now {
			continue
		}
		if h := sim.truth.health[deployment{p, now}]; h != nil && h.wasBad || sim.truth.requestedReverts[p] {
			return // of several that came together one is enough
		}
		fine = append(fine, now+" from "+p.String())
	}
	if len(fine) > 0 && !sim.leavesNobody(ref, base) {
		sim.broke(ruleNeedless, "%s wants to take back %s, where it was never unwell by itself", describePull(pr.Number, pr.Branch),
			strings.Join(fine, ", "))
	}
}

// requestedRevert says that a person asked for a revert.
func (sim *Simulation) requestedRevert(ref promotion.BranchRef) bool {
	return slices.ContainsFunc(sim.scenario.components, func(c string) bool {
		return (ref.Component == c || ref.Component == promotion.BatchName) && sim.truth.requestedReverts[target{c, ref.Environment}]
	})
}

// judgeOpenedUnverified judges whether a pull request brings a release that isn't verified before.
// A gate would keep it from being merged, but people who merge by themselves go by its being open.
func (sim *Simulation) judgeOpenedUnverified(pr *forge.PullRequest, ref promotion.BranchRef) {
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		if sim.isLifted(p) || !sim.changes(pr, p) {
			continue
		}
		tag := sim.tagAt(pr.Head, p)
		for _, up := range sim.scenario.environment(p.env).after {
			before := target{c, up}
			if t := sim.current; t != nil && t.began.Before(sim.lastLanding(before).at) {
				continue // it was decided by how that was before
			}
			if well := sim.wellFor(deployment{before, tag}); well < healthyFor-time.Second {
				sim.broke(ruleUnverified, "%s was opened to bring %s to %s, which was well for %v in %s",
					describePull(pr.Number, pr.Branch), tag, p, well, up)
			}
		}
	}
}

// judgeVetoes judges whether a pull request brings what a person has closed before. A call that
// hung may take effect when another process has opened the same meanwhile, and a person closed
// that: who made the call can't have known.
func (sim *Simulation) judgeVetoes(pr *forge.PullRequest, ref promotion.BranchRef) {
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		tag := sim.tagAt(pr.Head, p)
		number, vetoed := sim.truth.vetoed[deployment{p, tag}]
		if !vetoed || tag == sim.tagAt(sim.head(), p) || sim.isLifted(p) {
			continue
		}
		closed, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
		sim.must(err)
		if t := sim.current; err == nil && t != nil && t.began.Before(closed.ClosedAt) {
			continue
		}
		if err == nil && !sim.truth.superseded[number] {
			sim.broke(ruleQuarantine, "%s brings %s to %s, which was closed with #%d", describePull(pr.Number, pr.Branch), tag, p, number)
		}
	}
}

// sharesComponent says that two pull requests change something of the same component.
func (sim *Simulation) sharesComponent(a, b *forge.PullRequest, env string) bool {
	if sim.truth.forged[a.Number] || sim.truth.forged[b.Number] {
		return false // what it is about isn't what its head changes
	}
	return slices.ContainsFunc(sim.scenario.components, func(c string) bool {
		p := target{c, env}
		return sim.changes(a, p) && sim.changes(b, p)
	})
}

func (sim *Simulation) changes(pr *forge.PullRequest, p target) bool {
	base, ok, err := sim.remote.MergeBase(sim.ctx, sim.head(), pr.Head)
	return err == nil && ok && sim.tagAt(base, p) != sim.tagAt(pr.Head, p)
}

// leavesNobody says that, at the commit on which a pull request was made, an incident struck
// nothing but its own subject. Then the incident can't be told from the promotion's effect. Any
// other healthy target would tell, once Argo CD shows it.
func (sim *Simulation) leavesNobody(ref promotion.BranchRef, base string) bool {
	if len(sim.incidents) == 0 || ref.Component != promotion.BatchName && len(sim.scenario.components) > 1 {
		return false
	}
	for _, c := range sim.scenario.components {
		now := sim.tagAt(base, target{c, ref.Environment})
		for _, e := range sim.scenario.environments {
			other := target{c, e.name}
			if tag := sim.tagAt(base, other); tag != now && sim.qualityOf(other, tag) == well && sim.argocd.showsIncident(other) {
				return false
			}
		}
	}
	return true
}

// noteSeen notes what a process has just told all others of the branch.
func (sim *Simulation) noteSeen(t *task) {
	if t == nil || t.process.mirror == nil {
		return
	}
	head, ok, err := t.process.mirror.Head(sim.ctx, trunk)
	if err != nil || !ok {
		return
	}
	if last := sim.truth.seen; last.store != sim.stores || sim.isBefore(last.head, head) {
		sim.truth.seen = seenBranch{head, sim.now, sim.stores}
	}
}

// judgeFreshness judges, when a run writes down what it has judged, whether it knew what
// another process had told before it began.
func (sim *Simulation) judgeFreshness(t *task) {
	seen := sim.truth.seen
	if t == nil || t.process.mirror == nil || seen.store != sim.stores || !t.began.After(seen.at) {
		return
	}
	head, ok, err := t.process.mirror.Head(sim.ctx, trunk)
	if err == nil && ok && sim.isBefore(head, seen.head) && !sim.isResetAway(seen.head) {
		sim.broke(ruleStale, "%s judges at %s, and since %v it is known that the branch is at %s", t.process.name, head[:8],
			seen.at.Sub(sim.began), seen.head[:8])
	}
}

// isBefore says that one commit of the branch is older than another.
func (sim *Simulation) isBefore(a, b string) bool {
	base, ok, err := sim.remote.MergeBase(sim.ctx, a, b)
	return err == nil && ok && a != b && base == a
}

// maxSame is how often the same may be said on one pull request.
const maxSame = 3

// noteComment judges what the service says.
func (sim *Simulation) noteComment(number int, body string) {
	key := fmt.Sprintf("%d %s", number, body)
	if sim.truth.comments[key]++; sim.truth.comments[key] > maxSame {
		sim.broke(ruleRepeated, "#%d: %q", number, body)
	}
}

// noteRequested judges from whom the service requests reviews.
func (sim *Simulation) noteRequested(number int, from forge.Reviewers) {
	pr, err := sim.forge.As(bot).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil {
		return
	}
	for _, login := range from.Users {
		key := fmt.Sprintf("%d %s %s", number, pr.Head, login)
		known, ok := sim.truth.requested[key]
		if !ok {
			known.failuresBefore = sim.storeFailures
		}
		known.times++
		sim.truth.requested[key] = known
		if known.times > maxSame+sim.storeFailures-known.failuresBefore { // what couldn't be written down is done again
			sim.broke(ruleRerequested, "#%d at %s: %s", number, pr.Head, login)
		}
	}
}

// noteDeployment judges what the service shows as deployments.
func (sim *Simulation) noteDeployment(d forge.Deployment) {
	key := fmt.Sprintf("%s %s %s", d.Environment, d.Task, d.Commit)
	if sim.truth.deployed[key]++; sim.truth.deployed[key] > maxSame {
		sim.broke(ruleRedeployed, "%s", key)
	}
}

func (sim *Simulation) openPulls() []forge.PullRequest {
	all, err := sim.forge.As(bot).PullRequests(sim.ctx, sim.repo, time.Time{})
	if err != nil {
		sim.broke("harness", "list the pull requests: %v", err)
	}
	return slices.DeleteFunc(all, func(pr forge.PullRequest) bool { return pr.State != forge.Open })
}
