package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// revertWindow is what limits.revertsPer10Minutes counts over.
const revertWindow = 10 * time.Minute

// evaluateDegradation judges what landed in an environment that is not well: revert it,
// or hold and say what a person must decide.
func (ev *evaluator) evaluateDegradation(e *Env, st *EnvState) {
	pending := ev.findUnboundCommand(command.Revert, e.Name)
	if !e.Release.OK || !e.Landed.OK {
		ev.finishCommand(pending, false, e.Name+" can't be read: "+st.Reason)
		return
	}
	l, r := e.Landed.Value, ev.rollups[e.Name]
	if l.By == ByPromotion && pending.isOlderThan(l.At) {
		ev.finishCommand(pending, false, fmt.Sprintf("#%d brought %s to %s only after this was written; /liftlock revert again takes "+
			"that back", l.Pull, e.Release.Value, e.Name))
		pending = nil
	}
	ev.finishCommand(ev.findOtherBoundCommand(command.Revert, e.Name, e.Release.Value.ID), true, e.Name+" no longer carries it")
	if e.Revert != nil {
		if pending != nil {
			ev.bindCommand(pending, e.Release.Value.ID)
		}
		return
	}
	ev.finishCommand(ev.findBoundCommand(command.Revert, e.Name, e.Release.Value.ID), false, "its revert is no longer open")
	if l.By == ByRevert && st.State != Degraded && st.State != Failed {
		st.Promotion = Reverted
	}
	if pending == nil && (r.state != Degraded || l.By == ByBaseline || st.State == Diverged) {
		return
	}
	if l.By != ByPromotion {
		why := fmt.Sprintf("what %s carries was not brought by a promotion, so there is nothing to take back", e.Name)
		ev.refuseRevert(e, st, pending, why, "; a person has to decide")
		return
	}
	if l.Batch && !ev.spec.BatchesByEnvironment() {
		why := fmt.Sprintf("#%d brought %s together, when spec.batch was environment; taking them back is left to people", l.Pull,
			wording.Count(len(l.Members), "component"))
		ev.refuseRevert(e, st, pending, why, "")
		return
	}
	if overtaken := ev.with.overtaken[arrivalKey(e.Name, l.Commit)]; overtaken != "" {
		why := fmt.Sprintf("#%d brought %s together, and they can't all be taken back: %s", l.Pull,
			wording.Count(len(l.Members), "component"), overtaken)
		ev.refuseRevert(e, st, pending, why, "; a person has to decide")
		return
	}
	if (pending != nil || ev.facts.Now.Sub(l.At) <= e.Spec.Verify.WatchWindow()) && ev.requestCulprits(e) {
		return
	}
	if pending == nil {
		if code, why := ev.reasonNotToRevert(e); why != "" {
			ev.holdDegradation(e, st, code, why, Unclear)
			return
		}
		if !ev.ruledOutOtherCommits(e, st) || !ev.ruledOutSelfRunning(e, st) || !ev.ruledOutIncident(e, st) ||
			!ev.ruledOutImagePulls(e, st) {
			return
		}
	}
	ev.openRevert(e, st, pending)
}

// refuseRevert answers the command that asks for a revert that can't be; without one the
// degradation is held, with what else is to be said then.
func (ev *evaluator) refuseRevert(e *Env, st *EnvState, pending *PendingCommand, why, held string) {
	if pending != nil {
		ev.finishCommand(pending, false, why)
		return
	}
	ev.holdDegradation(e, st, cause.Hold, why+held, Unclear)
}

// requestCulprits asks which resources of the degraded targets are unhealthy, where nobody
// has looked yet: a revert says it, and an incident is told by it.
func (ev *evaluator) requestCulprits(e *Env) bool {
	for _, t := range e.degradedTargets() {
		if !t.Unhealthy.OK && t.Unhealthy.Err == "" {
			ev.addAction(FactRequest{What: RequestCulprits, Environment: e.Name})
			return true
		}
	}
	return false
}

// reasonNotToRevert gives the cheap reasons for which a degradation is left to people.
func (ev *evaluator) reasonNotToRevert(e *Env) (code cause.Code, why string) {
	l := e.Landed.Value
	if e.Spec.OnDegraded.Action == pipeline.OnDegradedHold {
		return cause.Hold, "onDegraded: hold; a person decides (/liftlock revert)"
	}
	if age := ev.facts.Now.Sub(l.At); age > e.Spec.Verify.WatchWindow() {
		return cause.Hold, fmt.Sprintf("it was merged longer ago than its watch (%s); nothing that old is reverted by itself (/liftlock "+
			"revert)", e.Spec.Verify.WatchWindow())
	}
	if p := findRefusedRevert(e); p != nil {
		return cause.Hold, fmt.Sprintf("the revert #%d was closed by a person (/liftlock retry opens it again)", p.Number)
	}
	if !e.reachesQuorum() {
		// Before a storm is told of: with less than the quorum nothing would be reverted anyway.
		return cause.Hold, e.describeQuorum() + ": it may be something of theirs alone; a person has to decide (/liftlock revert)"
	}
	for _, t := range e.degradedTargets() {
		if !t.HealthyBefore.OK {
			return cause.Hold, fmt.Sprintf("whether %s was well before the merge is not known (%s), so the promotion can't be blamed; a "+
				"person has to decide (/liftlock revert)", t.Name, cmp.Or(t.HealthyBefore.Err, "no record"))
		}
		if !t.HealthyBefore.Value {
			return cause.Hold, fmt.Sprintf("%s was already unwell before the merge; a person has to decide (/liftlock revert)", t.Name)
		}
		if t.Verdict.UnhealthyBefore {
			return cause.Hold, fmt.Sprintf("%s became unwell before the sync of this release began; a person has to decide (/liftlock revert)",
				t.Name)
		}
		if n := ev.facts.Limits.RevertsByCluster[t.Cluster]; ev.revertLimitReached(n) {
			return cause.RevertLimit, ev.revertLimitReason(n, "on cluster "+t.Cluster)
		}
	}
	if n := ev.facts.Limits.RevertsByEnv[e.Name]; ev.revertLimitReached(n) {
		return cause.RevertLimit, ev.revertLimitReason(n, "in "+e.Name)
	}
	if !e.Spec.OnDegraded.Quorum.IsZero() {
		ev.ruleOut(e, CheckQuorum, "%s", e.describeQuorum())
	}
	ev.ruleOut(e, CheckUnhealthyBefore, "every degraded target was well just before #%d was merged, and until its sync began", l.Pull)
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

// findRefusedRevert is the revert of what is there now that a person closed; nil
// when there is none.
func findRefusedRevert(e *Env) *PastPull {
	for i := range e.PastPulls {
		p := &e.PastPulls[i]
		if p.isRefusedRevert() && SameRelease(e.Release.Value.ID, wording.Short(p.Release)) && p.At.After(e.Landed.Value.At) {
			return p
		}
	}
	return nil
}

// isRefusedRevert says that a person closed a revert.
func (p *PastPull) isRefusedRevert() bool { return p.Revert && p.isRefused() }

// isRefused says that a person closed it, and nobody has taken that back. A person who merged a
// revert into another branch closed nothing.
func (p *PastPull) isRefused() bool { return !p.Merged && !p.OnOtherBranch && !p.Superseded }

// revertLimitReached says that as many reverts were opened as the limit allows.
func (ev *evaluator) revertLimitReached(n int) bool {
	limit := ev.spec.Limits.RevertsPer10Minutes
	return limit > 0 && n >= limit
}

func (ev *evaluator) revertLimitReason(n int, where string) string {
	return fmt.Sprintf("%s were opened %s within 10 minutes (limits.revertsPer10Minutes: %d): everything holds; a person has to decide "+
		"(/liftlock revert)", wording.Count(n, "revert"), where, ev.spec.Limits.RevertsPer10Minutes)
}

// ruledOutOtherCommits finds out whether another commit touched what the degraded targets
// read since the merge; true when none did.
func (ev *evaluator) ruledOutOtherCommits(e *Env, st *EnvState) bool {
	for _, t := range e.degradedTargets() {
		if !t.ChangedSince.OK {
			if t.ChangedSince.Err != "" {
				ev.holdDegradation(e, st, cause.Hold, "what else changed since the merge can't be told: "+t.ChangedSince.Err, Unclear)
				return false
			}
			ev.addAction(FactRequest{What: RequestBlame, Environment: e.Name})
			return false
		}
		if len(t.ChangedSince.Value) > 0 {
			ev.holdDegradation(e, st, cause.Hold, fmt.Sprintf("%s also changed what %s reads since the merge; a person has to decide "+
				"(/liftlock revert)", strings.Join(shortenCommits(t.ChangedSince.Value), ", "), t.Name), Unclear)
			return false
		}
	}
	ev.ruleOut(e, CheckOtherCommit, "no other commit has changed what the degraded targets read since")
	return true
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
func (ev *evaluator) openRevert(e *Env, st *EnvState, pending *PendingCommand) {
	l := e.Landed.Value
	if e.RevertBranchState == BranchUnmanaged {
		st.addReason(cause.Unmanaged, e.RevertBranchReason)
		ev.finishCommand(pending, false, e.RevertBranchReason)
		return
	}
	if p := findRefusedRevert(e); p != nil && pending.isOlderThan(p.At) {
		ev.finishCommand(pending, false, fmt.Sprintf("the revert #%d was closed by a person since", p.Number))
		return
	}
	switch c := e.Restore.Value; {
	case e.Restore.Err != "", c.Tip == e.Tip && c.State == EditRefused:
		why := "the revert can't be composed: " + cmp.Or(e.Restore.Err, c.Reason)
		st.addReason(cause.Hold, why)
		ev.finishCommand(pending, false, why)
		return
	case !e.Restore.OK || c.Tip != e.Tip:
		ev.addAction(FactRequest{What: RequestRestore, Environment: e.Name})
		return
	}
	own := ev.member(e.Release.Value.ID, e.Release.Value.Name, pending)
	sure := Guilty
	if pending != nil {
		sure = Unclear
	}
	open := OpenRevert{Environment: e.Name, Pull: l.Pull, Release: own.Release, Commit: l.Commit, Tip: e.Tip,
		Evidence: []Evidence{ev.collectEvidence(e, sure)}, Members: []Member{own}}
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
	ev.reverting[e.Name] = e.Release.Value.ID
	ev.addAction(open)
}

// evaluateRevert judges an open revert: still needed, to be composed anew, or to be merged.
func (ev *evaluator) evaluateRevert(e *Env, st *EnvState) {
	u := e.Revert
	if u == nil {
		return
	}
	st.Promotion = Reverting
	if u.HeadState == HeadModified {
		st.addReason(cause.Unmanaged, u.HeadReason)
		return
	}
	if !e.Release.OK || !e.Landed.OK {
		st.addReason(cause.Unreadable, st.Reason)
		return
	}
	if why := overtakenReason(e, u.Release, u.Batch); why != "" {
		ev.addAction(Close{Environment: e.Name, Pull: u.Number, Revert: true, Members: ev.membersOf(u), Why: why})
		return
	}
	if u.Diverged {
		st.addReason(cause.Hold, fmt.Sprintf("the fields that #%d restores changed since; a person has to decide", u.Number))
		return
	}
	if u.Stale && ev.facts.PipelineErr == "" {
		ev.addAction(RecomposeRevert{Environment: e.Name, Pull: u.Number, Head: u.Head, Tip: e.Tip, Members: ev.membersOf(u)})
		return
	}
	st.RevertGates = ev.evaluateGates(e, u, true)
	behind, attempt := u.isBehindAlone(st.RevertGates, true, ev.facts.Now), u.isBlockedWrongly(st.RevertGates, ev.facts.Now)
	mergesItself := e.MergesByItself(true)
	if !allPass(st.RevertGates) && (!behind && !attempt || !mergesItself) {
		return
	}
	if !mergesItself && !u.Queued {
		st.addReason(cause.Manual, fmt.Sprintf("the revert #%d waits for a person to merge it (onDegraded: %s)", u.Number, e.Spec.OnDegraded))
		return
	}
	ev.addAction(Merge{Environment: e.Name, Pull: u.Number, Head: u.Head, Tip: e.Tip, Revert: true, Members: ev.membersOf(u),
		Behind: behind, KeepApprovals: behind && u.keepsApprovals(), Attempt: attempt})
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
func (ev *evaluator) addRevertGates(e *Env, u *Pull, add addGate) {
	requested := ev.findBoundCommand(command.Revert, e.Name, u.Release) != nil
	switch r := ev.rollups[e.Name]; {
	case requested || ev.with.revertCauses[e.Name] != "":
	case r.state != Degraded:
		add(GateDegraded, policies.Wait, fmt.Sprintf("%s is not degraded right now (%s); a person merges or closes it", e.Name, r.reason))
	case !e.reachesQuorum():
		add(GateDegraded, policies.Wait, e.describeQuorum()+"; a person merges or closes it")
	}
}
