package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
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

// limitRecheckDelay is when a unit that waits for a place looks again: nobody says to it
// that another unit's pull request was closed. It costs no call to the forge.
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

// reasonIncomplete says what was changed together with a release and wouldn't come along; "" where
// there is nothing, or somebody asked for the release, by a command that is about it or by the given one.
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

// meansNewerRelease says whether a promote that was given while a pull request is open
// means another release than that one's: there is a newer one, and nobody has
// put the open one on hold.
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

// reasonNotToMerge says why the open promotion's release wouldn't be opened now, for which it may not
// be merged either; no text: it would be, though maybe after a newer one. command is the one that
// it is open by, or that is about it.
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

// reasonUnverified says which environment before e hasn't verified an open promotion's release. Of
// one whose record has lost how the release came there first, that Liftlock opened the promotion is
// proof: its record has nothing of it, or begins with it, or with a revert that put it back.
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

// reasonOthersWork says why the head of the open promotion is somebody else's work; "" when it isn't.
// Anybody who may push puts another release there, and of those only one that could be opened now
// may come over the head: it is composed anew then.
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

// listHolds lists the holds that cover an environment, for people.
func (ev *evaluator) listHolds(e *Env) []string {
	return ev.listHoldsOn(e, func(Hold) bool { return true })
}

func (ev *evaluator) listHoldsOn(e *Env, counts func(Hold) bool) []string {
	var out []string
	for _, h := range ev.activeHolds() {
		if h.Scope == "environment" && h.Environment != e.Name || !counts(h) {
			continue
		}
		s := fmt.Sprintf("%s is on hold by %s since %s%s", holdSubject(h, ev.facts.Unit.Component), orSomebody(h.By),
			h.At.UTC().Format(time.RFC3339), untilText(h.Until))
		if h.Reason != "" {
			s += ": " + h.Reason
		}
		out = append(out, s+"; /liftlock unhold "+h.Scope+" lifts it")
	}
	return out
}

// activeHolds lists the holds that haven't come to their end.
func (ev *evaluator) activeHolds() []Hold {
	var out []Hold
	for _, h := range ev.facts.Holds.Value {
		if !h.IsOver(ev.facts.Now) {
			out = append(out, h)
			ev.recheckAt(h.Until)
		}
	}
	return out
}

// untilText says when something ends; "" where it doesn't by itself.
func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format(time.RFC3339)
}

func holdSubject(h Hold, component string) string {
	switch h.Scope {
	case "environment":
		return "environment " + h.Environment
	case "component":
		return "component " + component
	}
	return "the pipeline"
}
