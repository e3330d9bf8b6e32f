package promotion

import (
	"fmt"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// recheck bounds how often a merge state that the forge is still computing is
// looked at again: the wait grows with the age of the pull request's last change.
const (
	recheckFirst = 250 * time.Millisecond
	recheckLast  = 10 * time.Minute
)

// gates evaluates everything that stands between an open pull request and its
// merge. What always holds (Liftlock's own conditions) is listed only while it
// doesn't; the pipeline's gates are always listed.
func (j *judge) gates(e *Env, p *Pull, revert bool) []policies.Result {
	var out []policies.Result
	add := func(gate string, o policies.Outcome, reason string) {
		out = append(out, policies.Result{Gate: gate, Outcome: o, Reason: reason})
	}
	if j.f.Broken != "" {
		add("pipeline-file", policies.Wait, "the pipeline file on the default branch is broken: "+j.f.Broken)
	}
	for _, w := range j.f.Problems {
		add("targets", policies.Wait, w)
	}
	if j.f.HoldsErr != "" {
		add("hold", policies.Wait, "the holds can't be read: "+j.f.HoldsErr)
	}
	if p.Held {
		add("hold", policies.Wait, "the pull request has the label liftlock/hold; /liftlock unhold lifts it")
	}
	for _, h := range j.holdsOn(e) {
		add("hold", policies.Wait, h)
	}
	if p.Beyond != "" {
		add("one-environment", policies.Wait, p.Beyond)
	}
	if revert {
		j.undoGates(e, p, add)
	} else {
		j.promotionGates(e, p, add)
	}
	switch p.Mergeable {
	case "yes", "":
	case "unknown":
		add("mergeable", policies.Wait, "the forge is still computing whether it can be merged")
		j.at(j.f.Now.Add(recheck(j.f.Now.Sub(p.UpdatedAt))))
	case "dirty":
		add("mergeable", policies.Wait, "it conflicts with the tracked branch and is composed anew")
	default:
		add("mergeable", policies.Wait, "the forge blocks the merge: "+firstNonEmpty(p.MergeNote, p.Mergeable))
	}
	if revert {
		return out
	}
	facts := p.Review
	facts.Now = j.f.Now
	for i := range e.Gates {
		r := e.Gates[i].Evaluate(facts)
		j.at(r.Until)
		out = append(out, r)
	}
	if limit := j.spec.Limits.MergesPerHour; limit > 0 && j.f.Limits.MergesLastHour >= limit {
		until := j.f.Limits.OldestMerge
		if !until.IsZero() {
			until = until.Add(time.Hour)
		}
		out = append(out, policies.Result{Gate: "limit", Outcome: policies.Wait, Until: until,
			Reason: fmt.Sprintf("%d merges in the last hour (limits.mergesPerHour: %d)", j.f.Limits.MergesLastHour, limit)})
		j.at(until)
	}
	return out
}

func recheck(age time.Duration) time.Duration {
	return min(max(age/2, recheckFirst), recheckLast)
}

// promotionGates are the conditions that a promotion must still meet when it is
// merged: the world moved since it was opened.
func (j *judge) promotionGates(e *Env, p *Pull, add func(string, policies.Outcome, string)) {
	if e.Landed.OK && e.Landed.Value.By == ByPerson && j.bound("promote", e.Name, p.Release) == nil {
		l := e.Landed.Value
		add("diverged", policies.Wait, fmt.Sprintf("%s was changed by hand by %s meanwhile; /liftlock promote %s takes it over", e.Name, orSomebody(l.Who), e.Name))
	}
	if p.Stale {
		add("base", policies.Wait, "the files it edits changed on the tracked branch; it is composed anew")
	}
	if why := j.underRevert(e); why != "" {
		add("reverting", policies.Wait, why)
	}
	if n := j.f.Limits.RevertsByEnv[e.Name]; j.storming(n) {
		add("storm", policies.Wait, fmt.Sprintf("%s were opened in %s within 10 minutes (limits.revertsPer10Minutes: %d): everything holds", plural(n, "revert"), e.Name, j.spec.Limits.RevertsPer10Minutes))
		if oldest := j.f.Limits.OldestRevertInTen; !oldest.IsZero() {
			j.at(oldest.Add(revertWindow))
		}
	}
	// What is there must have come to its end first: otherwise a busy upstream
	// replaces every release before it is verified, and nothing ever gets past here.
	if r, l := j.roll[e.Name], e.Landed.Value; r.state == Verifying && len(e.Targets) > 0 && e.Landed.OK && (l.By == ByPromotion || l.By == ByRevert) {
		if until := l.At.Add(window(e)); j.f.Now.Before(until) {
			add("settled", policies.Wait, fmt.Sprintf("%s is still verifying %s: %s", e.Name, e.Now.Value, r.reason))
			j.at(until)
		}
	}
	if len(e.Targets) == 0 {
		add("targets", policies.Wait, "no ApplicationSet generates a target for this component in "+e.Name)
	}
	for _, u := range j.upstream(e) {
		for i := range u.History {
			if a := &u.History[i]; a.Release == p.Release {
				if a.Waits != "" {
					add("together", policies.Wait, fmt.Sprintf("%s in %s goes on when all that came with it do: %s", firstNonEmpty(a.Name, Short(a.Release)), u.Name, a.Waits))
				}
				break // the newest arrival speaks
			}
		}
		if !u.Now.OK {
			add("upstream", policies.Wait, fmt.Sprintf("whether %s is well with the same release can't be told: %s", u.Name, firstNonEmpty(u.Mixed, u.Now.Err, "not read yet")))
			continue
		}
		if u.Now.Value.ID != p.Release {
			continue // it moved on; its record of this release was checked before
		}
		if r := j.roll[u.Name]; !r.clear {
			add("upstream", policies.Wait, fmt.Sprintf("%s carries the same release and is not well right now: %s", u.Name, r.reason))
		}
	}
}

func allPass(rs []policies.Result) bool {
	for _, r := range rs {
		if r.Outcome != policies.Pass {
			return false
		}
	}
	return true
}
