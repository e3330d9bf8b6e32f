package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// judge is one run of Decide.
type judge struct {
	f         *Facts
	spec      *pipeline.Spec
	roll      map[string]rollup // by environment
	d         Decision
	asked     map[int64]bool    // asks that this decision answers
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
	f.Asks = slices.Clone(f.Asks)
	f.Envs = slices.Clone(f.Envs)
	for i := range f.Envs {
		f.Envs[i].History = slices.Clone(f.Envs[i].History)
		f.Envs[i].Past = slices.Clone(f.Envs[i].Past)
	}
	if f.Pipeline == nil {
		f.Pipeline = &pipeline.Pipeline{}
		f.Broken = firstNonEmpty(f.Broken, "there is none")
	}
	j := &judge{f: &f, spec: &f.Pipeline.Spec, roll: map[string]rollup{}, asked: map[int64]bool{}, reverting: map[string]string{}}
	for i := range f.Envs {
		j.roll[f.Envs[i].Name] = rollUp(&f.Envs[i])
	}
	for i := range f.Envs {
		j.environment(&f.Envs[i])
	}
	j.leftoverAsks()
	if j.spec.Mode == pipeline.Observe {
		j.onlyObserve()
	}
	return j.d
}

// rollUp joins the verdicts of an environment's targets: degraded and failed
// win, verified needs all, otherwise the first that is not there yet speaks.
func rollUp(e *Env) rollup {
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
		if a := e.current(); a != nil && isVerified(a) {
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
	return rollup{state: Verified, reason: fmt.Sprintf("synced and healthy on %s", plural(len(e.Targets), "target")), clear: true}
}

// current is the history's entry for what is there now; nil when the
// environment can't be read or was not recorded.
func (e *Env) current() *Arrival {
	if !e.Now.OK || !e.Landed.OK {
		return nil
	}
	id := e.Now.Value.ID
	for i := range e.History {
		if a := &e.History[i]; a.Release == id && a.Commit == e.Landed.Value.Commit {
			return a
		}
	}
	return nil
}

func isDegraded(a *Arrival) bool { return !a.DegradedAt.IsZero() && !a.DegradedAt.Before(a.VerifiedAt) }
func isVerified(a *Arrival) bool { return !a.VerifiedAt.IsZero() && !isDegraded(a) }

// environment judges one environment: what is there, then what wants to come.
func (j *judge) environment(e *Env) {
	st := EnvState{Environment: e.Name, Promotion: Idle, Targets: map[string]TargetView{}}
	for _, t := range e.Targets {
		st.Targets[t.Name] = TargetView{State: string(t.Verdict.State), Reason: t.Verdict.Reason, Since: t.Verdict.Since}
		j.at(t.Verdict.Next)
	}
	if e.Open != nil {
		st.Pull = e.Open.Number
	}
	if e.Undo != nil {
		st.Undo = e.Undo.Number
	}
	j.present(e, &st)
	j.retry(e, &st)
	if !e.Source() {
		j.undo(e, &st)
		j.degradation(e, &st)
		j.incoming(e, &st)
	}
	j.d.Envs = append(j.d.Envs, st)
}

// present says what is in the environment and how it is.
func (j *judge) present(e *Env, st *EnvState) {
	if e.Mixed != "" {
		st.State, st.Reason = Mixed, e.Mixed
		return
	}
	if !e.Now.OK || !e.Landed.OK {
		st.State, st.Reason = Unreadable, firstNonEmpty(e.Now.Err, e.Landed.Err, "not read yet")
		return
	}
	l := e.Landed.Value
	st.Release, st.Name = e.Now.Value.ID, e.Now.Value.String()
	st.Since, st.LandedPull, st.LandedBy, st.Commit = l.At, l.Pull, l.By, l.Commit
	r := j.roll[e.Name]
	st.State, st.Reason = r.state, r.reason
	a := e.current()
	if a != nil {
		st.VerifiedAt = a.VerifiedAt
	}
	switch {
	case l.By == ByPerson && !e.Source():
		st.State = Diverged
		st.Reason = fmt.Sprintf("%s changed it by hand in %s; Liftlock leaves it alone until /liftlock promote %s", orSomebody(l.Who), Short(l.Commit), e.Name)
	case l.By == ByBaseline && r.state != Degraded && !j.wanted(e):
		st.State = Baseline
		st.Reason = "was there before the pipeline came in; it is not moved by itself"
	case r.state == Verifying && !j.wanted(e):
		st.State = Idle
		st.Reason = "in place; nothing waits for its verification"
	}
	if a != nil && l.By != ByBaseline && !(l.By == ByPerson && !e.Source()) || a != nil && j.wanted(e) {
		switch {
		case r.state == Verified && r.clear && !isVerified(a):
			j.do(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, Verified: true})
			a.VerifiedAt = j.f.Now
			st.VerifiedAt = j.f.Now
		case r.state == Degraded && !isDegraded(a):
			j.do(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, Degraded: true})
			a.DegradedAt = j.f.Now
		}
	}
	if !j.wanted(e) {
		return
	}
	for _, t := range e.Targets {
		if t.Verdict.Refresh {
			j.do(Refresh{Environment: e.Name, Target: t.Name})
		}
		if t.Verdict.Sync {
			j.do(Sync{Environment: e.Name, Target: t.Name, Commit: l.Commit})
		}
	}
}

// wanted says whether anybody needs to know how this environment is: it landed
// within its watch, or what is there may still have to go further. Without this
// a start on a large repository would ask Argo CD to refresh everything.
func (j *judge) wanted(e *Env) bool {
	if !e.Landed.OK || !e.Now.OK {
		return false
	}
	l := e.Landed.Value
	if l.By == ByPerson && !e.Source() {
		return false
	}
	asked := false
	for i := range j.f.Envs {
		d := &j.f.Envs[i]
		if !slices.Contains(d.Spec.After, e.Name) {
			continue
		}
		if j.ask("promote", d.Name) != nil {
			asked = true
		}
		if l.By != ByBaseline && d.Now.OK && d.Now.Value.ID != e.Now.Value.ID {
			return true
		}
	}
	if l.By == ByBaseline {
		return asked
	}
	return asked || j.f.Now.Sub(l.At) <= window(e)
}

// window is how long after its merge a promotion may still be taken back
// without a person.
func window(e *Env) time.Duration {
	v := e.Spec.Verify
	return time.Duration(v.ArriveWithin + v.Timeout + v.HealthyFor + v.Watch)
}

func (j *judge) do(a Action) { j.d.Actions = append(j.d.Actions, a) }

// soonest is the shortest time after which a decision is worth making again when
// nothing was heard; overdue is that time where the one that was given has come
// and changed nothing: it must not be looked at again and again.
const (
	soonest = 100 * time.Millisecond
	overdue = 5 * time.Minute
)

// at notes when to look again at the latest.
func (j *judge) at(t time.Time) {
	if t.IsZero() {
		return
	}
	switch least := j.f.Now.Add(soonest); {
	case !t.After(j.f.Now):
		t = j.f.Now.Add(overdue)
	case t.Before(least):
		t = least
	}
	if j.d.Next.IsZero() || t.Before(j.d.Next) {
		j.d.Next = t
	}
}

func (j *judge) env(name string) *Env {
	for i := range j.f.Envs {
		if j.f.Envs[i].Name == name {
			return &j.f.Envs[i]
		}
	}
	return nil
}

// upstream lists every environment that stands, directly or not, before e.
func (j *judge) upstream(e *Env) []*Env {
	var out []*Env
	seen := map[string]bool{}
	var walk func(names []string)
	walk = func(names []string) {
		for _, n := range names {
			if u := j.env(n); u != nil && !seen[n] {
				seen[n] = true
				out = append(out, u)
				walk(u.Spec.After)
			}
		}
	}
	walk(e.Spec.After)
	return out
}

// onlyObserve drops everything that changes the world and says so instead.
func (j *judge) onlyObserve() {
	var kept []Action
	refuse := func(a Action, ask int64) {
		if ask != 0 {
			kept = append(kept, FinishAsk{Environment: EnvironmentOf(a), ID: ask, Outcome: "nothing was done: the pipeline's mode is observe"})
		}
	}
	for _, a := range j.d.Actions {
		switch a := a.(type) {
		case Look, Record:
			kept = append(kept, a)
			continue
		case FinishAsk:
			if a.Done {
				refuse(a, a.ID)
			} else {
				kept = append(kept, a)
			}
			continue
		case Refresh, Sync:
			continue
		case Bind:
			refuse(a, a.ID)
			continue
		case Open:
			refuse(a, a.Ask)
		case Replace:
			refuse(a, a.Ask)
		case OpenRevert:
			refuse(a, a.Ask)
		}
		for i := range j.d.Envs {
			if st := &j.d.Envs[i]; st.Environment == EnvironmentOf(a) {
				st.Why = append(st.Why, Reason{Code: "observe", Text: "mode is observe; otherwise: " + a.Describe()})
			}
		}
	}
	j.d.Actions = kept
}

func (st *EnvState) why(code, text string) {
	st.Why = append(st.Why, Reason{Code: code, Text: text})
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func firstNonEmpty(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

func orSomebody(who string) string { return firstNonEmpty(who, "somebody") }

// SameRelease compares an identity with one that may be short; an unknown one
// matches nothing.
func SameRelease(full, maybeShort string) bool {
	return len(maybeShort) >= 12 && strings.HasPrefix(full, maybeShort)
}
