package promotion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/policies"
)

// evaluateOpen judges an open promotion: still right, to be replaced, or to be merged.
func (ev *evaluator) evaluateOpen(e *Env, st *EnvState) {
	p := e.Open
	st.Promotion, st.Candidate, st.CandidateName = Opened, p.Release, p.Name
	if why := ev.reasonOthersWork(e); why != "" {
		st.Promotion, ev.othersWork[e.Name] = Held, true
		st.addReason(cause.Unmanaged, why)
		return
	}
	if a := ev.findOtherBoundCommand(command.Promote, e.Name, p.Release); a != nil && a.Release == e.Release.Value.ID {
		ev.finishCommand(a, true, e.Name+" carries it")
	} else {
		ev.finishCommand(a, false, "another release took its place")
	}
	own, forced := ev.findBoundCommand(command.Promote, e.Name, p.Release), ev.findUnboundCommand(command.Promote, e.Name)
	if p.Release == e.Release.Value.ID {
		ev.addAction(Close{Environment: e.Name, Pull: p.Number, Members: ev.membersOf(p),
			Why: fmt.Sprintf("%s already carries %s", e.Name, p.Name)})
		ev.finishCommand(own, true, e.Name+" already carries it")
		return
	}
	command := own
	if command == nil {
		command = forced
	}
	if ev.closeWithdrawn(e, st, command) {
		return
	}
	if why := ev.reasonToLeave(e); why != "" {
		ev.addAction(Close{Environment: e.Name, Pull: p.Number, Members: ev.membersOf(p), Why: why})
		st.Promotion = Held
		st.addReason(cause.Hold, why)
		return
	}
	if forced != nil && !ev.meansNewerRelease(e, forced) {
		ev.bindCommand(forced, p.Release)
		own, forced = forced, nil
	}
	if ev.replaceOpen(e, st, own, forced) {
		return
	}
	st.Gates = ev.evaluateGates(e, p, false)
	if p.Held || len(ev.listHolds(e)) > 0 || st.State == Diverged && own == nil {
		st.Promotion = Held
	}
	if st.Promotion != Held {
		ev.requestReviewers(e, p)
	}
	behind, attempt := p.isBehindAlone(st.Gates, false, ev.facts.Now), p.isBlockedWrongly(st.Gates, ev.facts.Now)
	if !allPass(st.Gates) && (!behind && !attempt || !e.MergesByItself(false)) {
		return
	}
	if !e.MergesByItself(false) && !p.Queued { // who queued it merges it
		st.addReason(cause.Manual, "every gate passes; merge: manual, so a person merges it")
		return
	}
	ev.addAction(Merge{Environment: e.Name, Pull: p.Number, Head: p.Head, Tip: e.Tip, Members: ev.membersOf(p),
		Until:  findEarliestEnd(st.Gates),
		Behind: behind, KeepApprovals: behind && p.keepsApprovals(), Attempt: attempt})
}

// meansNewerRelease says whether a promote that was given while a pull request is open means
// another release than that one's. There is a newer one, and no person has put the open one on
// hold.
func (ev *evaluator) meansNewerRelease(e *Env, forced *PendingCommand) bool {
	if e.Open.Held || len(ev.listHolds(e)) > 0 {
		return false
	}
	var sub EnvState
	c, _ := ev.pickCandidate(e, &sub, forced)
	return c != nil && c.Release != e.Open.Release && c.Rank > ev.releaseRank(e, e.Open.Release)
}

// closeWithdrawn closes an open promotion that wouldn't be opened now because of what became of its
// release; true when it does. One that upstream took back stays where people want it to, and waits.
func (ev *evaluator) closeWithdrawn(e *Env, st *EnvState, command *PendingCommand) bool {
	p := e.Open
	why := ev.reasonBarredUpstream(e, p.Release)
	if q, since := ev.quarantineReason(e, p.Release); why == "" && (command == nil || !command.At.After(since)) {
		why = q
	}
	if why != "" {
		ev.addAction(Close{Environment: e.Name, Pull: p.Number, Members: ev.membersOf(p), Why: fmt.Sprintf("%s %s", p.Name, why)})
		return true
	}
	withdrawn := ev.reasonNotToMerge(e, command)
	if withdrawn.Code != cause.Withdrawn {
		return false
	}
	keeps := ev.reasonToStay(e, true)
	if command != nil {
		keeps = fmt.Sprintf("%s asked for it", orSomebody(command.By))
	}
	if keeps == "" {
		ev.addAction(Close{Environment: e.Name, Pull: p.Number, Members: ev.membersOf(p), Why: withdrawn.Text})
		return true
	}
	st.addReason(cause.Withdrawn, fmt.Sprintf("%s; this one stays open: %s", withdrawn.Text, keeps))
	return false
}

// reasonNotToMerge says why the open promotion's release wouldn't be opened now, for which it may
// not be merged either. Without text it would be, though maybe after a newer one. command is the
// one that it is open by, or that is about it.
func (ev *evaluator) reasonNotToMerge(e *Env, command *PendingCommand) Reason {
	p := e.Open
	known := ev.findCandidate(e, p.Release, command != nil)
	c := candidate{Release: p.Release, Name: cmp.Or(p.Name, ev.releaseName(p.Release))}
	if known != nil {
		c = *known
	}
	if why := ev.reasonUnverified(e, p, command != nil); why.Text != "" && known == nil && !p.isDeclared() {
		return why
	}
	if why := ev.reasonOutdated(e, c.Release, c.Name); why != "" && (command == nil || e.Landed.Value.By != ByPerson) {
		return Reason{Code: cause.Withdrawn, Text: why}
	}
	if why, _ := ev.reasonNotToCome(e, &c, command); why.Text != "" || known != nil {
		return why
	}
	return ev.reasonUnverified(e, p, command != nil)
}

// reasonUnverified says which environment before e hasn't verified an open promotion's release. The
// environment's record may have lost how the release came there first. Then it is proof that
// Liftlock opened the promotion, if the record has nothing of the release, or begins with it or
// with a revert that put it back.
func (ev *evaluator) reasonUnverified(e *Env, p *Pull, requested bool) Reason {
	for _, name := range e.Spec.After {
		u := ev.facts.findEnv(name)
		if u == nil {
			continue
		}
		verified := slices.ContainsFunc(u.History, func(a Arrival) bool {
			return a.Release == p.Release && a.IsVerified() && ev.canMoveOnward(u, &a, requested || p.isDeclared())
		})
		if !verified && (u.findArrival(p.Release) >= 0 || !p.isDeclared()) {
			return Reason{Code: cause.Unverified, Text: fmt.Sprintf("%s has not verified %s", name, cmp.Or(p.Name, ev.releaseName(p.Release)))}
		}
	}
	return Reason{}
}

// findCandidate finds a release among the candidates; nil when it is none.
func (ev *evaluator) findCandidate(e *Env, release string, requested bool) *candidate {
	all := ev.listCandidates(e, requested)
	i := slices.IndexFunc(all, func(c candidate) bool { return c.Release == release })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// isDeclared says that the release is known to be the one that Liftlock put there.
func (p *Pull) isDeclared() bool { return p.DeclaredRelease.OK && p.DeclaredRelease.Value == p.Release }

// reasonOthersWork says why the head of the open promotion is another account's work; "" when it
// isn't. Anybody who may push puts another release there, and of those only one that could be
// opened now may come over the head: it is composed anew then.
func (ev *evaluator) reasonOthersWork(e *Env) string {
	p := e.Open
	switch {
	case p == nil:
		return ""
	case p.HeadState == HeadModified:
		return p.HeadReason
	case p.isDeclared(), p.Release == e.Release.Value.ID:
		return ""
	}
	command := ev.findCommandFor(e, p.Release)
	why := ev.reasonNotToMerge(e, command)
	if why.Text == "" && e.Spec.Open == pipeline.Manual && command == nil {
		why.Text = fmt.Sprintf("open: manual, and nobody asked for it; /liftlock promote %s does", e.Name)
	}
	if why.Text == "" {
		return ""
	}
	return fmt.Sprintf("#%d carries %s, which isn't known to be what Liftlock put there and wouldn't be opened now: %s; nothing is done "+
		"with it until /liftlock retry",
		p.Number, cmp.Or(p.Name, ev.releaseName(p.Release)), why.Text)
}

// findCommandFor finds the promote that an open promotion of a release is by, or else one that isn't
// about any yet; nil when there is none.
func (ev *evaluator) findCommandFor(e *Env, release string) *PendingCommand {
	if own := ev.findBoundCommand(command.Promote, e.Name, release); own != nil {
		return own
	}
	return ev.findUnboundCommand(command.Promote, e.Name)
}

// replaceOpen composes the open promotion anew where it must be: a newer release is
// there and may take its place, or its files moved on the branch. mine is the
// command by which the open one came, forced one that wants a newer.
func (ev *evaluator) replaceOpen(e *Env, st *EnvState, own, forced *PendingCommand) bool {
	p := e.Open
	release, name, why := p.Release, p.Name, ""
	var sub EnvState
	if c, _ := ev.pickCandidate(e, &sub, forced); c != nil && c.Rank > ev.releaseRank(e, p.Release) {
		keeps := ev.reasonNotToReplace(e, own)
		switch {
		case forced != nil:
			release, name, why = c.Release, c.Name, fmt.Sprintf("%s asked for %s", orSomebody(forced.By), c.Name)
		case keeps != "":
			st.addReason(cause.NewerWaits, fmt.Sprintf("%s is newer and waits its turn behind this one: %s", c.Name, keeps))
		default:
			release, name, why = c.Release, c.Name, fmt.Sprintf("%s is newer", c.Name)
		}
	}
	if why == "" && p.Stale {
		why = "the files it edits changed on the tracked branch"
	}
	if why == "" && !p.isDeclared() && !ev.isOnHold(e) {
		why = "its head isn't known to be Liftlock's own"
	}
	if why == "" || ev.facts.PipelineErr != "" || len(ev.facts.Problems) > 0 {
		return false
	}
	if st.State == Diverged && own == nil && forced == nil {
		return false
	}
	if !ev.ensureComposed(e, st, release, name, forced) {
		_, known := e.composition(release)
		return !known // refused or nothing to change: said in st; gates will show it stale
	}
	if release != p.Release {
		ev.finishCommand(own, false, "a newer release took its place")
	}
	ev.addAction(Replace{Environment: e.Name, Pull: p.Number, Head: p.Head, Release: release, Name: name, Tip: e.Tip, Why: why,
		Members: []Member{ev.member(release, name, forced)}})
	return true
}

// reasonNotToReplace says why an open promotion isn't replaced by a newer release of its
// own accord; "" when it is. That it is approved doesn't keep what may not be merged.
func (ev *evaluator) reasonNotToReplace(e *Env, command *PendingCommand) string {
	return ev.reasonToStay(e, e.Open.isDeclared() && ev.reasonNotToMerge(e, command).Text == "")
}

// reasonToStay says why people want an open promotion to stay as it is; "" when they don't.
func (ev *evaluator) reasonToStay(e *Env, approvalCounts bool) string {
	switch {
	case approvalCounts && ev.isApproved(e, e.Open) && !ev.cannotSoak(e):
		return "it is approved"
	case ev.isOnHold(e):
		return "it is on hold"
	case e.Spec.Open == pipeline.Manual:
		return fmt.Sprintf("open: manual; /liftlock promote %s brings the newer in", e.Name)
	}
	return ""
}

func (ev *evaluator) isOnHold(e *Env) bool { return e.Open.Held || len(ev.listHolds(e)) > 0 }

// isApproved says whether anybody's approval counts for the pull request as it is: for one of the
// environment's gates, where any asks for approvals.
func (ev *evaluator) isApproved(e *Env, p *Pull) bool {
	facts := p.Review
	facts.Now = ev.facts.Now
	return policies.IsApproved(slices.Concat(e.Gates, e.Floor), facts)
}
