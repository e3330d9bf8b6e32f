package promotion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// evaluateRetry answers /liftlock retry. It does the first of these that applies. It takes over a
// head that is not ours any more, has failed endpoints asked again, or lets a dropped pull request
// join the forge's merge queue again. Else it undoes a person's close, or starts a verification
// again.
func (ev *evaluator) evaluateRetry(e *Env, st *EnvState) {
	pending := ev.findCommand(command.Retry, e.Name)
	if pending == nil {
		return
	}
	failed, dropped := findFailedEndpoint(e.Open), e.findDropped()
	switch {
	case e.Revert != nil && e.Revert.HeadState == HeadModified && ev.answersLateRetry(pending, e.Revert):
	case e.Revert != nil && e.Revert.HeadState == HeadModified:
		ev.addAction(Close{Environment: e.Name, Pull: e.Revert.Number, Revert: true, Members: ev.membersOf(e.Revert),
			Why: "its branch was changed by somebody else; where it is still needed it is opened anew"})
		ev.finishCommand(pending, true, fmt.Sprintf("#%d is closed; where it is still needed it is opened anew", e.Revert.Number))
	case ev.reasonOthersWork(e) != "" && ev.answersLateRetry(pending, e.Open):
	case ev.reasonOthersWork(e) != "":
		ev.takeOverHead(e, st, pending)
	case failed != nil && pending.isOlderThan(failed.At):
		ev.finishCommand(pending, false, fmt.Sprintf("%s said fail only after this was written; /liftlock retry again has it asked again",
			failed.Endpoint))
	case failed != nil:
		ev.addAction(ResetEndpoints{Environment: e.Name, Pull: e.Open.Number})
		ev.finishCommand(pending, true, fmt.Sprintf("the endpoints that #%d waits for are asked again", e.Open.Number))
	case dropped != nil && pending.isOlderThan(dropped.JoinedQueueAt):
		ev.finishCommand(pending, false, fmt.Sprintf("#%d joined the forge's merge queue only after this was written; /liftlock retry "+
			"again has it join once more", dropped.Number))
	case dropped != nil:
		ev.addAction(RejoinQueue{Environment: e.Name, Pull: dropped.Number})
		ev.finishCommand(pending, true, fmt.Sprintf("#%d joins the forge's merge queue again once nothing else keeps it", dropped.Number))
	case ev.liftVeto(e, pending):
	case st.State == Failed || st.State == Degraded:
		ev.retryVerification(e, pending)
	default:
		ev.finishCommand(pending, false, "there is nothing to retry in "+e.Name+": "+cmp.Or(e.BranchReason, e.RevertBranchReason,
			"nothing failed and nothing was closed"))
	}
}

// retryVerification starts the verification of what landed again. Where a target's sync failed, or
// never began, another look would find the same. Argo CD is asked for another sync where Liftlock
// may ask; where it may not, the answer says what to do.
func (ev *evaluator) retryVerification(e *Env, pending *PendingCommand) {
	var resync, barred []string
	for i := range e.Targets {
		t := &e.Targets[i]
		switch u := t.Verdict.Unsynced; {
		case u == nil:
		case u.Barred != "":
			barred = append(barred, t.Name+" ("+u.Barred+")")
		case !t.SyncBarred.OK && t.SyncBarred.Err == "":
			ev.addAction(FactRequest{What: RequestSyncRights, Environment: e.Name})
			return
		case !t.SyncBarred.OK:
			barred = append(barred, t.Name+" (whether Liftlock may is not known: "+t.SyncBarred.Err+
				": sync it in Argo CD, or /liftlock retry once that is known)")
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
		answer += "; Argo CD doesn't try again by itself, and Liftlock can't ask for another sync of " +
			wording.JoinFew(barred, maxNamedTargets)
	}
	ev.addAction(RestartVerification{Environment: e.Name, Resync: resync})
	ev.rollups[e.Name] = rollup{state: Verifying, reason: "the verification starts again"}
	ev.finish(pending, FinishCommand{Done: true, Outcome: answer, Reply: barred != nil})
}

// answersLateRetry answers a retry that was written before the head of an open pull request came,
// which isn't ours: its author doesn't speak of what would be dropped.
func (ev *evaluator) answersLateRetry(pending *PendingCommand, p *Pull) bool {
	if !pending.isOlderThan(p.HeadSince) {
		return false
	}
	ev.finishCommand(pending, false, fmt.Sprintf("#%d has had its head %s only since about when this was written, so it may be about "+
		"what was there before; look at it, and write /liftlock retry again to drop it", p.Number, wording.Short(p.Head)))
	return true
}

// findFailedEndpoint is what an endpoint said that failed a promotion, the newest; nil where
// none did.
func findFailedEndpoint(p *Pull) *policies.EndpointReading {
	if p == nil {
		return nil
	}
	failed := slices.DeleteFunc(slices.Clone(p.Review.Endpoints),
		func(r policies.EndpointReading) bool { return r.Outcome != policies.Fail })
	if len(failed) == 0 {
		return nil
	}
	newest := slices.MaxFunc(failed, func(a, b policies.EndpointReading) int { return a.At.Compare(b.At) })
	return &newest
}

// takeOverHead composes an open promotion anew whose head somebody else changed.
func (ev *evaluator) takeOverHead(e *Env, st *EnvState, pending *PendingCommand) {
	p := e.Open
	switch {
	case e.BranchState == BranchUnmanaged:
		ev.finishCommand(pending, false, e.BranchReason)
		return
	case ev.facts.PipelineErr != "":
		ev.finishCommand(pending, false, "the pipeline file on the default branch is broken: "+ev.facts.PipelineErr)
		return
	case len(ev.facts.Problems) > 0:
		ev.finishCommand(pending, false, ev.facts.Problems[0])
		return
	}
	// The release that we put there is composed, without another account's changes.
	why, release := "", p.DeclaredRelease.Value
	if release == "" && VerifiedInAll(ev.facts.Envs, e.Spec.After, p.Release) &&
		ev.reasonNotToMerge(e, ev.findCommandFor(e, p.Release)).Text == "" {
		release = p.Release
	}
	if release == "" {
		why = "which release Liftlock put there can't be told"
	} else {
		c, known := e.composition(release)
		switch {
		case !known:
			ev.requestComposition(e, release, ev.releaseName(release))
			return
		case c.State == EditRefused:
			why = c.Reason
		case c.State == EditEmpty:
			why = "there is nothing to change"
		}
	}
	if why != "" {
		ev.addAction(Close{Environment: e.Name, Pull: p.Number, Members: ev.membersOf(p), Why: "its head can't be composed anew: " + why})
		ev.finishCommand(pending, true, fmt.Sprintf("#%d is closed; its head can't be composed anew: %s", p.Number, why))
		return
	}
	name := ev.releaseName(release)
	ev.addAction(Replace{Environment: e.Name, Pull: p.Number, Head: p.Head, Release: release, Name: name, Tip: e.Tip,
		Why: "taken over by /liftlock retry", Members: []Member{ev.member(release, name, nil)}})
	ev.finishCommand(pending, true, "the pull request is composed anew")
	st.Promotion = Opened
}

// liftVeto takes back what a person closed: the newest since the last merge,
// else the veto that keeps the next release out.
func (ev *evaluator) liftVeto(e *Env, pending *PendingCommand) bool {
	p := ev.findLiftableVeto(e)
	if p == nil {
		return false
	}
	if pending.isOlderThan(p.At) {
		ev.finishCommand(pending, false, fmt.Sprintf("#%d was closed only after this was written; /liftlock retry again takes that back",
			p.Number))
		return true
	}
	ev.addAction(LiftVeto{Environment: e.Name, Pull: p.Number})
	p.Superseded = true
	ev.finishCommand(pending, true, fmt.Sprintf("the closed #%d no longer counts", p.Number))
	return true
}

func (ev *evaluator) findLiftableVeto(e *Env) *PastPull {
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
	_, veto := ev.pickCandidate(e, &sub, nil)
	return veto
}
