package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// incidentClockSkew is how much earlier than the forge's merge time another target
// may have become unhealthy and still count as the same window: the two times come
// from different clocks.
const incidentClockSkew = time.Minute

// incidentAftermath is how long after another target recovered, besides debounce, what is
// degraded may still be degraded by the same: they don't all recover at once.
const incidentAftermath = time.Minute

// revertWindow is what limits.revertsPer10Minutes counts over.
const revertWindow = 10 * time.Minute

// evaluateDegradation judges what landed in an environment that is not well: revert it,
// or hold and say what a person must decide.
func (j *evaluator) evaluateDegradation(e *Env, st *EnvState) {
	pending := j.findUnboundCommand("revert", e.Name)
	if !e.Release.OK || !e.Landed.OK {
		j.finishCommand(pending, false, e.Name+" can't be read: "+st.Reason)
		return
	}
	l, r := e.Landed.Value, j.rollups[e.Name]
	if l.By == ByPromotion && pending.isOlderThan(l.At) {
		j.finishCommand(pending, false, fmt.Sprintf("#%d brought %s to %s only after this was written; /liftlock revert again takes that back", l.Pull, e.Release.Value, e.Name))
		pending = nil
	}
	j.finishCommand(j.findOtherBoundCommand("revert", e.Name, e.Release.Value.ID), true, e.Name+" no longer carries it")
	if e.Revert != nil {
		if pending != nil {
			j.bindCommand(pending, e.Release.Value.ID)
		}
		return
	}
	j.finishCommand(j.findBoundCommand("revert", e.Name, e.Release.Value.ID), false, "its revert is no longer open")
	if l.By == ByRevert && st.State != Degraded && st.State != Failed {
		st.Promotion = Reverted
	}
	if pending == nil && (r.state != Degraded || l.By == ByBaseline || st.State == Diverged) {
		return
	}
	if l.By != ByPromotion {
		why := fmt.Sprintf("what %s carries was not brought by a promotion, so there is nothing to take back", e.Name)
		j.refuseRevert(e, st, pending, why, "; a person has to decide")
		return
	}
	if l.Batch && !j.spec.BatchesByEnvironment() {
		why := fmt.Sprintf("#%d brought %s together, when spec.batch was environment; taking them back is left to people", l.Pull, wording.Count(len(l.Members), "component"))
		j.refuseRevert(e, st, pending, why, "")
		return
	}
	if overtaken := j.with.overtaken[arrivalKey(e.Name, l.Commit)]; overtaken != "" {
		why := fmt.Sprintf("#%d brought %s together, and they can't all be taken back: %s", l.Pull, wording.Count(len(l.Members), "component"), overtaken)
		j.refuseRevert(e, st, pending, why, "; a person has to decide")
		return
	}
	if (pending != nil || j.facts.Now.Sub(l.At) <= e.Spec.Verify.WatchWindow()) && j.requestCulprits(e) {
		return
	}
	if pending == nil {
		if code, why := j.reasonNotToRevert(e); why != "" {
			j.holdDegradation(e, st, code, why, Unclear)
			return
		}
		if !j.ruledOutOtherCommits(e, st) || !j.ruledOutSelfRunning(e, st) {
			return
		}
	}
	if pending == nil && !j.ruledOutIncident(e, st) {
		return
	}
	j.openRevert(e, st, pending)
}

// refuseRevert answers the command that asks for a revert that can't be; without one the
// degradation is held, with what else is to be said then.
func (j *evaluator) refuseRevert(e *Env, st *EnvState, pending *PendingCommand, why, held string) {
	if pending != nil {
		j.finishCommand(pending, false, why)
		return
	}
	j.holdDegradation(e, st, "hold", why+held, Unclear)
}

// requestCulprits asks which resources of the degraded targets are unhealthy, where nobody
// has looked yet: a revert says it, and an incident is told by it.
func (j *evaluator) requestCulprits(e *Env) bool {
	for _, t := range e.degradedTargets() {
		if !t.Unhealthy.OK && t.Unhealthy.Err == "" {
			j.addAction(FactRequest{What: RequestCulprits, Environment: e.Name})
			return true
		}
	}
	return false
}

// reasonNotToRevert gives the cheap reasons for which a degradation is left to people.
func (j *evaluator) reasonNotToRevert(e *Env) (code, why string) {
	l := e.Landed.Value
	if e.Spec.OnDegraded.Action == pipeline.OnDegradedHold {
		return "hold", "onDegraded: hold; a person decides (/liftlock revert)"
	}
	if age := j.facts.Now.Sub(l.At); age > e.Spec.Verify.WatchWindow() {
		return "hold", fmt.Sprintf("it was merged longer ago than its watch (%s); nothing that old is reverted by itself (/liftlock revert)", e.Spec.Verify.WatchWindow())
	}
	if p := findRefusedRevert(e); p != nil {
		return "hold", fmt.Sprintf("the revert #%d was closed by a person (/liftlock retry opens it again)", p.Number)
	}
	if !e.reachesQuorum() {
		// Before a storm is told of: with less than the quorum nothing would be reverted anyway.
		return "hold", e.describeQuorum() + ": it may be something of theirs alone; a person has to decide (/liftlock revert)"
	}
	for _, t := range e.degradedTargets() {
		if !t.HealthyBefore.OK {
			return "hold", fmt.Sprintf("whether %s was well before the merge is not known (%s), so the promotion can't be blamed; a person has to decide (/liftlock revert)", t.Name, cmp.Or(t.HealthyBefore.Err, "no record"))
		}
		if !t.HealthyBefore.Value {
			return "hold", fmt.Sprintf("%s was already unwell before the merge; a person has to decide (/liftlock revert)", t.Name)
		}
		if t.Verdict.UnhealthyBefore {
			return "hold", fmt.Sprintf("%s became unwell before the sync of this release began; a person has to decide (/liftlock revert)", t.Name)
		}
		if n := j.facts.Limits.RevertsByCluster[t.Cluster]; j.revertLimitReached(n) {
			return "storm", j.revertLimitReason(n, "on cluster "+t.Cluster)
		}
	}
	if n := j.facts.Limits.RevertsByEnv[e.Name]; j.revertLimitReached(n) {
		return "storm", j.revertLimitReason(n, "in "+e.Name)
	}
	if !e.Spec.OnDegraded.Quorum.IsZero() {
		j.ruleOut(e, CheckQuorum, "%s", e.describeQuorum())
	}
	j.ruleOut(e, CheckUnhealthyBefore, "every degraded target was well just before #%d was merged, and until its sync began", l.Pull)
	return "", ""
}

// degradedTargets are the targets that a verdict calls degraded.
func (e *Env) degradedTargets() []*Target {
	var out []*Target
	for i := range e.Targets {
		if e.Targets[i].Verdict.State == verification.Degraded {
			out = append(out, &e.Targets[i])
		}
	}
	return out
}

// reachesQuorum says that so many targets are degraded that a revert may open, or be merged,
// by itself.
func (e *Env) reachesQuorum() bool {
	n := len(e.degradedTargets())
	return n > 0 && n >= e.Spec.OnDegraded.Quorum.Of(len(e.Targets))
}

// maxNamedTargets is how many targets a sentence names.
const maxNamedTargets = 5

// describeQuorum says which targets are degraded, how many of how many, and how many it takes.
func (e *Env) describeQuorum() string {
	var names []string
	for _, t := range e.degradedTargets() {
		names = append(names, t.Name)
	}
	quorum, are := e.Spec.OnDegraded.Quorum, "are"
	if len(names) == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %s %s degraded (%s), and onDegraded.quorum (%s) asks for %d", len(names), wording.Count(len(e.Targets), "target"), are,
		wording.JoinFew(names, maxNamedTargets), quorum, quorum.Of(len(e.Targets)))
}

// broughtTarget says that an incident is about a target that the same pull request moved.
func (l *Landed) broughtTarget(incident *ClusterIncident, env string) bool {
	return incident.Environment == env && slices.ContainsFunc(l.Members, func(p Member) bool { return p.Component == incident.Component })
}

// findRefusedRevert is the revert of what is there now that a person closed; nil
// when there is none.
func findRefusedRevert(e *Env) *PastPull {
	for i := range e.PastPulls {
		p := &e.PastPulls[i]
		if p.Revert && !p.Merged && !p.Superseded && SameRelease(e.Release.Value.ID, wording.Short(p.Release)) && p.At.After(e.Landed.Value.At) {
			return p
		}
	}
	return nil
}

// revertLimitReached says that as many reverts were opened as the limit allows.
func (j *evaluator) revertLimitReached(n int) bool {
	limit := j.spec.Limits.RevertsPer10Minutes
	return limit > 0 && n >= limit
}

func (j *evaluator) revertLimitReason(n int, where string) string {
	return fmt.Sprintf("%s were opened %s within 10 minutes (limits.revertsPer10Minutes: %d): everything holds; a person has to decide (/liftlock revert)", wording.Count(n, "revert"), where, j.spec.Limits.RevertsPer10Minutes)
}

// ruledOutOtherCommits finds out whether another commit touched what the degraded targets
// read since the merge; true when none did.
func (j *evaluator) ruledOutOtherCommits(e *Env, st *EnvState) bool {
	for _, t := range e.degradedTargets() {
		if !t.ChangedSince.OK {
			if t.ChangedSince.Err != "" {
				j.holdDegradation(e, st, "hold", "what else changed since the merge can't be told: "+t.ChangedSince.Err, Unclear)
				return false
			}
			j.addAction(FactRequest{What: RequestBlame, Environment: e.Name})
			return false
		}
		if len(t.ChangedSince.Value) > 0 {
			j.holdDegradation(e, st, "hold", fmt.Sprintf("%s also changed what %s reads since the merge; a person has to decide (/liftlock revert)", strings.Join(shortenCommits(t.ChangedSince.Value), ", "), t.Name), Unclear)
			return false
		}
	}
	j.ruleOut(e, CheckOtherCommit, "no other commit has changed what the degraded targets read since")
	return true
}

// ruledOutIncident finds out, where targets that the promotion didn't touch became unhealthy
// on the same cluster too, whether it changed what is degraded: if it did, it is
// to blame all the same. If it didn't, or that can't be told, a person decides.
func (j *evaluator) ruledOutIncident(e *Env, st *EnvState) bool {
	var blamed []string
	for _, t := range e.degradedTargets() {
		w := j.findClusterIncident(e, t)
		if w == nil {
			if w, until := j.awaitsIncident(e, t); w != nil {
				j.holdDegradation(e, st, "hold", fmt.Sprintf("%s on the same cluster (%s), which this promotion didn't touch, has just stopped being Healthy without a change of its own: whether that lasts is known at %s", w.Target, w.Cluster, until.UTC().Format(time.RFC3339)), Unclear)
				j.recheckAt(until)
				return false
			}
			continue
		}
		bad, but := verification.Culprits(t.Unhealthy.Value), ""
		switch {
		case w.Component == j.facts.Unit.Component && j.runsFormerRelease(w, e):
			j.holdDegradation(e, st, "hold", fmt.Sprintf("%s, which still has what %s had before this promotion, became unwell too: an incident is likely; a person has to decide (/liftlock revert)", w.Target, e.Name), LikelyIncident)
			return false
		case !t.Unhealthy.OK:
			but = fmt.Sprintf("which resources of %s are degraded is not known: %s", t.Name, t.Unhealthy.Err)
		case len(bad) == 0:
			but = fmt.Sprintf("Argo CD doesn't say which resources of %s are degraded", t.Name)
		case !t.ChangedObjects.OK && t.ChangedObjects.Err == "":
			j.addAction(FactRequest{What: RequestChangedObjects, Environment: e.Name})
			return false
		case !t.ChangedObjects.OK:
			but = fmt.Sprintf("whether the promotion changed what is degraded in %s can't be told: %s", t.Name, t.ChangedObjects.Err)
		case filterChanged(t, bad) == nil:
			but = fmt.Sprintf("what is degraded in %s (%s) is nothing that the promotion changed", t.Name, formatResources(bad))
		default:
			blamed = append(blamed, fmt.Sprintf("%s, which #%d didn't touch, became unwell too, but what is degraded in %s (%s) is what #%[2]d changed", w.Target, e.Landed.Value.Pull, t.Name, formatResources(filterChanged(t, bad))))
			continue
		}
		j.holdDegradation(e, st, "hold", fmt.Sprintf("%s on the same cluster (%s), which this promotion didn't touch, became unwell too, and %s: an incident is likely; a person has to decide (/liftlock revert)", w.Target, w.Cluster, but), LikelyIncident)
		return false
	}
	if blamed == nil {
		blamed = []string{fmt.Sprintf("no target that #%d didn't touch became unwell in the same window", e.Landed.Value.Pull)}
	}
	for _, answer := range blamed[:min(len(blamed), maxEvidenceTargets)] {
		j.ruleOut(e, CheckIncident, "%s", answer)
	}
	return true
}

// findClusterIncident is a target that the promotion didn't touch and that became unhealthy
// since the promotion landed, on a target's cluster or, with what was there before, in
// another environment; nil when there is none. One that has recovered counts for a while,
// after which this is decided again.
func (j *evaluator) findClusterIncident(e *Env, t *Target) *ClusterIncident {
	for i := range j.facts.ClusterIncidents {
		w := &j.facts.ClusterIncidents[i]
		over := w.Until.Add(incidentAftermath + e.Spec.Verify.Debounce.AsDuration())
		switch {
		case !j.speaksForIncident(w, e, t), !w.Until.IsZero() && !over.After(j.facts.Now):
		case w.Unsettled && lastsUntil(w, e).After(cmp.Or(w.Until, j.facts.Now)): // it hasn't lasted
		default:
			if !w.Until.IsZero() {
				j.recheckAt(over)
			}
			return w
		}
	}
	return nil
}

// speaksForIncident says that what became of another target may have to do with a target's
// being degraded: it is on the same cluster and has nothing of what the promotion brought,
// or it is the same component with what was there before, wherever that is; and it wasn't
// so already before the merge.
func (j *evaluator) speaksForIncident(w *ClusterIncident, e *Env, t *Target) bool {
	switch {
	case w.Since.Before(e.Landed.Value.At.Add(-incidentClockSkew)):
		return false
	case w.Component == j.facts.Unit.Component:
		return j.runsFormerRelease(w, e) || w.Cluster == t.Cluster && j.hasOtherRelease(w.Environment, e)
	}
	return w.Cluster == t.Cluster && !e.Landed.Value.broughtTarget(w, e.Name)
}

// lastsUntil is how long another target that only isn't settled must be so to count.
func lastsUntil(w *ClusterIncident, e *Env) time.Time {
	return w.Since.Add(e.Spec.Verify.Debounce.AsDuration())
}

// awaitsIncident is when it is known of another target, which turned Progressing or Unknown
// before the target degraded, whether that lasts; zero when there is none. It is
// never later than a debounce after the degradation.
func (j *evaluator) awaitsIncident(e *Env, t *Target) (*ClusterIncident, time.Time) {
	for i := range j.facts.ClusterIncidents {
		w := &j.facts.ClusterIncidents[i]
		until := lastsUntil(w, e)
		if w.Unsettled && w.Until.IsZero() && until.After(j.facts.Now) && !w.Since.After(t.Verdict.Since) && j.speaksForIncident(w, e, t) {
			return w, until
		}
	}
	return nil, time.Time{}
}

// hasOtherRelease says that an environment is known to have something else than another.
func (j *evaluator) hasOtherRelease(name string, e *Env) bool {
	u := j.facts.findEnv(name)
	return u != nil && u.Name != e.Name && u.Release.OK && u.Release.Value.ID != e.Release.Value.ID
}

// runsFormerRelease says that a target of this component runs what an environment had before
// its last promotion: in another environment, or in this one, where the promotion hasn't come
// to it yet.
func (j *evaluator) runsFormerRelease(w *ClusterIncident, e *Env) bool {
	if w.Environment != e.Name {
		return j.hasFormerRelease(w.Environment, e)
	}
	return slices.ContainsFunc(e.Targets, func(t Target) bool {
		return t.ID == w.ID && t.Verdict.RunsFormer
	})
}

// hasFormerRelease says that an environment has what another had before its last promotion.
func (j *evaluator) hasFormerRelease(name string, e *Env) bool {
	u := j.facts.findEnv(name)
	if u == nil || !u.Release.OK {
		return false
	}
	former := e.formerRelease()
	return former != "" && u.Release.Value.ID == former
}

// formerRelease is what an environment had before what it has; empty when that isn't known.
func (e *Env) formerRelease() string {
	for i := range e.History {
		if a := &e.History[i]; a.Release != e.Release.Value.ID {
			return a.Release
		}
	}
	return ""
}

// filterChanged are those of a target's resources that what landed changed.
func filterChanged(t *Target, bad []verification.Resource) []verification.Resource {
	var out []verification.Resource
	for _, r := range bad {
		if slices.ContainsFunc(t.ChangedObjects.Value, func(o Object) bool { return o.matchesResource(r) }) {
			out = append(out, r)
		}
	}
	return out
}

// formatResources names a few resources.
func formatResources(list []verification.Resource) string {
	const most = 3
	var out []string
	for i, r := range list {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		out = append(out, r.Kind+" "+r.Name)
	}
	return strings.Join(out, ", ")
}

func shortenCommits(commits []string) []string {
	out := make([]string, len(commits))
	for i, c := range commits {
		out[i] = wording.Short(c)
	}
	return out
}

// openRevert opens the revert once it is known that it can be made.
func (j *evaluator) openRevert(e *Env, st *EnvState, pending *PendingCommand) {
	l := e.Landed.Value
	if e.RevertBranchState == BranchUnmanaged {
		st.addReason("foreign", e.RevertBranchReason)
		j.finishCommand(pending, false, e.RevertBranchReason)
		return
	}
	if p := findRefusedRevert(e); p != nil && pending != nil && p.At.After(pending.At) {
		j.finishCommand(pending, false, fmt.Sprintf("the revert #%d was closed by a person since", p.Number))
		return
	}
	switch c := e.Restore.Value; {
	case !e.Restore.OK && e.Restore.Err != "", c.Tip == e.Tip && c.State == EditRefused:
		why := "the revert can't be composed: " + cmp.Or(e.Restore.Err, c.Reason)
		st.addReason("hold", why)
		j.finishCommand(pending, false, why)
		return
	case !e.Restore.OK || c.Tip != e.Tip:
		j.addAction(FactRequest{What: RequestRestore, Environment: e.Name})
		return
	}
	own := j.member(e.Release.Value.ID, e.Release.Value.Name, pending)
	sure := Guilty
	if pending != nil {
		sure = Unclear
	}
	open := OpenRevert{Environment: e.Name, Pull: l.Pull, Release: own.Release, Commit: l.Commit, Tip: e.Tip, Evidence: []Evidence{j.collectEvidence(e, sure)}, Members: []Member{own}}
	if l.Batch {
		open.Batch, open.Members = true, slices.Clone(l.Members)
		for i := range open.Members {
			if open.Members[i].Component == own.Component {
				open.Members[i].CommandID = own.CommandID
			}
		}
		open.Release = BatchID(open.Members)
	}
	if pending != nil {
		open.By, open.Reason = pending.By, pending.Reason
	}
	st.Promotion = Reverting
	j.reverting[e.Name] = e.Release.Value.ID
	j.addAction(open)
}

// evaluateRevert judges an open revert: still needed, to be composed anew, or to be merged.
func (j *evaluator) evaluateRevert(e *Env, st *EnvState) {
	u := e.Revert
	if u == nil {
		return
	}
	st.Promotion = Reverting
	if u.HeadState == HeadModified {
		st.addReason("foreign", u.HeadReason)
		return
	}
	if !e.Release.OK || !e.Landed.OK {
		st.addReason("unreadable", st.Reason)
		return
	}
	if why := overtakenReason(e, u.Release, u.Batch); why != "" {
		j.addAction(Close{Environment: e.Name, Pull: u.Number, Revert: true, Members: j.membersOf(u), Why: why})
		return
	}
	if u.Diverged {
		st.addReason("hold", fmt.Sprintf("the fields that #%d restores changed since; a person has to decide", u.Number))
		return
	}
	if u.Stale && j.facts.PipelineErr == "" {
		j.addAction(RecomposeRevert{Environment: e.Name, Pull: u.Number, Head: u.Head, Tip: e.Tip, Members: j.membersOf(u)})
		return
	}
	st.RevertGates = j.evaluateGates(e, u, true)
	if !allPass(st.RevertGates) {
		return
	}
	if e.Spec.OnDegraded.Action != pipeline.OnDegradedRevertAndMerge {
		st.addReason("manual", fmt.Sprintf("the revert #%d waits for a person to merge it (onDegraded: %s)", u.Number, e.Spec.OnDegraded))
		return
	}
	j.addAction(Merge{Environment: e.Name, Pull: u.Number, Head: u.Head, Tip: e.Tip, Revert: true, Members: j.membersOf(u)})
}

// overtakenReason says why a revert can no longer take a release back; "" when it can.
// In a batch, what the revert of a later promotion has put back goes back with the others.
func overtakenReason(e *Env, release string, batch bool) string {
	switch l := e.Landed.Value; {
	case !SameRelease(e.Release.Value.ID, release):
		return e.Name + " no longer carries what it takes back"
	case l.By == ByPerson:
		return fmt.Sprintf("%s changed %s by hand since", orSomebody(l.Author), e.Name)
	case l.By == ByPromotion, batch && l.By == ByRevert:
		return ""
	}
	return fmt.Sprintf("what %s carries was not brought by a promotion", e.Name)
}

// addRevertGates are a revert's own conditions. The pipeline's gates are not among
// them: it restores bytes that passed them before.
func (j *evaluator) addRevertGates(e *Env, u *Pull, add func(string, policies.Outcome, string)) {
	requested := j.findBoundCommand("revert", e.Name, u.Release) != nil
	switch r := j.rollups[e.Name]; {
	case requested || j.with.revertCauses[e.Name] != "":
	case r.state != Degraded:
		add("degraded", policies.Wait, fmt.Sprintf("%s is not degraded right now (%s); a person merges or closes it", e.Name, r.reason))
	case !e.reachesQuorum():
		add("degraded", policies.Wait, e.describeQuorum()+"; a person merges or closes it")
	}
}
