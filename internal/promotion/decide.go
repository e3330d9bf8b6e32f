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
)

// evaluator is one run of Decide.
type evaluator struct {
	facts     *Facts
	spec      *pipeline.Spec
	rollups   map[string]rollup // by environment
	decision  Decision
	finished  map[int64]bool    // asks that this decision answers
	reverting map[string]string // by environment: the release that this decision takes back
}

// rollup is what an environment's targets say together.
type rollup struct {
	state  string // Verifying, Verified, Degraded, Failed
	reason string
	clear  bool // every target is verified right now, not only once
}

// Decide judges one unit. It is pure and total: facts that are missing make it
// wait or ask (Look), never guess. Actions come in the order in which they are
// to be done; after a Look the caller gathers the fact and calls again.
func Decide(f Facts) Decision {
	// The run notes what it finds out as it goes; the caller's facts stay as they are.
	f.PendingCommands = slices.Clone(f.PendingCommands)
	f.Envs = slices.Clone(f.Envs)
	for i := range f.Envs {
		f.Envs[i].History = slices.Clone(f.Envs[i].History)
		f.Envs[i].PastPulls = slices.Clone(f.Envs[i].PastPulls)
	}
	if f.Pipeline == nil {
		f.Pipeline = &pipeline.Pipeline{}
		f.PipelineErr = cmp.Or(f.PipelineErr, "there is none")
	}
	j := &evaluator{facts: &f, spec: &f.Pipeline.Spec, rollups: map[string]rollup{}, finished: map[int64]bool{}, reverting: map[string]string{}}
	for i := range f.Envs {
		j.rollups[f.Envs[i].Name] = rollUpTargets(&f.Envs[i])
	}
	for i := range f.Envs {
		j.evaluateEnv(&f.Envs[i])
	}
	j.finishLeftoverCommands()
	if j.spec.Mode == pipeline.ModeDryRun {
		j.suppressActions()
	}
	return j.decision
}

// rollUpTargets joins the verdicts of an environment's targets: degraded and failed
// win, verified needs all, otherwise the first that is not there yet speaks.
func rollUpTargets(e *Env) rollup {
	if len(e.Targets) == 0 {
		return rollup{state: Verifying, reason: "no ApplicationSet generates a target for this component here"}
	}
	for _, t := range e.Targets {
		if t.Verdict.State == verification.Degraded {
			return rollup{state: Degraded, reason: t.Name + ": " + t.Verdict.Reason}
		}
	}
	for _, t := range e.Targets {
		if t.Verdict.State == verification.Failed {
			return rollup{state: Failed, reason: t.Name + ": " + t.Verdict.Reason}
		}
	}
	for _, t := range e.Targets {
		if t.Verdict.State == verification.Verified {
			continue
		}
		why := t.Name + ": " + t.Verdict.Reason
		if a := e.currentArrival(); a != nil && isVerified(a) {
			// Once verified it stays so until something is known to be wrong: a
			// target that Argo CD can't judge right now is neither well nor unwell.
			return rollup{state: Verified, reason: "verified; now " + why}
		}
		return rollup{state: Verifying, reason: why}
	}
	for _, t := range e.Targets {
		if t.Verdict.Lapsed {
			return rollup{state: Verified, reason: t.Name + ": " + t.Verdict.Reason}
		}
	}
	return rollup{state: Verified, reason: fmt.Sprintf("synced and healthy on %s", wording.Count(len(e.Targets), "target")), clear: true}
}

// currentArrival is the history's entry for what is there now; nil when the
// environment can't be read or was not recorded.
func (e *Env) currentArrival() *Arrival {
	if !e.Release.OK || !e.Landed.OK {
		return nil
	}
	id := e.Release.Value.ID
	for i := range e.History {
		if a := &e.History[i]; a.Release == id && a.Commit == e.Landed.Value.Commit {
			return a
		}
	}
	return nil
}

func isDegraded(a *Arrival) bool { return !a.DegradedAt.IsZero() && !a.DegradedAt.Before(a.VerifiedAt) }
func isVerified(a *Arrival) bool { return !a.VerifiedAt.IsZero() && !isDegraded(a) }

// evaluateEnv judges one environment: what is there, then what wants to come.
func (j *evaluator) evaluateEnv(e *Env) {
	st := EnvState{Environment: e.Name, Promotion: Idle, Targets: map[string]TargetView{}}
	for _, t := range e.Targets {
		st.Targets[t.Name] = TargetView{State: string(t.Verdict.State), Reason: t.Verdict.Reason, Since: t.Verdict.Since}
		j.recheckAt(t.Verdict.Next)
	}
	if e.Open != nil {
		st.Pull = e.Open.Number
	}
	if e.Revert != nil {
		st.Revert = e.Revert.Number
	}
	j.evaluateCurrent(e, &st)
	j.evaluateRetry(e, &st)
	if !e.Source() {
		j.evaluateRevert(e, &st)
		j.evaluateDegradation(e, &st)
		j.evaluateIncoming(e, &st)
	}
	j.decision.Envs = append(j.decision.Envs, st)
}

// evaluateCurrent says what is in the environment and how it is.
func (j *evaluator) evaluateCurrent(e *Env, st *EnvState) {
	if e.Mixed != "" {
		st.State, st.Reason = Mixed, e.Mixed
		return
	}
	if !e.Release.OK || !e.Landed.OK {
		st.State, st.Reason = Unreadable, cmp.Or(e.Release.Err, e.Landed.Err, "not read yet")
		return
	}
	l := e.Landed.Value
	st.Release, st.Name = e.Release.Value.ID, e.Release.Value.String()
	st.Since, st.LandedPull, st.LandedBy, st.Commit = l.At, l.Pull, l.By, l.Commit
	r := j.rollups[e.Name]
	st.State, st.Reason = r.state, r.reason
	a := e.currentArrival()
	if a != nil {
		st.VerifiedAt = a.VerifiedAt
	}
	switch {
	case l.By == ByPerson && !e.Source():
		st.State = Diverged
		st.Reason = fmt.Sprintf("%s changed it by hand in %s; Liftlock leaves it alone until /liftlock promote %s", orSomebody(l.Author), wording.Short(l.Commit), e.Name)
	case l.By == ByBaseline && r.state != Degraded && !j.needsVerdict(e):
		st.State = Baseline
		st.Reason = "was there before the pipeline came in; it is not moved by itself"
	case r.state == Verifying && !j.needsVerdict(e):
		st.State = Idle
		st.Reason = "in place; nothing waits for its verification"
	}
	if a != nil && l.By != ByBaseline && !(l.By == ByPerson && !e.Source()) || a != nil && j.needsVerdict(e) {
		switch {
		case r.state == Verified && r.clear && !isVerified(a):
			j.addAction(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, Verified: true})
			a.VerifiedAt = j.facts.Now
			st.VerifiedAt = j.facts.Now
		case r.state == Degraded && !isDegraded(a):
			j.addAction(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, Degraded: true})
			a.DegradedAt = j.facts.Now
		}
	}
	if !j.needsVerdict(e) {
		return
	}
	for _, t := range e.Targets {
		if t.Verdict.Refresh {
			j.addAction(Refresh{Environment: e.Name, Target: t.Name})
		}
		if t.Verdict.Sync {
			j.addAction(Sync{Environment: e.Name, Target: t.Name, Commit: l.Commit})
		}
	}
}

// needsVerdict says whether anybody needs to know how this environment is: it landed
// within its watch, or what is there may still have to go further. Without this
// a start on a large repository would ask Argo CD to refresh everything.
func (j *evaluator) needsVerdict(e *Env) bool {
	if !e.Landed.OK || !e.Release.OK {
		return false
	}
	l := e.Landed.Value
	if l.By == ByPerson && !e.Source() {
		return false
	}
	requested := false
	for i := range j.facts.Envs {
		d := &j.facts.Envs[i]
		if !slices.Contains(d.Spec.After, e.Name) {
			continue
		}
		if j.findCommand("promote", d.Name) != nil {
			requested = true
		}
		if l.By != ByBaseline && d.Release.OK && d.Release.Value.ID != e.Release.Value.ID {
			return true
		}
	}
	if l.By == ByBaseline {
		return requested
	}
	return requested || j.facts.Now.Sub(l.At) <= autoRevertWindow(e)
}

// autoRevertWindow is how long after its merge a promotion may still be taken back
// without a person.
func autoRevertWindow(e *Env) time.Duration {
	v := e.Spec.Verify
	return time.Duration(v.ArriveWithin + v.Timeout + v.HealthyFor + v.Watch)
}

func (j *evaluator) addAction(a Action) { j.decision.Actions = append(j.decision.Actions, a) }

// minRecheckDelay is the shortest time after which a decision is worth making again when
// nothing was heard; overdue is that time where the one that was given has come
// and changed nothing: it must not be looked at again and again.
const (
	minRecheckDelay     = 100 * time.Millisecond
	pastDueRecheckDelay = 5 * time.Minute
)

// recheckAt notes when to look again at the latest.
func (j *evaluator) recheckAt(t time.Time) {
	if t.IsZero() {
		return
	}
	switch least := j.facts.Now.Add(minRecheckDelay); {
	case !t.After(j.facts.Now):
		t = j.facts.Now.Add(pastDueRecheckDelay)
	case t.Before(least):
		t = least
	}
	if j.decision.Next.IsZero() || t.Before(j.decision.Next) {
		j.decision.Next = t
	}
}

func (j *evaluator) findEnv(name string) *Env {
	for i := range j.facts.Envs {
		if j.facts.Envs[i].Name == name {
			return &j.facts.Envs[i]
		}
	}
	return nil
}

// listUpstream lists every environment that stands, directly or not, before e.
func (j *evaluator) listUpstream(e *Env) []*Env {
	var out []*Env
	seen := map[string]bool{}
	var walk func(names []string)
	walk = func(names []string) {
		for _, n := range names {
			if u := j.findEnv(n); u != nil && !seen[n] {
				seen[n] = true
				out = append(out, u)
				walk(u.Spec.After)
			}
		}
	}
	walk(e.Spec.After)
	return out
}

// suppressActions drops everything that changes the world and says so instead.
func (j *evaluator) suppressActions() {
	var kept []Action
	refuse := func(a Action, commandID int64) {
		if commandID != 0 {
			kept = append(kept, FinishCommand{Environment: EnvironmentOf(a), ID: commandID, Outcome: "nothing was done: the pipeline's mode is observe"})
		}
	}
	for _, a := range j.decision.Actions {
		switch a := a.(type) {
		case FactRequest, Record:
			kept = append(kept, a)
			continue
		case FinishCommand:
			if a.Done {
				refuse(a, a.ID)
			} else {
				kept = append(kept, a)
			}
			continue
		case Refresh, Sync:
			continue
		case BindCommand:
			refuse(a, a.ID)
			continue
		case Open:
			refuse(a, a.CommandID)
		case Replace:
			refuse(a, a.CommandID)
		case OpenRevert:
			refuse(a, a.CommandID)
		}
		for i := range j.decision.Envs {
			if st := &j.decision.Envs[i]; st.Environment == EnvironmentOf(a) {
				st.Why = append(st.Why, Reason{Code: "observe", Text: "mode is observe; otherwise: " + a.Describe()})
			}
		}
	}
	j.decision.Actions = kept
}

func (st *EnvState) addReason(code, text string) {
	st.Why = append(st.Why, Reason{Code: code, Text: text})
}

func orSomebody(who string) string { return cmp.Or(who, "somebody") }

// SameRelease compares an identity with one that may be short; an unknown one
// matches nothing.
func SameRelease(full, maybeShort string) bool {
	return len(maybeShort) >= 12 && strings.HasPrefix(full, maybeShort)
}
