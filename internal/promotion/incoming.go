package promotion

import (
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
)

// evaluateIncoming judges what wants to come into an environment: the open promotion,
// if there is one, and the newest release that may move.
func (ev *evaluator) evaluateIncoming(e *Env, st *EnvState) {
	forced := ev.findUnboundCommand(command.Promote, e.Name)
	if e.Fields == FieldsMixed || !e.Release.OK || !e.Landed.OK {
		ev.finishCommand(forced, false, e.Name+" can't be promoted to: "+st.Reason)
		if e.Open != nil {
			st.Promotion = Held
			st.addReason(cause.Unreadable, st.Reason)
		}
		return
	}
	if e.BranchState == BranchUnmanaged {
		if e.Open != nil {
			st.Promotion = Held
		}
		st.addReason(cause.Unmanaged, e.BranchReason)
		ev.finishCommand(forced, false, e.BranchReason)
		return
	}
	if e.WrongKind != nil {
		ev.closeWrongKind(e, st)
		return
	}
	if ev.finishOvertakenPromotes(e) {
		forced = ev.findUnboundCommand(command.Promote, e.Name)
	}
	if e.Open != nil {
		ev.evaluateOpen(e, st)
		return
	}
	ev.finishCommand(ev.findOtherBoundCommand(command.Promote, e.Name, e.Release.Value.ID), false, "its pull request is no longer open")
	ev.finishCommand(ev.findBoundCommand(command.Promote, e.Name, e.Release.Value.ID), true, e.Name+" carries it")
	if st.State == Diverged && forced == nil {
		st.addReason(cause.Diverged, st.Reason)
		return
	}
	c, _ := ev.pickCandidate(e, st, forced)
	if c == nil {
		if !ev.stillVerifying(e) {
			why := "there is nothing to promote to " + e.Name
			if len(st.Why) > 0 {
				why += ": " + st.Why[len(st.Why)-1].Text
			}
			ev.finishCommand(forced, false, why)
		}
		return
	}
	st.Promotion, st.Candidate, st.CandidateName, st.ReadySince = Waiting, c.Release, c.Name, c.Since
	if !ev.mayOpen(e, st, forced) {
		return
	}
	if !ev.ensureComposed(e, st, c.Release, c.Name, forced) {
		return
	}
	ev.addAction(Open{Environment: e.Name, Release: c.Release, Name: c.Name, Tip: e.Tip,
		Members: []Member{ev.member(c.Release, c.Name, forced)}})
}

// finishOvertakenPromotes answers the promotes that were given before a person changed e by
// hand: only one that was given since takes that over. Both times are ours.
func (ev *evaluator) finishOvertakenPromotes(e *Env) bool {
	l := e.Landed.Value
	if l.By != ByPerson {
		return false
	}
	since, any := l.At, false
	if a := e.currentArrival(); a != nil {
		since = a.At
	}
	for {
		a := ev.findFirstCommand(func(a *PendingCommand) bool {
			return a.Verb == command.Promote && a.Environment == e.Name && a.At.Before(since)
		})
		if a == nil {
			return any
		}
		ev.finishCommand(a, false, fmt.Sprintf("%s changed %s by hand since (%s); /liftlock promote %s again takes that over",
			orSomebody(l.Author), e.Name, wording.Short(l.Commit), e.Name))
		any = true
	}
}

// stillVerifying says whether an `after` environment may yet verify what it carries.
func (ev *evaluator) stillVerifying(e *Env) bool {
	for _, name := range e.Spec.After {
		u := ev.facts.findEnv(name)
		if u == nil || !u.Release.OK || u.Release.Value.ID == e.Release.Value.ID {
			continue
		}
		if ev.rollups[name].state == Verifying && len(u.Targets) > 0 {
			return true
		}
	}
	return false
}

// limitRecheckDelay is when a unit that waits for a place looks again: no event tells it that
// another unit's pull request was closed. It costs no call to the forge.
const limitRecheckDelay = 5 * time.Minute

// pendingRevertReason says that what e carries is being taken back; "" when it isn't.
func (ev *evaluator) pendingRevertReason(e *Env) string {
	switch {
	case e.Revert != nil:
		return fmt.Sprintf("the revert #%d is open", e.Revert.Number)
	case ev.reverting[e.Name] != "":
		return "a revert is being opened"
	}
	return ""
}

// mayOpen says whether a pull request may be opened now, else why not.
func (ev *evaluator) mayOpen(e *Env, st *EnvState, forced *PendingCommand) bool {
	n := len(st.Why)
	if ev.facts.PipelineErr != "" {
		st.addReason(cause.PipelineFile, "the pipeline file on the default branch is broken: "+ev.facts.PipelineErr)
	}
	for _, p := range ev.facts.Problems {
		st.addReason(cause.Targets, p)
	}
	for _, h := range ev.listHolds(e) {
		st.Promotion = Held
		st.addReason(cause.Hold, h)
	}
	if why := ev.reasonNotToJoin(e, forced); why != "" {
		st.addReason(cause.BatchMembers, why)
	}
	if why := ev.pendingRevertReason(e); why != "" {
		st.addReason(cause.Reverting, why)
	}
	if e.MissingSignatures != "" {
		st.addReason(cause.Signatures, e.MissingSignatures)
	}
	if e.Spec.Open == pipeline.Manual && forced == nil {
		st.addReason(cause.Manual, fmt.Sprintf("open: manual; /liftlock promote %s opens it", e.Name))
	}
	limit := ev.spec.Limits.OpenPerEnvironment
	if limit > 0 && len(st.Why) == n {
		open, ahead := ev.facts.Limits.OpenByOthers[e.Name], ev.facts.Limits.QueuedAhead[e.Name]
		if open+ahead >= limit {
			ev.recheckAt(ev.facts.Now.Add(limitRecheckDelay))
			st.addReason(cause.Limit, fmt.Sprintf("%d of %d pull requests are open in %s (limits.openPerEnvironment), %d wait ahead of this "+
				"one", open, limit, e.Name, ahead))
		}
	}
	return len(st.Why) == n
}

// composition is what promoting a release into the environment would change; false when it
// isn't known on the branch as it is now.
func (e *Env) composition(release string) (Composition, bool) {
	c, ok := e.Compositions[release]
	return c, ok && c.Tip == e.Tip
}

// ensureComposed says whether the edit is known and can be made on the current tip;
// it requests it where it isn't known.
func (ev *evaluator) ensureComposed(e *Env, st *EnvState, release, name string, forced *PendingCommand) bool {
	c, known := e.composition(release)
	if !known {
		ev.requestComposition(e, release, name)
		return false
	}
	switch c.State {
	case EditRefused:
		st.addReason(cause.Refused, c.Reason)
		ev.finishCommand(forced, false, c.Reason)
		return false
	case EditEmpty:
		st.Promotion = Idle
		st.addReason(cause.NoDiff, "the edit would change nothing")
		ev.finishCommand(forced, false, "there is nothing to change")
		return false
	}
	if why := ev.reasonIncomplete(e, release, c.Incomplete, forced); why != "" {
		st.addReason(cause.Incomplete, why)
		return false
	}
	return true
}

// reasonIncomplete says which fields were changed together with a release and wouldn't come along.
// It is "" where there are none, or where a person asked for the release, by a command that is
// about it or by the given one.
func (ev *evaluator) reasonIncomplete(e *Env, release, incomplete string, given *PendingCommand) string {
	if incomplete == "" || given != nil || ev.findBoundCommand(command.Promote, e.Name, release) != nil {
		return ""
	}
	return fmt.Sprintf("%s; /liftlock promote %s goes on without it", incomplete, e.Name)
}

func (ev *evaluator) requestComposition(e *Env, release, name string) {
	ev.addAction(FactRequest{What: RequestComposition, Environment: e.Name, Release: release,
		Members: []Member{ev.member(release, name, nil)}})
}
