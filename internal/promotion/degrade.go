package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// weatherSlack is how much earlier than the forge's merge time a neighbour may
// have become unwell and still count as the same window: the two times come
// from different clocks.
const weatherSlack = time.Minute

// revertWindow is what limits.revertsPer10Minutes counts over.
const revertWindow = 10 * time.Minute

// degradation judges what landed in an environment that is not well: revert it,
// or hold and say what a person must decide.
func (j *judge) degradation(e *Env, st *EnvState) {
	ask := j.unbound("revert", e.Name)
	if !e.Now.OK || !e.Landed.OK {
		if ask != nil {
			j.finish(ask, false, e.Name+" can't be read: "+st.Reason)
		}
		return
	}
	l, r := e.Landed.Value, j.roll[e.Name]
	if a := j.boundElsewhere("revert", e.Name, e.Now.Value.ID); a != nil {
		j.finish(a, true, e.Name+" no longer carries it")
	}
	if e.Undo != nil {
		if ask != nil {
			j.bind(ask, e.Now.Value.ID)
		}
		return
	}
	if a := j.bound("revert", e.Name, e.Now.Value.ID); a != nil {
		j.finish(a, false, "its revert is no longer open")
	}
	if l.By == ByRevert && st.State != Degraded && st.State != Failed {
		st.Promotion = Reverted
	}
	if ask == nil && (r.state != Degraded || l.By == ByBaseline || st.State == Diverged) {
		return
	}
	if l.By != ByPromotion {
		why := fmt.Sprintf("what %s carries was not brought by a promotion, so there is nothing to take back", e.Name)
		if ask != nil {
			j.finish(ask, false, why)
		} else {
			st.why("hold", why+"; a person has to decide")
		}
		return
	}
	if n := len(l.Passengers); n > 0 && !j.spec.Batches() {
		why := fmt.Sprintf("#%d brought %s together, when spec.batch was environment; taking them back is left to people", l.Pull, plural(n, "component"))
		if ask != nil {
			j.finish(ask, false, why)
		} else {
			st.why("hold", why)
		}
		return
	}
	if ask == nil {
		if code, why := j.dontRevert(e); why != "" {
			st.why(code, why)
			return
		}
		if !j.blameless(e, st) || !j.noIncident(e, st) {
			return
		}
	}
	j.takeBack(e, st, ask)
}

// dontRevert gives the cheap reasons for which a degradation is left to people.
func (j *judge) dontRevert(e *Env) (code, why string) {
	l := e.Landed.Value
	if e.Spec.OnDegraded == pipeline.OnDegradedHold {
		return "hold", "onDegraded: hold; a person decides (/liftlock revert)"
	}
	if age := j.f.Now.Sub(l.At); age > window(e) {
		return "hold", fmt.Sprintf("it was merged longer ago than its watch (%s); nothing that old is reverted by itself (/liftlock revert)", window(e))
	}
	if p := refusedRevert(e); p != nil {
		return "hold", fmt.Sprintf("the revert #%d was closed by a person (/liftlock retry opens it again)", p.Number)
	}
	for _, t := range e.Targets {
		if t.Verdict.State != verification.Degraded {
			continue
		}
		if !t.WellBefore.OK {
			return "hold", fmt.Sprintf("whether %s was well before the merge is not known (%s), so the promotion can't be blamed; a person has to decide (/liftlock revert)", t.Name, firstNonEmpty(t.WellBefore.Err, "no record"))
		}
		if !t.WellBefore.Value {
			return "hold", fmt.Sprintf("%s was already unwell before the merge; a person has to decide (/liftlock revert)", t.Name)
		}
		if n := j.f.Limits.RevertsByCluster[t.Cluster]; j.storming(n) {
			return "storm", j.storm(n, "on cluster "+t.Cluster)
		}
	}
	if n := j.f.Limits.RevertsByEnv[e.Name]; j.storming(n) {
		return "storm", j.storm(n, "in "+e.Name)
	}
	return "", ""
}

// brought says that weather is about a target that the same pull request moved.
func (l *Landed) brought(w *Weather, env string) bool {
	return w.Environment == env && slices.ContainsFunc(l.Passengers, func(p Passenger) bool { return p.Component == w.Component })
}

// refusedRevert is the revert of what is there now that a person closed; nil
// when there is none.
func refusedRevert(e *Env) *Past {
	for i := range e.Past {
		p := &e.Past[i]
		if p.Revert && !p.Merged && !p.Superseded && SameRelease(e.Now.Value.ID, Short(p.Release)) && p.At.After(e.Landed.Value.At) {
			return p
		}
	}
	return nil
}

// storming says that as many reverts were opened as the limit allows.
func (j *judge) storming(n int) bool {
	limit := j.spec.Limits.RevertsPer10Minutes
	return limit > 0 && n >= limit
}

func (j *judge) storm(n int, where string) string {
	return fmt.Sprintf("%s were opened %s within 10 minutes (limits.revertsPer10Minutes: %d): everything holds; a person has to decide (/liftlock revert)", plural(n, "revert"), where, j.spec.Limits.RevertsPer10Minutes)
}

// blameless asks Git whether another commit touched what the degraded targets
// read since the merge; true when none did.
func (j *judge) blameless(e *Env, st *EnvState) bool {
	for _, t := range e.Targets {
		if t.Verdict.State != verification.Degraded {
			continue
		}
		if !t.Touched.OK {
			if t.Touched.Err != "" {
				st.why("hold", "what else changed since the merge can't be told: "+t.Touched.Err)
				return false
			}
			j.do(Look{What: LookBlame, Environment: e.Name})
			return false
		}
		if len(t.Touched.Value) > 0 {
			st.why("hold", fmt.Sprintf("%s also changed what %s reads since the merge; a person has to decide (/liftlock revert)", strings.Join(shorts(t.Touched.Value), ", "), t.Name))
			return false
		}
	}
	return true
}

// noIncident asks, where targets that the promotion didn't touch became unwell
// on the same cluster too, whether it changed what is degraded: if it did, it is
// to blame all the same. If it didn't, or that can't be told, a person decides.
func (j *judge) noIncident(e *Env, st *EnvState) bool {
	for i := range e.Targets {
		t := &e.Targets[i]
		w := j.neighbour(e, t)
		if t.Verdict.State != verification.Degraded || w == nil {
			continue
		}
		bad, but := verification.Culprits(t.Unwell), ""
		switch {
		case len(bad) == 0:
			but = fmt.Sprintf("Argo CD doesn't say which resources of %s are degraded", t.Name)
		case !t.Changed.OK && t.Changed.Err == "":
			j.do(Look{What: LookChanged, Environment: e.Name})
			return false
		case !t.Changed.OK:
			but = fmt.Sprintf("whether the promotion changed what is degraded in %s can't be told: %s", t.Name, t.Changed.Err)
		case changedOf(t, bad) == nil:
			but = fmt.Sprintf("what is degraded in %s (%s) is nothing that the promotion changed", t.Name, resources(bad))
		default:
			continue
		}
		st.why("hold", fmt.Sprintf("%s on the same cluster (%s), which this promotion didn't touch, became unwell too, and %s: an incident is likely; a person has to decide (/liftlock revert)", w.Target, w.Cluster, but))
		return false
	}
	return true
}

// neighbour is a target that the promotion didn't touch and that became unwell
// on a target's cluster since the promotion landed; nil when there is none.
func (j *judge) neighbour(e *Env, t *Target) *Weather {
	for i := range j.f.Weather {
		if w := &j.f.Weather[i]; w.Cluster == t.Cluster && !e.Landed.Value.brought(w, e.Name) && !w.Since.Before(e.Landed.Value.At.Add(-weatherSlack)) {
			return w
		}
	}
	return nil
}

// changedOf are those of a target's resources that what landed changed.
func changedOf(t *Target, bad []verification.Resource) []verification.Resource {
	var out []verification.Resource
	for _, r := range bad {
		if slices.ContainsFunc(t.Changed.Value, func(o Object) bool { return o.is(r) }) {
			out = append(out, r)
		}
	}
	return out
}

// resources names a few resources.
func resources(list []verification.Resource) string {
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

func shorts(commits []string) []string {
	out := make([]string, len(commits))
	for i, c := range commits {
		out[i] = Short(c)
	}
	return out
}

// takeBack opens the revert once it is known that it can be made.
func (j *judge) takeBack(e *Env, st *EnvState, ask *Ask) {
	l := e.Landed.Value
	if e.ForeignUndo != "" {
		st.why("foreign", e.ForeignUndo)
		if ask != nil {
			j.finish(ask, false, e.ForeignUndo)
		}
		return
	}
	if p := refusedRevert(e); p != nil && ask != nil && p.At.After(ask.At) {
		j.finish(ask, false, fmt.Sprintf("the revert #%d was closed by a person since", p.Number))
		return
	}
	if !e.Restore.OK || e.Restore.Value.Tip != e.Tip {
		if e.Restore.Err != "" {
			st.why("hold", "the revert can't be composed: "+e.Restore.Err)
			if ask != nil {
				j.finish(ask, false, "the revert can't be composed: "+e.Restore.Err)
			}
			return
		}
		j.do(Look{What: LookRestore, Environment: e.Name})
		return
	}
	if why := e.Restore.Value.Refused; why != "" {
		st.why("hold", "the revert can't be composed: "+why)
		if ask != nil {
			j.finish(ask, false, "the revert can't be composed: "+why)
		}
		return
	}
	open := OpenRevert{Environment: e.Name, Pull: l.Pull, Release: e.Now.Value.ID, Commit: l.Commit, Tip: e.Tip, Evidence: j.evidence(e)}
	if ask != nil {
		open.By, open.Reason, open.Ask = ask.By, ask.Reason, ask.ID
		j.asked[ask.ID] = true
	}
	st.Promotion = Reverting
	j.reverting[e.Name] = e.Now.Value.ID
	j.do(open)
}

// evidence lists what speaks against the release, a line a fact.
func (j *judge) evidence(e *Env) []string {
	var out []string
	for _, t := range e.Targets {
		if t.Verdict.State != verification.Degraded {
			continue
		}
		since := ""
		if !t.Verdict.Since.IsZero() {
			since = " since " + t.Verdict.Since.UTC().Format(time.RFC3339)
		}
		out = append(out, fmt.Sprintf("%s on %s: %s%s", t.Name, firstNonEmpty(t.Cluster, "its cluster"), t.Verdict.Reason, since))
		for _, u := range t.Unwell {
			out = append(out, fmt.Sprintf("%s: %s %s is %s: %s", t.Name, u.Kind, u.Name, u.Health, firstNonEmpty(u.Message, "no message")))
		}
		if w := j.neighbour(e, &t); w != nil && t.Changed.OK {
			if own := changedOf(&t, verification.Culprits(t.Unwell)); own != nil {
				out = append(out, fmt.Sprintf("%s: %s on the same cluster became unwell too, but %s is what the promotion changed", t.Name, w.Target, resources(own)))
			}
		}
		for _, m := range t.Timeline {
			out = append(out, fmt.Sprintf("%s: %s %s %s", t.Name, m.At.UTC().Format(time.RFC3339), m.State, m.Note))
		}
	}
	return out
}

// undo judges an open revert: still needed, to be composed anew, or to be merged.
func (j *judge) undo(e *Env, st *EnvState) {
	u := e.Undo
	if u == nil {
		return
	}
	st.Promotion = Reverting
	if u.Unsound != "" {
		st.why("foreign", u.Unsound)
		return
	}
	if !e.Now.OK || !e.Landed.OK {
		st.why("unreadable", st.Reason)
		return
	}
	why := ""
	switch l := e.Landed.Value; {
	case !SameRelease(e.Now.Value.ID, u.Release):
		why = e.Name + " no longer carries what it takes back"
	case l.By == ByPerson:
		why = fmt.Sprintf("%s changed %s by hand since", orSomebody(l.Who), e.Name)
	case l.By != ByPromotion:
		why = fmt.Sprintf("what %s carries was not brought by a promotion", e.Name)
	}
	if why != "" {
		j.do(Close{Environment: e.Name, Pull: u.Number, Revert: true, Why: why})
		return
	}
	if u.Diverged {
		st.why("hold", fmt.Sprintf("the fields that #%d restores changed since; a person has to decide", u.Number))
		return
	}
	if u.Stale && j.f.Broken == "" {
		j.do(RestoreUndo{Environment: e.Name, Pull: u.Number, Head: u.Head, Tip: e.Tip})
		return
	}
	st.UndoGates = j.gates(e, u, true)
	if !allPass(st.UndoGates) {
		return
	}
	if e.Spec.OnDegraded != pipeline.OnDegradedRevertAndMerge {
		st.why("manual", fmt.Sprintf("the revert #%d waits for a person to merge it (onDegraded: %s)", u.Number, e.Spec.OnDegraded))
		return
	}
	j.do(Merge{Environment: e.Name, Pull: u.Number, Head: u.Head, Tip: e.Tip, Revert: true})
}

// undoGates are a revert's own conditions. The pipeline's gates are not among
// them: it restores bytes that passed them before.
func (j *judge) undoGates(e *Env, u *Pull, add func(string, policies.Outcome, string)) {
	asked := j.bound("revert", e.Name, u.Release) != nil
	if r := j.roll[e.Name]; r.state != Degraded && !asked && u.Wanted == "" {
		add("degraded", policies.Wait, fmt.Sprintf("%s is not degraded right now (%s); a person merges or closes it", e.Name, r.reason))
	}
}
