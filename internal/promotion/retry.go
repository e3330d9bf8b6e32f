package promotion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// evaluateRetry answers /liftlock retry. In this order: it takes over a head that is not
// ours any more, has endpoints that said fail asked again, lets what the forge's merge queue
// dropped join again, takes back a person's close, or starts a verification again.
func (j *evaluator) evaluateRetry(e *Env, st *EnvState) {
	pending := j.findCommand("retry", e.Name)
	if pending == nil {
		return
	}
	failed, dropped := findFailedEndpoint(e.Open), e.findDropped()
	switch {
	case e.Revert != nil && e.Revert.HeadState == HeadModified && j.answersLateRetry(pending, e.Revert):
	case e.Revert != nil && e.Revert.HeadState == HeadModified:
		j.addAction(Close{Environment: e.Name, Pull: e.Revert.Number, Revert: true, Members: j.membersOf(e.Revert), Why: "its branch was changed by somebody else; where it is still needed it is opened anew"})
		j.finishCommand(pending, true, fmt.Sprintf("#%d is closed; where it is still needed it is opened anew", e.Revert.Number))
	case j.reasonOthersWork(e) != "" && j.answersLateRetry(pending, e.Open):
	case j.reasonOthersWork(e) != "":
		j.takeOverHead(e, st, pending)
	case failed != nil && pending.isOlderThan(failed.At):
		j.finishCommand(pending, false, fmt.Sprintf("%s said fail only after this was written; /liftlock retry again has it asked again", failed.Endpoint))
	case failed != nil:
		j.addAction(ResetEndpoints{Environment: e.Name, Pull: e.Open.Number})
		j.finishCommand(pending, true, fmt.Sprintf("the endpoints that #%d waits for are asked again", e.Open.Number))
	case dropped != nil && pending.isOlderThan(dropped.JoinedQueueAt):
		j.finishCommand(pending, false, fmt.Sprintf("#%d joined the forge's merge queue only after this was written; /liftlock retry again has it join once more", dropped.Number))
	case dropped != nil:
		j.addAction(RejoinQueue{Environment: e.Name, Pull: dropped.Number})
		j.finishCommand(pending, true, fmt.Sprintf("#%d joins the forge's merge queue again once nothing else keeps it", dropped.Number))
	case j.liftVeto(e, pending):
	case st.State == Failed || st.State == Degraded:
		j.retryVerification(e, pending)
	default:
		j.finishCommand(pending, false, "there is nothing to retry in "+e.Name+": "+cmp.Or(e.BranchReason, e.RevertBranchReason, "nothing failed and nothing was closed"))
	}
}

// retryVerification starts the verification of what landed again. Where a target's sync failed,
// or never began, looking again would find the same: Argo CD is asked for another one where
// Liftlock may ask, and the answer says what to do where it may not.
func (j *evaluator) retryVerification(e *Env, pending *PendingCommand) {
	var resync, barred []string
	for i := range e.Targets {
		t := &e.Targets[i]
		switch u := t.Verdict.Unsynced; {
		case u == nil:
		case u.Barred != "":
			barred = append(barred, t.Name+" ("+u.Barred+")")
		case !t.SyncBarred.OK && t.SyncBarred.Err == "":
			j.addAction(FactRequest{What: RequestSyncRights, Environment: e.Name})
			return
		case !t.SyncBarred.OK:
			barred = append(barred, t.Name+" (whether Liftlock may is not known: "+t.SyncBarred.Err+": sync it in Argo CD, or /liftlock retry once that is known)")
		case t.SyncBarred.Value != "":
			barred = append(barred, t.Name+" ("+t.SyncBarred.Value+"; or sync it in Argo CD)")
		default:
			resync = append(resync, t.Name)
		}
	}
	answer := "the verification starts again"
	if resync != nil {
		answer += "; Argo CD is asked for another sync of " + wording.JoinFew(resync, maxNamedTargets)
	}
	if barred != nil {
		answer += "; Argo CD doesn't try again by itself, and Liftlock can't ask for another sync of " + wording.JoinFew(barred, maxNamedTargets)
	}
	j.addAction(RestartVerification{Environment: e.Name, Resync: resync})
	j.rollups[e.Name] = rollup{state: Verifying, reason: "the verification starts again"}
	j.finish(pending, FinishCommand{Done: true, Outcome: answer, Reply: barred != nil})
}

// answersLateRetry answers a retry that was written before the head of an open pull request came,
// which isn't ours: its author doesn't speak of what would be dropped.
func (j *evaluator) answersLateRetry(pending *PendingCommand, p *Pull) bool {
	if !pending.isOlderThan(p.HeadSince) {
		return false
	}
	j.finishCommand(pending, false, fmt.Sprintf("#%d has had its head %s only since about when this was written, so it may be about what was there before; look at it, and write /liftlock retry again to drop it", p.Number, wording.Short(p.Head)))
	return true
}

// findFailedEndpoint is what an endpoint said that failed a promotion, the newest; nil where
// none did.
func findFailedEndpoint(p *Pull) *policies.EndpointReading {
	if p == nil {
		return nil
	}
	failed := slices.DeleteFunc(slices.Clone(p.Review.Endpoints), func(r policies.EndpointReading) bool { return r.Outcome != policies.Fail })
	if len(failed) == 0 {
		return nil
	}
	newest := slices.MaxFunc(failed, func(a, b policies.EndpointReading) int { return a.At.Compare(b.At) })
	return &newest
}

// takeOverHead composes an open promotion anew whose head somebody else changed.
func (j *evaluator) takeOverHead(e *Env, st *EnvState, pending *PendingCommand) {
	p := e.Open
	switch {
	case e.BranchState == BranchUnmanaged:
		j.finishCommand(pending, false, e.BranchReason)
		return
	case j.facts.PipelineErr != "":
		j.finishCommand(pending, false, "the pipeline file on the default branch is broken: "+j.facts.PipelineErr)
		return
	case len(j.facts.Problems) > 0:
		j.finishCommand(pending, false, j.facts.Problems[0])
		return
	}
	// What is composed is the release that we put there, not what somebody made of it.
	why, release := "", p.DeclaredRelease.Value
	if release == "" && VerifiedInAll(j.facts.Envs, e.Spec.After, p.Release) && j.reasonNotToMerge(e, j.findCommandFor(e, p.Release)).Text == "" {
		release = p.Release
	}
	if release == "" {
		why = "which release Liftlock put there can't be told"
	} else {
		c, known := e.composition(release)
		switch {
		case !known:
			j.requestComposition(e, release, j.releaseName(release))
			return
		case c.State == EditRefused:
			why = c.Reason
		case c.State == EditEmpty:
			why = "there is nothing to change"
		}
	}
	if why != "" {
		j.addAction(Close{Environment: e.Name, Pull: p.Number, Members: j.membersOf(p), Why: "its head can't be composed anew: " + why})
		j.finishCommand(pending, true, fmt.Sprintf("#%d is closed; its head can't be composed anew: %s", p.Number, why))
		return
	}
	name := j.releaseName(release)
	j.addAction(Replace{Environment: e.Name, Pull: p.Number, Head: p.Head, Release: release, Name: name, Tip: e.Tip, Why: "taken over by /liftlock retry", Members: []Member{j.member(release, name, nil)}})
	j.finishCommand(pending, true, "the pull request is composed anew")
	st.Promotion = Opened
}

// liftVeto takes back what a person closed: the newest since the last merge,
// else the veto that keeps the next release out.
func (j *evaluator) liftVeto(e *Env, pending *PendingCommand) bool {
	p := j.findLiftableVeto(e)
	if p == nil {
		return false
	}
	if pending.isOlderThan(p.At) {
		j.finishCommand(pending, false, fmt.Sprintf("#%d was closed only after this was written; /liftlock retry again takes that back", p.Number))
		return true
	}
	j.addAction(LiftVeto{Environment: e.Name, Pull: p.Number})
	p.Superseded = true
	j.finishCommand(pending, true, fmt.Sprintf("the closed #%d no longer counts", p.Number))
	return true
}

func (j *evaluator) findLiftableVeto(e *Env) *PastPull {
	for i := range e.PastPulls {
		p := &e.PastPulls[i]
		if p.Merged && !p.Revert {
			break
		}
		if p.isRefused() {
			return p
		}
	}
	if !e.Release.OK || !e.Landed.OK {
		return nil
	}
	var sub EnvState
	_, veto := j.pickCandidate(e, &sub, nil)
	return veto
}
