package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// recheck bounds how often a merge state that the forge is still computing is read again: the wait
// grows with the age of the pull request's last change.
const (
	minMergeableRecheck = 250 * time.Millisecond
	maxMergeableRecheck = 10 * time.Minute
)

// evaluateGates evaluates everything that stands between an open pull request and its merge.
// Liftlock's own conditions are listed only while they don't hold; the pipeline's gates are always
// listed.
func (ev *evaluator) evaluateGates(e *Env, p *Pull, revert bool) []policies.Result {
	var out []policies.Result
	add := func(gate policies.GateName, o policies.Outcome, reason string) {
		out = append(out, policies.Result{Gate: gate, Outcome: o, Reason: reason})
	}
	if ev.facts.PipelineErr != "" {
		add(GatePipelineFile, policies.Wait, "the pipeline file on the default branch is broken: "+ev.facts.PipelineErr)
	}
	for _, w := range ev.facts.Problems {
		add(GateTargets, policies.Wait, w)
	}
	if !ev.facts.Holds.OK {
		add(GateHold, policies.Wait, "the holds can't be read: "+cmp.Or(ev.facts.Holds.Err, "not read yet"))
	}
	if p.Held {
		brief := "by its label " + LabelHold
		if p.HeldBy != "" {
			brief = briefHold(p.HeldBy, p.HeldUntil, p.HoldReason, ev.facts.Now)
		}
		out = append(out, policies.Result{Gate: GateHold, Outcome: policies.Wait, Brief: brief,
			Reason: "the pull request has the label liftlock/hold" + untilText(p.HeldUntil) + "; /liftlock unhold lifts it"})
	}
	for _, h := range ev.findHoldsOn(e) {
		// The way back to safety isn't meant by a stop, unless it says so.
		if !revert || h.Reverts {
			out = append(out, policies.Result{Gate: GateHold, Outcome: policies.Wait, Reason: ev.describeHold(h),
				Brief: briefHold(h.By, h.Until, h.Reason, ev.facts.Now)})
		}
	}
	if p.Reach != ReachEnvironment {
		add(GateOneEnvironment, policies.Wait, p.ReachReason)
	}
	if revert {
		ev.addRevertGates(e, p, add)
	} else {
		ev.addPromotionGates(e, p, add)
		out = append(out, ev.evaluateEffect(e, p)...)
	}
	own := ev.evaluateOwnGates(e, p, revert)
	if p.MergeUnread && !(allPass(out) && allPass(own)) {
		return append(out, own...) // whether it could be merged matters once nothing else waits
	}
	out = append(out, ev.evaluateMergeable(e, p, revert)...)
	return append(out, own...)
}

// evaluateMergeable is what the forge says of a merge now; nothing while it has nothing
// against it.
func (ev *evaluator) evaluateMergeable(e *Env, p *Pull, revert bool) []policies.Result {
	wait := func(reason string) []policies.Result {
		return []policies.Result{{Gate: GateMergeable, Outcome: policies.Wait, Reason: reason}}
	}
	mergeable := p.Mergeable
	switch {
	case p.Queued:
		mergeable = MergeClean // whether it still can be merged is the queue's to find out
	case p.AwaitsTurn && (p.MergeUnread || mergeable == MergeUnknown || mergeable == MergeUntold):
		return wait("others are merged before it; whether the forge would merge it is read when its turn comes")
	case p.MergeUnread:
		ev.addAction(FactRequest{What: RequestMergeability, Environment: e.Name})
		return wait("whether the forge would merge it is read now")
	}
	switch mergeable {
	case MergeClean:
		if p.isDropped() {
			return wait(droppedReason)
		}
		return nil
	case MergeUnknown, MergeUntold:
		since := p.UncomputedSince
		if since.IsZero() {
			since = p.UpdatedAt
		}
		ev.recheckAt(ev.facts.Now.Add(mergeableRecheckDelay(ev.facts.Now.Sub(since))))
		reason := "the forge is still computing whether it can be merged"
		if p.MergeNote != "" && p.MergeNote != string(MergeUnknown) {
			reason += " (" + p.MergeNote + ")"
		}
		return wait(reason)
	case MergeDirty:
		return wait("it conflicts with the tracked branch and is composed anew")
	case MergeBehind:
		manual := !e.MergesByItself(revert)
		if p.UpdatedFirst != 0 && !revert {
			ev.recheckAt(ev.facts.Now.Add(queueRecheckDelay)) // nobody tells when its turn comes
		}
		if p.isBeingUpdated(ev.facts.Now) {
			ev.recheckAt(p.SentUpdate.At.Add(updateInterval))
		}
		return wait(p.behindReason(manual, revert, ev.facts.Now))
	}
	if p.Refusal != nil && p.Refusal.NotifiedSince {
		ev.recheckAt(p.Refusal.At.Add(mergeAttemptInterval))
	}
	reason := p.blockedReason()
	if p.isDropped() {
		reason += "; " + droppedReason
	}
	return wait(reason)
}

// droppedReason says what becomes of a pull request that isDropped.
const droppedReason = "it joined the forge's merge queue and is out of it without having landed: what runs there failed, or somebody " +
	"took it out; see why on the forge, then /liftlock retry has it join again, as a new head does"

// evaluateOwnGates are the pipeline's gates and limits; a revert has none.
func (ev *evaluator) evaluateOwnGates(e *Env, p *Pull, revert bool) []policies.Result {
	if revert {
		return nil
	}
	facts := p.Review
	facts.Now, facts.Soaked = ev.facts.Now, ev.listSoaked(e, p.Release)
	facts.Promotion = ev.describePromotion(e, p, facts.Soaked)
	facts.SyncWindows, facts.Drift = e.SyncWindows, e.listDrift()
	out := ev.evaluatePipelineGates(e, p, facts)
	if r, reached := ev.evaluateMergeLimit(p); reached {
		out = append(out, r)
		ev.recheckAt(r.Until)
	}
	return out
}

// evaluateMergeLimit says that no more may be merged for now. Merges that are on their way, as in
// the forge's merge queue, count as done for later ones. A pull request that is in the queue
// already isn't taken out for the others there.
func (ev *evaluator) evaluateMergeLimit(p *Pull) (r policies.Result, reached bool) {
	limit, l := ev.spec.Limits.MergesPerHour, ev.facts.Limits
	first, queued := l.OldestMerge, 0
	for _, q := range l.QueuedMerges {
		if !p.Queued && q.Pull != p.Number {
			queued++
			first = earliest(first, q.At)
		}
	}
	if limit <= 0 || l.MergesLastHour+queued < limit {
		return policies.Result{}, false
	}
	r = policies.Result{Gate: GateLimit, Outcome: policies.Wait, Reason: fmt.Sprintf("%d merges in the last hour (limits.mergesPerHour: %d)",
		l.MergesLastHour, limit)}
	if queued > 0 {
		r.Reason = fmt.Sprintf("%d merges in the last hour, and %d on their way (limits.mergesPerHour: %d)",
			l.MergesLastHour, queued, limit)
	}
	if !first.IsZero() {
		r.Until = first.Add(time.Hour)
	}
	return r, true
}

// listDrift is how the environment's targets differ from Git, or why that can't be told.
func (e *Env) listDrift() []policies.TargetDrift {
	var out []policies.TargetDrift
	for i := range e.Targets {
		t := &e.Targets[i]
		d := policies.TargetDrift{Target: t.Name, InSync: t.Verdict.InSync, Err: t.Verdict.DriftUntold}
		if drift := t.Verdict.Drift; drift != nil {
			d.InSync, d.Differs, d.Since = false, drift.Describe(), drift.Since
		}
		out = append(out, d)
	}
	return out
}

// describePromotion is what gates know of the promotion; nil where nobody read it.
func (ev *evaluator) describePromotion(e *Env, p *Pull, soaked []policies.Soaked) *policies.Promotion {
	if p.Review.Promotion == nil {
		return nil
	}
	known := *p.Review.Promotion
	known.Pipeline, known.Environment, known.Component = ev.facts.Unit.Pipeline, e.Name, ev.facts.Unit.Component
	for _, u := range ev.listUpstream(e) {
		upstream := policies.UpstreamEnvironment{Name: u.Name}
		for i := range u.History {
			if a := &u.History[i]; a.Release == p.Release {
				if a.IsVerified() {
					upstream.Verified, upstream.VerifiedAt = true, a.VerifiedAt
				}
				break // the newest arrival speaks
			}
		}
		for _, s := range soaked {
			if s.Environment == u.Name {
				upstream.HealthyFor = max(s.Running, s.Longest)
			}
		}
		known.Upstream = append(known.Upstream, upstream)
	}
	for _, t := range e.Targets {
		known.Targets = append(known.Targets, policies.Target{Name: t.Name, Cluster: t.Cluster, Namespace: t.Namespace})
	}
	return &known
}

// orderGates puts freezes first: where several gates wait the first one speaks, and that
// it is frozen says more than that a window is closed too.
func orderGates(gates []policies.Gate) []policies.Gate {
	ordered := slices.Clone(gates)
	place := func(g policies.Gate) int {
		if g.Freeze != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ordered, func(a, b policies.Gate) int { return cmp.Compare(place(a), place(b)) })
	return ordered
}

func mergeableRecheckDelay(age time.Duration) time.Duration {
	return min(max(age/2, minMergeableRecheck), maxMergeableRecheck)
}

// addPromotionGates are the conditions that a promotion must still meet when it is
// merged: the world moved since it was opened.
func (ev *evaluator) addPromotionGates(e *Env, p *Pull, add addGate) {
	if e.Landed.Value.By == ByPerson && ev.findBoundCommand(command.Promote, e.Name, p.Release) == nil {
		l := e.Landed.Value
		add(GateDiverged, policies.Wait, fmt.Sprintf("%s was changed by hand by %s meanwhile; /liftlock promote %s takes it over", e.Name,
			orSomebody(l.Author), e.Name))
	}
	if why := ev.reasonNotToMerge(e, ev.findCommandFor(e, p.Release)); why.Text != "" {
		add(gateOfReason(why), policies.Wait, why.Text)
	}
	if why := ev.reasonIncomplete(e, p.Release, p.Incomplete, nil); why != "" {
		add(GateIncomplete, policies.Wait, why)
	}
	if !p.isDeclared() {
		add(GateBase, policies.Wait, "its head isn't known to be Liftlock's own; it is composed anew")
	}
	if p.Stale {
		add(GateBase, policies.Wait, "the files it edits changed on the tracked branch; it is composed anew")
	}
	if why := ev.pendingRevertReason(e); why != "" {
		add(GateReverting, policies.Wait, why)
	}
	if n := ev.facts.Limits.RevertsByEnv[e.Name]; ev.revertLimitReached(n) {
		add(GateRevertLimit, policies.Wait, fmt.Sprintf("%s were opened in %s within 10 minutes (limits.revertsPer10Minutes: %d): everything holds",
			wording.Count(n, "revert"), e.Name, ev.spec.Limits.RevertsPer10Minutes))
		if oldest := ev.facts.Limits.OldestRecentRevert; !oldest.IsZero() {
			ev.recheckAt(oldest.Add(revertWindow))
		}
	}
	// The release there must have come to its end first. Otherwise a busy upstream replaces every
	// release before it is verified, and nothing ever gets past here.
	r, l := ev.rollups[e.Name], e.Landed.Value
	isVerifying := r.state == Verifying && len(e.Targets) > 0
	if isVerifying && slices.Contains([]string{ByPromotion, ByHand, ByRevert}, l.By) {
		if until := l.At.Add(e.Spec.Verify.WatchWindow()); ev.facts.Now.Before(until) {
			add(GateVerifying, policies.Wait, fmt.Sprintf("%s is still verifying %s: %s", e.Name, e.Release.Value, r.reason))
			ev.recheckAt(until)
		}
	}
	if len(e.Targets) == 0 {
		add(GateTargets, policies.Wait, "no ApplicationSet generates a target for this component in "+e.Name)
	}
	for _, u := range ev.listUpstream(e) {
		for i := range u.History {
			if a := &u.History[i]; a.Release == p.Release {
				if why := ev.with.blockedBy[arrivalKey(u.Name, a.Commit)]; why != "" {
					add(GateBatch, policies.Wait, fmt.Sprintf("%s in %s goes on when all that came with it do: %s",
						cmp.Or(a.Name, wording.Short(a.Release)), u.Name, why))
				}
				break // the newest arrival speaks
			}
		}
		if !u.Release.OK {
			add(GateUpstream, policies.Wait, fmt.Sprintf("whether %s is well with the same release can't be told: %s", u.Name,
				cmp.Or(u.FieldsReason, u.Release.Err, "not read yet")))
			continue
		}
		if u.Release.Value.ID != p.Release {
			continue // it moved on; its record of this release was checked before
		}
		if r := ev.rollups[u.Name]; !r.clear {
			add(GateUpstream, policies.Wait, fmt.Sprintf("%s carries the same release and is not well right now: %s", u.Name, r.reason))
		}
	}
}

// gateOfReason is the condition that a reason for which a release may not come keeps from being met.
func gateOfReason(r Reason) policies.GateName {
	if r.Code == cause.Closed {
		return GateClosed
	}
	return GateUpstream
}

// findEarliestEnd is when the first of several passing gates may no longer pass, as far as they
// say. A window closes, a freeze begins, or an approval or a skip is over.
func findEarliestEnd(rs []policies.Result) time.Time {
	var first time.Time
	for _, r := range rs {
		first = earliest(first, r.Until)
	}
	return first
}

func allPass(rs []policies.Result) bool {
	return !slices.ContainsFunc(rs, func(r policies.Result) bool { return r.Outcome != policies.Pass })
}
