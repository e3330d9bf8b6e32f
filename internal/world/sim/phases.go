package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

const (
	// quietAfter is how long after the last fault and the last act all work that was begun must
	// have come to its end. It is the longest times of a verification, of a sweep and of people
	// added up.
	quietAfter = 50 * time.Minute
	// restsFor is how long nothing may be written any more, at the very end.
	restsFor = 30 * time.Minute
	// maxRestRuns bounds the runs of that time: sweeps, polls, and a look at each unit.
	maxRestRuns = 400
)

// maxMinuteRuns bounds the runs of a minute for each component: with everything that
// happens in one, and all processes, it is far less.
const maxMinuteRuns = 200

// live lets a world begin, go on and come to rest.
func (sim *Simulation) live() {
	for range []int{1, 1, 1, 2, 2, 3}[sim.chance.IntN(6)] {
		sim.startProcess()
	}
	sim.advance(sim.now.Add(30 * time.Second)) // what is there at first is the baseline
	sim.planActs()
	sim.putRight()
	sim.faulty = true
	sim.advance(sim.began.Add(sim.Lasts))
	sim.calm()
	sim.advance(sim.now.Add(quietAfter + sim.limitedFor()))
	sim.judgeDegradations()
	if sim.broken != nil {
		return
	}
	last := map[string]string{}
	for _, c := range sim.scenario.components {
		sim.releaseOne(c, rand.New(rand.NewPCG(uint64(sim.Seed), 4)), true)
		last[c] = sim.tagAt(sim.head(), target{c, sim.scenario.environments[0].name})
	}
	sim.advance(sim.now.Add(quietAfter + sim.limitedFor()))
	sim.judgeEnd(last)
	sim.discoverCalmly(last)
	sim.judgeShown()
	sim.judgeRecorded()
	if sim.Seed%3 == 0 {
		sim.revertCalmly(last)
	} else {
		sim.failCalmly(last)
	}
	runs := sim.countRuns()
	sim.advance(sim.now.Add(restsFor))
	if idle := sim.now.Sub(sim.truth.lastWrite); idle < restsFor {
		sim.broke(ruleNoRest, "%v ago it still wrote to the forge", idle)
	}
	if n := sim.countRuns() - runs; n > maxRestRuns {
		sim.broke(ruleNoRest, "%d runs in %v without anything to do", n, restsFor)
	}
}

// failCalmly releases an unhealthy version somewhere, while nobody interferes and no part is away.
// Amid all that happens before, hardly a degradation is left that a revert must answer.
func (sim *Simulation) failCalmly(arrived map[string]string) {
	c := sim.scenario.components[0]
	where := sim.listWellReverting(c, arrived[c])
	if sim.broken != nil || len(where) == 0 {
		return
	}
	r := rand.New(rand.NewPCG(uint64(sim.Seed), 5))
	bad, how := pick(r, where), quality(1+r.IntN(2))
	sim.planned++
	tag := fmt.Sprint(sim.planned)
	sim.releaseAs(c, tag, func(env string) quality {
		if env == bad {
			return how
		}
		return well
	})
	sim.advance(sim.now.Add(quietAfter + sim.limitedFor()))
	sim.judgeDegradations()
	if p := (target{c, bad}); !sim.wasIn(p, tag) {
		sim.broke(ruleUnfinished, "%s of %s, which nothing keeps, hasn't come to %s; open are %v; the service says: %s", tag, c, bad,
			sim.describeOpen(), sim.describeDecision(p))
	}
}

// revertCalmly has a person ask for a revert of what came last, with nobody and nothing in the way.
func (sim *Simulation) revertCalmly(arrived map[string]string) {
	c := sim.scenario.components[0]
	all, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	for _, env := range sim.listWellReverting(c, arrived[c]) {
		p := target{c, env}
		brought := slices.DeleteFunc(slices.Clone(all), func(pr forge.PullRequest) bool {
			ref, ours := promotion.ParseBranch(pr.Branch)
			isPromotion := ours && !ref.Revert && ref.Environment == env
			return !isPromotion || pr.State != forge.Merged || sim.tagAt(pr.Head, p) != arrived[c]
		})
		if len(brought) == 0 || sim.broken != nil || sim.isPartlyReplaced(p) {
			continue
		}
		// Others of a batch that came later have it in their heads, and didn't bring it.
		pr := slices.MinFunc(brought, func(a, b forge.PullRequest) int { return a.ClosedAt.Compare(b.ClosedAt) })
		sim.requestRevert(&pr)
		sim.advance(sim.now.Add(quietAfter))
		if sim.tagAt(sim.head(), p) == arrived[c] && !sim.hasOpenRevert(env) {
			sim.broke(ruleUnanswered, "a revert of #%d was asked for, and there is none; the service says: %s", pr.Number,
				sim.describeDecision(p))
		}
		return
	}
}

// listWellReverting lists the environments that a release has come to through all before them, in which
// what is unwell is reverted.
func (sim *Simulation) listWellReverting(component, arrived string) (out []string) {
	for _, e := range sim.scenario.environments[1:] {
		through := append(sim.scenario.upstream(e.name), e.name)
		lacks := func(env string) bool { return sim.tagAt(sim.head(), target{component, env}) != arrived }
		if e.onDegraded != "hold" && !sim.scenario.needsCommand(e.name) && !slices.ContainsFunc(through, lacks) {
			out = append(out, e.name)
		}
	}
	return out
}

// wasIn says that a release has come to a target.
func (sim *Simulation) wasIn(p target, tag string) bool {
	return slices.ContainsFunc(sim.truth.landings[p], func(l landing) bool { return l.tag == tag })
}

func (sim *Simulation) countRuns() (n int) {
	for _, runs := range sim.runs {
		n += runs
	}
	return n
}

// calm ends all faults and lets people put right what they left.
func (sim *Simulation) calm() {
	sim.report("the faults end")
	sim.faulty, sim.truth.calmAt = false, sim.now
	clear(sim.away)
	for _, p := range sim.processes {
		p.view.reconnect()
	}
	for _, x := range sim.argocd.apps {
		sim.argocd.unpin(x)
	}
	sim.mendPipeline()
	sim.endSquatters()
	for number := range sim.truth.heldSince {
		sim.liftPullHold(number)
	}
	for _, pr := range sim.ours() {
		if pr.HasLabel(promotion.LabelHold) {
			sim.liftPullHold(pr.Number)
		}
	}
}

// judgeDegradations judges what became of releases that turned unwell.
func (sim *Simulation) judgeDegradations() {
	for _, x := range sim.argocd.apps {
		if sim.needsRevert(x) && !sim.hasOpenRevert(x.target.env) {
			sim.broke(ruleDegradation, "%s is unwell in %s since %v, and no revert was opened", x.tag, x.target,
				sim.truth.health[deployment{x.target, x.tag}].badSince.Sub(sim.began))
		}
	}
}

// needsRevert says that a target's release is unhealthy because of the promotion that brought it,
// and that there is no other reason to ask a person.
func (sim *Simulation) needsRevert(x *app) bool {
	env, last := sim.scenario.environment(x.target.env), sim.lastLanding(x.target)
	switch {
	case sim.scenario.isSource(env.name), env.onDegraded == "hold", last.byPerson, last.restores, !last.wasWell, last.tag != x.tag,
		sim.isExcusedSince(x.target.component, last.at):
		return false
	case len(sim.incidents) > 0, sim.stores > 1, sim.isPartlyReplaced(x.target):
		return false // then it holds and asks
	}
	if h := sim.truth.health[deployment{x.target, x.tag}]; h != nil && (h.beside || sim.hasRecentRevert(h.badSince)) {
		return false // and then too
	}
	if slices.ContainsFunc(sim.scenario.environments, func(e environment) bool { return sim.isHeldByLimit(e.name) }) {
		return false // what was reverted on a cluster counts there for as long as any of it is held
	}
	return sim.qualityOf(x.target, x.tag) != well
}

// isPartlyReplaced says that another component's release came by the same pull request as a
// target's and has been replaced since. The bytes of all of it can't be restored any more.
func (sim *Simulation) isPartlyReplaced(p target) bool {
	last := sim.lastLanding(p)
	return slices.ContainsFunc(sim.scenario.components, func(c string) bool {
		all := sim.truth.landings[target{c, p.env}]
		i := slices.IndexFunc(all, func(l landing) bool { return l.before == last.before })
		return i >= 0 && i < len(all)-1
	})
}

func (sim *Simulation) hasOpenRevert(env string) bool {
	return slices.ContainsFunc(sim.ours(), func(pr forge.PullRequest) bool {
		ref, _ := promotion.ParseBranch(pr.Branch)
		return ref.Revert && ref.Environment == env
	})
}

// answeredWithin is how long a degradation may go unanswered while no part is away and a process
// has time for it. It is longer than the sum of the debounce, a run that takes as long as it may,
// and its retries. It is shorter than the time between two sweeps.
const answeredWithin = 6 * time.Minute

// lookedAtWithin is how long Argo CD may report a degradation before a run has seen it. It holds
// while no part is away, the forge has put off no call, and slow calls have taken less
// than half of it. A process has run all the while, and none is busy. It is longer than the delay
// after a failed run.
const lookedAtWithin = 90 * time.Second

// noticedWithin is the same where nothing else went wrong than that parts were away. It begins when
// all of them are back, and no failed run could be put off.
const noticedWithin = 15 * time.Second

// isOverlooked says that something is unwell for so long that a run should have seen it.
func (sim *Simulation) isOverlooked(x *app, h *health) bool {
	if x.health != degraded || x.stale || x.state.Health != degraded {
		return false
	}
	if h == nil || h.looked || h.badSince.IsZero() || !sim.allIdle() {
		return false
	}
	since := h.badSince
	for _, shown := range []time.Time{x.state.HealthSince, x.shown} {
		if shown.After(since) {
			since = shown
		}
	}
	back := since
	for _, until := range sim.away {
		if until.After(back) {
			back = until
		}
	}
	if sim.putAside.After(since) {
		return false
	}
	before := since.Add(-lookedAtWithin)
	isTroubled := sim.trouble.After(before) || sim.failed.After(before) || sim.limits.After(since)
	if !isTroubled && sim.now.Sub(back) > noticedWithin && sim.hasRunSince(before) {
		return true
	}
	at := sim.now.Add(-lookedAtWithin)
	if !since.Before(at) || !sim.wholeSince(at) || sim.limits.After(at) {
		return false
	}
	return sim.hasRunSince(at) && sim.slowedSince(at) < lookedAtWithin/2
}

// judgeLateness judges, while a process has nothing to do, whether something has been unhealthy for
// so long that a run should have seen it, or that a revert should be open.
func (sim *Simulation) judgeLateness() {
	within := answeredWithin
	if sim.scenario.noRefresh { // health is believed after two comparisons, which come by themselves
		within += 2 * rarestComparison
	}
	for _, x := range sim.argocd.apps {
		h := sim.truth.health[deployment{x.target, x.tag}]
		if sim.isOverlooked(x, h) {
			sim.broke(ruleLate, "%s is unwell in %s since %v, and nothing has looked at it since", x.tag, x.target,
				h.badSince.Sub(sim.began))
		}
		if x.health != degraded || h == nil || h.badSince.IsZero() || h.answered {
			continue
		}
		if sim.now.Sub(h.badSince) < within || sim.now.Sub(h.unanswered) < within {
			continue
		}
		if !sim.wholeSince(sim.now.Add(-within)) || sim.putAside.After(sim.now.Add(-within)) || !sim.needsRevert(x) ||
			sim.othersUnhealthy(x) {
			continue
		}
		if !sim.truth.brokenSince.IsZero() || !sim.isWatched(x, h.badSince) || sim.isSquatted(x.target) {
			continue
		}
		if h.answered = sim.hasOpenRevert(x.target.env); !h.answered {
			sim.broke(ruleLate, "%s is unwell in %s since %v, and no revert is open", x.tag, x.target, h.badSince.Sub(sim.began))
		}
	}
}

// seenWithin is how long a head that the service gave one of its pull requests may be without a
// status, while nothing goes wrong. Only a run has to come for it, whatever the forge reports, and
// when.
const seenWithin = time.Minute

// judgeSeen judges, while no process is busy, whether the service evaluated its own actions again
// by itself: only the run after shows the pull request's state.
func (sim *Simulation) judgeSeen() {
	for _, branch := range slices.Sorted(maps.Keys(sim.truth.pushed)) {
		p := sim.truth.pushed[branch]
		if sim.now.Sub(p.at) < seenWithin || !sim.allIdle() {
			continue
		}
		delete(sim.truth.pushed, branch)
		i := slices.IndexFunc(sim.ours(), func(pr forge.PullRequest) bool { return pr.Branch == branch && pr.Head == p.commit })
		if i >= 0 && !sim.showsStatus(p.commit) && !sim.wasTroubledSince(p.at.Add(-seenWithin)) {
			sim.broke(ruleUnseen, "%s has been composed at %v and doesn't show where it stands", branch, p.at.Sub(sim.began))
		}
	}
}

// showsStatus says that a commit has the service's status. A commit has one if it was the branch's
// head before a person pushed over it, and the service restores it: it then needs no new status.
func (sim *Simulation) showsStatus(commit string) bool {
	statuses, err := sim.forge.As(reviewer).Statuses(sim.ctx, sim.repo, commit)
	sim.must(err)
	return slices.ContainsFunc(statuses, func(s forge.Status) bool { return s.Context == act.StatusContext })
}

// notePutAside keeps for how long the store leaves keys alone whose runs had no end, as it says.
func (sim *Simulation) notePutAside() {
	for _, entry := range sim.said.TakeAll() {
		if d, ok := entry.ContextMap()["for"].(time.Duration); ok && sim.now.Add(d).After(sim.putAside) {
			sim.putAside = sim.now.Add(d)
		}
	}
}

// wasTroubledSince says that something went wrong since then that can put off what a process
// is at.
func (sim *Simulation) wasTroubledSince(at time.Time) bool {
	if sim.trouble.After(at) || sim.putAside.After(at) || sim.limits.After(at) {
		return true
	}
	return !sim.wholeSince(at) || !sim.hasRunSince(at)
}

// isWatched says that what a target has turned unwell while it was watched.
func (sim *Simulation) isWatched(x *app, since time.Time) bool {
	return since.Sub(sim.lastLanding(x.target).at) < watchFor-time.Minute
}

// othersUnhealthy says that something else isn't healthy: that may pass for an incident.
func (sim *Simulation) othersUnhealthy(x *app) bool {
	return slices.ContainsFunc(sim.argocd.apps, func(o *app) bool { return o != x && o.health != healthy })
}

// excuse notes that people left a component in a state of their own, in which it may stay.
func (sim *Simulation) excuse(component, why string) {
	sim.truth.excusedAt[component] = sim.now
	if why == excusedByRevert && sim.truth.excused[component] != "" {
		return // anything else says more
	}
	sim.truth.excused[component] = why
}

// isExcusedSince says that people may be why what landed then isn't reverted: what they did before
// is over with it, but for their holds.
func (sim *Simulation) isExcusedSince(component string, landed time.Time) bool {
	return slices.ContainsFunc(sim.listMovingWith(component), func(c string) bool {
		return sim.truth.excused[c] == excusedByHold || sim.truth.excusedAt[c].Add(overAfter).After(landed)
	})
}

// listMovingWith lists the components that move together with one, itself among them.
func (sim *Simulation) listMovingWith(component string) []string {
	if sim.scenario.batch {
		return sim.scenario.components
	}
	return []string{component}
}

// overAfter is how long what people did may be in the way of what lands after.
const overAfter = 5 * time.Minute

// excuseOf says why a component may be left where it is: where several move together,
// one keeps the others.
func (sim *Simulation) excuseOf(component string) string {
	for _, c := range sim.listMovingWith(component) {
		if why := sim.truth.excused[c]; why != "" {
			return why
		}
	}
	return ""
}

// judgeEnd judges whether the last releases came where they belong.
func (sim *Simulation) judgeEnd(last map[string]string) {
	for _, e := range sim.scenario.environments[1:] {
		for _, c := range sim.scenario.components {
			p := target{c, e.name}
			if sim.scenario.needsCommand(e.name) || sim.excuseOf(c) != "" || sim.tagAt(sim.head(), p) == last[c] ||
				sim.isBystander(c, e.name, last[c]) {
				continue
			}
			if sim.scenario.limited &&
				slices.ContainsFunc(sim.scenario.components, func(c string) bool { return sim.truth.excused[c] != "" }) {
				continue // what people left open may keep it waiting
			}
			if slices.ContainsFunc(append(sim.scenario.upstream(e.name), e.name), sim.isHeldByLimit) {
				continue
			}
			sim.broke(ruleUnfinished, "%s has %s, and not %s; open are %v; the service says: %s", p, sim.tagAt(sim.head(), p), last[c],
				sim.describeOpen(), sim.describeDecision(p))
		}
	}
}

func (sim *Simulation) describeOpen() []string {
	var out []string
	for _, pr := range sim.openPulls() {
		said := ""
		if statuses, err := sim.forge.As(bot).Statuses(sim.ctx, sim.repo, pr.Head); err == nil && len(statuses) > 0 {
			said = ": " + statuses[0].Description
		}
		out = append(out, describePull(pr.Number, pr.Branch)+said)
	}
	return out
}

// noteRun is told how each run ended.
func (sim *Simulation) noteRun(kind string, err error) {
	if minute := sim.now.Truncate(time.Minute); minute.Equal(sim.minute) {
		sim.runsOfMinute++
	} else {
		sim.minute, sim.runsOfMinute = minute, 1
	}
	if most := maxMinuteRuns * len(sim.scenario.components); sim.runsOfMinute > most {
		sim.broke(ruleNoRest, "more than %d runs in a minute", most)
	}
	if t := sim.current; t != nil && t.key != "" {
		sim.failing[t.key] = err != nil
	}
	if err == nil {
		return
	}
	sim.failed = sim.now
	switch {
	case strings.HasPrefix(err.Error(), "panic"):
		sim.broke(rulePanic, "a run of a %s key: %v", kind, err)
	case !isForeseen(err):
		sim.broke(ruleUnforeseen, "a run of a %s key: %v", kind, err)
	}
	if !sim.faulty {
		sim.report("a run of a %s key failed: %v", kind, err)
	}
}

func (sim *Simulation) nameOf(t *task) string {
	if t == nil {
		return "the world"
	}
	return t.process.name
}
