package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

// Decide judges one component, or all of a pipeline with batch: environment. Each is evaluated as
// if it were alone, and then the pull requests that they share are joined. One carries all that are
// ready, it merges when every one of them may, and its releases are reverted as a whole. It is pure
// and total: missing facts make it wait or request them, never guess. After a FactRequest the
// caller gathers the fact and calls again. The components' own requests come first, as the joined
// ones depend on them.
func Decide(f Facts) Decision {
	var d Decision
	intents, othersWork := make([][]PullAction, len(f.Components)), make([]map[string]bool, len(f.Components))
	for i, with := range relateComponents(f.Components) {
		j := evaluateComponent(f.Components[i], with)
		d.Components = append(d.Components, j.decision)
		intents[i], othersWork[i] = j.intents, j.othersWork
		d.Next = earliest(d.Next, j.decision.Next)
	}
	d.requestReviewersOnce()
	d.planBatches(&f, intents, othersWork)
	for i := range intents {
		for _, a := range intents[i] {
			d.Actions = append(d.Actions, a)
		}
	}
	d.planQueue(&f)
	d.planDeployments(&f)
	return d
}

// evaluator is the evaluation of one component.
type evaluator struct {
	facts      *ComponentFacts
	spec       *pipeline.Spec
	with       companions
	rollups    map[string]rollup     // by environment
	ruledOut   map[string][]RuledOut // by environment: what else a degradation isn't by
	decision   ComponentDecision
	intents    []PullAction      // what is done with pull requests if the component is alone
	finished   map[int64]bool    // commands that this decision answers
	reverting  map[string]string // by environment: the release that this decision reverts
	othersWork map[string]bool   // by environment: the open promotion carries a release that isn't known to be ours

	candidates map[candidatesKey][]candidate
}

// rollup is what an environment's targets say together.
type rollup struct {
	state  string // Verifying, Verified, Degraded, Failed
	reason string
	clear  bool // every target is verified right now, not only once; never but where it is Verified
}

// evaluateComponent evaluates one component.
func evaluateComponent(f ComponentFacts, with companions) *evaluator {
	// The run writes into the facts what it finds out as it goes; the caller's stay as they are.
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
	j := &evaluator{facts: &f, spec: &f.Pipeline.Spec, with: with, rollups: map[string]rollup{}, ruledOut: map[string][]RuledOut{},
		finished: map[int64]bool{}, reverting: map[string]string{},
		othersWork: map[string]bool{}, candidates: map[candidatesKey][]candidate{}}
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
	return j
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
		if a := e.currentArrival(); a != nil && a.IsVerified() {
			// Once verified it stays so until something is known to be wrong: a
			// target that Argo CD can't judge right now is neither healthy nor unhealthy.
			return rollup{state: Verified, reason: "verified; now " + why}
		}
		return rollup{state: Verifying, reason: why}
	}
	for _, t := range e.Targets {
		if t.Verdict.Lapsed {
			return rollup{state: Verified, reason: t.Name + ": " + t.Verdict.Reason}
		}
	}
	reason := fmt.Sprintf("synced and healthy on %s", wording.Count(len(e.Targets), "target"))
	if n := e.countDrifted(); n > 0 {
		reason = fmt.Sprintf("verified and healthy on %s; %s changed in the cluster since", wording.Count(len(e.Targets), "target"),
			wording.Plural(n, "was", "were"))
	}
	for i := range e.Targets {
		if t := &e.Targets[i]; t.Verdict.OtherImages != "" {
			reason += "; but in " + t.Name + " " + t.Verdict.OtherImages
		}
	}
	return rollup{state: Verified, reason: reason, clear: true}
}

// countDrifted counts the targets that differ from what was synced to them.
func (e *Env) countDrifted() int {
	n := 0
	for i := range e.Targets {
		if e.Targets[i].Verdict.Drift != nil {
			n++
		}
	}
	return n
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

// evaluateEnv judges one environment: what is there, then what wants to come.
func (ev *evaluator) evaluateEnv(e *Env) {
	st := EnvState{Environment: e.Name, Promotion: Idle, Targets: map[string]TargetView{}}
	for _, t := range e.Targets {
		st.Targets[t.Name] = TargetView{State: string(t.Verdict.State), Reason: t.Verdict.Reason, Since: t.Verdict.Since,
			Drift:  t.Verdict.Drift,
			Untold: t.Verdict.Untold, Runs: t.Verdict.Runs}
		ev.recheckAt(t.Verdict.Next)
	}
	if e.Open != nil {
		st.Pull = e.Open.Number
	}
	if e.Revert != nil {
		st.Revert = e.Revert.Number
	}
	ev.adoptByHand(e)
	ev.evaluateCurrent(e, &st)
	ev.evaluateRetry(e, &st)
	if !e.Source() {
		ev.evaluateRevert(e, &st)
		ev.evaluateDegradation(e, &st)
		ev.evaluateIncoming(e, &st)
	}
	ev.decision.Envs = append(ev.decision.Envs, st)
}

// evaluateCurrent says what is in the environment and how it is.
func (ev *evaluator) evaluateCurrent(e *Env, st *EnvState) {
	if e.Fields == FieldsMixed {
		st.State, st.Reason = Mixed, e.FieldsReason
		return
	}
	if ev.isNotIn(e) {
		st.State, st.Reason = NotHere, fmt.Sprintf("%s is not in %s: no ApplicationSet generates a target for it there",
			ev.facts.Unit.Component, e.Name)
		return
	}
	if !e.Release.OK || !e.Landed.OK {
		st.State, st.Reason = Unreadable, cmp.Or(e.Release.Err, e.Landed.Err, "not read yet")
		return
	}
	l := e.Landed.Value
	st.Release, st.Name = e.Release.Value.ID, e.Release.Value.String()
	st.Since, st.LandedPull, st.LandedBy, st.Commit = l.At, l.Pull, l.By, l.Commit
	r := ev.rollups[e.Name]
	st.State, st.Reason = r.state, r.reason
	a := e.currentArrival()
	if a != nil {
		st.VerifiedAt = a.VerifiedAt
	}
	switch {
	case e.isChangedByHand():
		st.State = Diverged
		did := "changed it by hand in " + wording.Short(l.Commit)
		if l.ModifiedPull != 0 {
			did = fmt.Sprintf("merged #%d in %s, which isn't known to be what Liftlock composed", l.ModifiedPull, wording.Short(l.Commit))
		}
		if l.ResetFrom != "" {
			did = fmt.Sprintf("reset its branch, so that %s is gone and %s is there", l.ResetFrom, wording.Short(l.Commit))
		}
		st.Reason = fmt.Sprintf("%s %s; Liftlock leaves it alone until /liftlock promote %s", orSomebody(l.Author), did, e.Name)
	case l.By == ByBaseline && r.state != Degraded && !ev.needsVerdict(e):
		st.State = Baseline
		st.Reason = "was there before the pipeline came in; it is not moved by itself"
	case r.state == Verifying && !ev.needsVerdict(e):
		st.State = Idle
		st.Reason = "in place; nothing waits for its verification"
	}
	// A release that the pipeline found there, or that a person put there, is recorded only where
	// its verdict is needed.
	isPromoted := l.By != ByBaseline && !e.isChangedByHand()
	if a != nil && (isPromoted || ev.needsVerdict(e)) {
		switch {
		case r.clear && !a.IsVerified():
			ev.addAction(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, Verified: true})
			a.MarkVerified(ev.facts.Now)
			st.VerifiedAt = a.VerifiedAt
		case r.state == Degraded && !a.IsDegraded():
			ev.addAction(Record{Environment: e.Name, Release: a.Release, Commit: a.Commit, Degraded: true})
			a.MarkDegraded(ev.facts.Now)
		}
	}
	if !ev.needsVerdict(e) {
		return
	}
	for _, t := range e.Targets {
		if t.Verdict.Refresh {
			ev.addAction(Refresh{Environment: e.Name, Target: t.Name})
		}
		if t.Verdict.Sync {
			ev.addAction(Sync{Environment: e.Name, Target: t.Name, Tip: e.Tip})
		}
	}
}

// isNotIn says that the component is known to have no target in an environment. Where something of the targets can't
// be worked out, it may have one.
func (ev *evaluator) isNotIn(e *Env) bool {
	return len(e.Targets) == 0 && e.HasNoTarget && len(ev.facts.Problems) == 0
}

// needsVerdict says whether the verdict of this environment, which can be read, is needed. It
// landed within its watch, or a target still waited its turn within that time, or its release may
// still have to go further. Without this a start on a large repository would have Argo CD refresh
// everything.
func (ev *evaluator) needsVerdict(e *Env) bool {
	l := e.Landed.Value
	if e.isChangedByHand() {
		return false
	}
	requested := false
	for i := range ev.facts.Envs {
		d := &ev.facts.Envs[i]
		if !slices.Contains(d.Spec.After, e.Name) {
			continue
		}
		if ev.findCommand(command.Promote, d.Name) != nil {
			requested = true
		}
		if (l.By != ByBaseline || ev.adopts(e)) && d.Release.OK && d.Release.Value.ID != e.Release.Value.ID {
			return true
		}
	}
	if l.By == ByBaseline {
		return requested
	}
	heldUp := func(t Target) bool {
		return !t.Verdict.HeldUpAt.IsZero() && ev.facts.Now.Sub(t.Verdict.HeldUpAt) <= e.Spec.Verify.WatchWindow()
	}
	return requested || ev.facts.Now.Sub(l.At) <= e.Spec.Verify.WatchWindow() || slices.ContainsFunc(e.Targets, heldUp)
}

func (ev *evaluator) addAction(a Action) {
	d := &ev.decision
	switch a := a.(type) {
	case PullAction:
		ev.intents = append(ev.intents, a)
	case FinishCommand:
		if slices.ContainsFunc(ev.intents, func(p PullAction) bool { return p.environment() == a.Environment }) {
			d.Answers = append(d.Answers, a)
		} else {
			d.Actions = append(d.Actions, a)
		}
	default:
		d.Actions = append(d.Actions, a)
	}
}

// member is the component as what moves with a release.
func (ev *evaluator) member(release, name string, command *PendingCommand) Member {
	p := Member{Component: ev.facts.Unit.Component, Release: release, Name: name}
	if command != nil {
		p.CommandID = command.ID
		ev.finished[command.ID] = true
	}
	return p
}

// membersOf is whom an open pull request moves.
func (ev *evaluator) membersOf(p *Pull) []Member {
	if len(p.Members) > 0 {
		return p.Members
	}
	return []Member{ev.member(p.Release, p.Name, nil)}
}

// minRecheckDelay is the shortest time after which a decision is made again when no change was
// reported. pastDueRecheckDelay is that time where the given one has passed and changed nothing:
// otherwise the decision would be made again and again.
const (
	minRecheckDelay     = 100 * time.Millisecond
	pastDueRecheckDelay = 5 * time.Minute
)

// recheckAt notes when to look again at the latest.
func (ev *evaluator) recheckAt(t time.Time) {
	if t.IsZero() {
		return
	}
	switch least := ev.facts.Now.Add(minRecheckDelay); {
	case !t.After(ev.facts.Now):
		t = ev.facts.Now.Add(pastDueRecheckDelay)
	case t.Before(least):
		t = least
	}
	ev.decision.Next = earliest(ev.decision.Next, t)
}

// earliest is the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	if b.IsZero() {
		return a
	}
	return slices.MinFunc([]time.Time{a, b}, time.Time.Compare)
}

// latest is the later of two times.
func latest(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare)
}

// findEnv finds an environment by name; nil when there is none.
func (c *ComponentFacts) findEnv(name string) *Env {
	i := slices.IndexFunc(c.Envs, func(e Env) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Envs[i]
}

// listUpstream lists every environment that stands, directly or not, before e.
func (ev *evaluator) listUpstream(e *Env) []*Env {
	var out []*Env
	seen := map[string]bool{}
	var walk func(names []string)
	walk = func(names []string) {
		for _, n := range names {
			if u := ev.facts.findEnv(n); u != nil && !seen[n] {
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
func (ev *evaluator) suppressActions() {
	var kept []Action
	refuse := func(a Action, commandID int64) {
		if commandID != 0 {
			kept = append(kept, FinishCommand{Environment: a.environment(), ID: commandID,
				Outcome: "nothing was done: the pipeline's mode is observe"})
		}
	}
	explain := func(a Action) {
		for i := range ev.decision.Envs {
			if st := &ev.decision.Envs[i]; st.Environment == a.environment() {
				st.addReason(cause.DryRun, "mode is observe; otherwise: "+a.Describe())
			}
		}
	}
	actions := ev.decision.Actions
	for _, a := range ev.decision.Answers {
		actions = append(actions, a)
	}
	for _, a := range actions {
		switch x := a.(type) {
		case FactRequest, Record:
			kept = append(kept, a)
		case FinishCommand:
			if x.Done {
				refuse(a, x.ID)
			} else {
				kept = append(kept, a)
			}
		case BindCommand:
			refuse(a, x.ID)
		case Refresh, Sync:
		default:
			explain(a)
		}
	}
	for _, a := range ev.intents {
		_, members := a.Subject()
		p, _ := FindMember(members, ev.facts.Unit.Component)
		refuse(a, p.CommandID)
		explain(a)
	}
	ev.decision.Actions, ev.decision.Answers, ev.intents = kept, nil, nil
}

func (e *EnvState) addReason(code cause.Code, text string) {
	e.Why = append(e.Why, Reason{Code: code, Text: text})
}

func orSomebody(who string) string { return cmp.Or(who, "somebody") }

// SameRelease compares an identity with one that may be short; an unknown one
// matches nothing.
func SameRelease(full, maybeShort string) bool {
	return len(maybeShort) >= 12 && strings.HasPrefix(full, maybeShort)
}
