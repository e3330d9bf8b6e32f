package backtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// anyTip stands for the head of every branch: edits are always composed on it.
const anyTip = "tip"

// These bound what a component's environment remembers, as real facts are bounded.
const (
	maxArrivals = 12
	maxPast     = 20
)

// longestGap is between two looks at a component, in a replay: nothing goes on unseen.
const longestGap = 10 * 365 * 24 * time.Hour

// unitModel is a component in a replay.
type unitModel struct {
	script       *script
	isActive     bool // its record has begun
	cursor       int  // into script.absolute
	state        *State
	rules        *compiledRules
	facts        promotion.ComponentFacts
	envs         []*envModel // as in facts.Envs
	commands     map[int64]bool
	seq          int64
	compositions map[string]promotion.Composition
	last         []promotion.EnvState      // what the last decision says
	answers      []promotion.FinishCommand // to commands, once what it wants is done
	obstacles    map[obstacleKey]obstacle
	unknown      map[string]bool // environment and release of which the record knows no verdict
}

type obstacleKey struct{ env, release string }

// obstacle is what kept something from moving.
type obstacle struct{ what, reason string }

func (o obstacle) String() string {
	if o.what == "" {
		return o.reason
	}
	return o.what + ": " + o.reason
}

// envModel is an environment of a component in a replay.
type envModel struct {
	facts    *promotion.Env // in the component's facts
	state    *EnvironmentState
	release  promotion.Release
	landed   promotion.Landed
	history  []promotion.Arrival  // newest first
	past     []promotion.PastPull // newest first
	landing  *landing             // by whose verdicts it goes
	shift    time.Duration        // by how much later it landed than in the record
	verdict  int                  // the place of the one in force, -1 before the first
	came     map[string]int       // how often each release came, by promotion or by revert
	outcome  *outcome             // the promotion that brought what is there
	targets  []promotion.Target
	hasState bool
}

func newUnitModel(s *script) *unitModel {
	u := &unitModel{script: s, commands: map[int64]bool{}, compositions: map[string]promotion.Composition{},
		obstacles: map[obstacleKey]obstacle{}, unknown: map[string]bool{}}
	u.facts.Unit = s.unit
	return u
}

// nextTime is when something of the record comes; zero: nothing more.
func (u *unitModel) nextTime() time.Time {
	var next time.Time
	if u.cursor < len(u.script.absolute) {
		next = u.script.absolute[u.cursor].at
	}
	for _, e := range u.envs {
		if l := e.landing; l != nil && e.verdict+1 < len(l.verdicts) {
			next = earliest(next, l.verdicts[e.verdict+1].at.Add(e.shift))
		}
	}
	return next
}

// advance takes up what the record says is so from a time on; true when something is different.
func (u *unitModel) advance(g *group, t time.Time) bool {
	changed := false
	for u.cursor < len(u.script.absolute) && !u.script.absolute[u.cursor].at.After(t) {
		u.takeUp(g, u.script.absolute[u.cursor].state)
		u.cursor++
		changed = true
	}
	for _, e := range u.envs {
		for l := e.landing; l != nil && e.verdict+1 < len(l.verdicts) && !l.verdicts[e.verdict+1].at.Add(e.shift).After(t); {
			e.verdict++
			e.applyVerdict()
			changed = true
		}
	}
	return changed
}

// takeUp goes by another state of the record.
func (u *unitModel) takeUp(g *group, s *State) {
	first := u.state == nil
	u.state, u.isActive = s, true
	if rules := g.rules.find(s.Rules); rules != u.rules {
		u.setRules(rules)
	}
	for _, e := range u.envs {
		e.state = s.Envs[e.facts.Name]
		if first && e.state != nil {
			u.begin(e)
		}
	}
	for _, k := range commandsIn(s) {
		if !u.commands[k.ID] {
			u.commands[k.ID] = true
			u.facts.PendingCommands = append(u.facts.PendingCommands, k)
		}
	}
	f := &u.facts
	f.PipelineErr, f.Problems, f.Holds = s.Broken, s.Problems, s.Holds
}

// begin takes up what was there before the record.
func (u *unitModel) begin(e *envModel) {
	e.history, e.past = arrivalsIn(e.state), pastIn(e.state)
	for _, a := range e.history {
		u.seq = max(u.seq, a.Seq)
		u.compositions[a.Release] = promotion.Composition{Tip: anyTip}
	}
	e.hasState = true
}

// setRules has the component go by rules, whose environments keep what is in them.
func (u *unitModel) setRules(r *compiledRules) {
	u.rules = r
	was := u.envs
	u.envs, u.facts.Envs, u.facts.Pipeline = nil, nil, nil
	if r == nil {
		return
	}
	u.facts.Pipeline = r.pipeline
	u.facts.Envs = make([]promotion.Env, len(r.envs))
	for i := range r.envs {
		f := &u.facts.Envs[i]
		*f = r.envs[i]
		e := &envModel{came: map[string]int{}, verdict: -1}
		if k := slices.IndexFunc(was, func(o *envModel) bool { return o.facts.Name == f.Name }); k >= 0 {
			e = was[k]
		}
		e.facts = f
		if u.state != nil {
			if e.state = u.state.Envs[f.Name]; e.state != nil && !e.hasState {
				u.begin(e)
			}
		}
		u.envs = append(u.envs, e)
	}
}

// env finds an environment; nil where the rules have none of that name.
func (u *unitModel) env(name string) *envModel {
	for _, e := range u.envs {
		if e.facts.Name == name {
			return e
		}
	}
	return nil
}

// nameOf is what people call a member's release.
func (u *unitModel) nameOf(m promotion.Member) string {
	if m.Name != "" {
		return m.Name
	}
	for _, e := range u.envs {
		for i := range e.history {
			if a := &e.history[i]; a.Release == m.Release || promotion.SameRelease(a.Release, short(m.Release)) {
				return a.Name
			}
		}
	}
	return ""
}

// releaseBefore is what was in an environment before a release came.
func (e *envModel) releaseBefore(release string) promotion.Release {
	for i := range e.history {
		if e.history[i].Release == release && i+1 < len(e.history) {
			return promotion.Release{ID: e.history[i+1].Release, Name: e.history[i+1].Name}
		}
	}
	return e.release
}

func (e *envModel) addPast(p promotion.PastPull) {
	e.past = slices.Insert(e.past, 0, p)
	e.past = e.past[:min(len(e.past), maxPast)]
}

// land puts a release into an environment. recorded is the landing of the record whose verdicts hold;
// nil: one that is alike is looked for.
func (u *unitModel) land(g *group, e *envModel, release promotion.Release, l promotion.Landed, recorded *landing) {
	key := release.ID + "|" + l.By
	nth := e.came[key]
	e.came[key]++
	if recorded == nil || recorded.landed.Commit == "" {
		recorded = u.findLanding(e.facts.Name, release.ID, l.By, nth)
	}
	if recorded == nil {
		recorded = u.guessLanding(e.facts.Name, release)
	}
	if recorded.release.Name != "" {
		release.Name = recorded.release.Name
	}
	e.release, e.landed, e.landing, e.verdict = release, l, recorded, -1
	e.shift = g.now.Sub(recorded.at)
	u.compositions[release.ID] = promotion.Composition{Tip: anyTip}
	if i := slices.IndexFunc(e.history, func(a promotion.Arrival) bool { return a.Commit == l.Commit && a.Release == release.ID }); i >= 0 {
		e.history[i].By = l.By
	} else {
		u.seq++
		e.history = slices.Insert(e.history, 0, promotion.Arrival{Seq: u.seq, Release: release.ID, Name: release.Name, Commit: l.Commit,
			By: l.By, Author: l.Author, Pull: l.Pull, At: g.now})
		e.history = e.history[:min(len(e.history), maxArrivals)]
		e.facts.History = e.history
		for _, i := range e.facts.ListWithdrawn() {
			e.history[i].WithdrawnAt = g.now
		}
	}
	e.applyVerdict()
	e.facts.Release, e.facts.Landed = promotion.Sure(e.release), promotion.Sure(e.landed)
}

func (u *unitModel) findLanding(env, release, by string, nth int) *landing {
	var found *landing
	for _, l := range u.script.landings[env] {
		if l.release.ID != release {
			continue
		}
		if l.landed.By == by {
			if found = l; nth == 0 {
				return l
			}
			nth--
		} else if found == nil {
			found = l
		}
	}
	return found
}

// guessLanding is how a release would probably do that never was in an environment, by the record:
// verified after the usual time there.
func (u *unitModel) guessLanding(env string, release promotion.Release) *landing {
	u.unknown[env+"|"+release.ID] = true
	var took []time.Duration
	var targets map[string]*promotion.Target
	for _, l := range u.script.landings[env] {
		for _, v := range l.verdicts {
			if v.isVerified() {
				took, targets = append(took, v.at.Sub(l.at)), v.targets
				break
			}
		}
	}
	out := &landing{env: env, release: release, at: u.script.start}
	if len(took) > 0 {
		slices.Sort(took)
		out.verdicts = []timedVerdict{{at: out.at.Add(took[len(took)/2]), targets: targets}}
	}
	return out
}

func (tv *timedVerdict) isVerified() bool {
	for _, t := range tv.targets {
		if t.Verdict.State != verification.Verified {
			return false
		}
	}
	return len(tv.targets) > 0
}

// applyVerdict takes up how the targets are now; before the first word about what landed, on their way.
func (e *envModel) applyVerdict() {
	e.targets = nil
	if e.landing == nil || len(e.landing.verdicts) == 0 {
		return
	}
	v := &e.landing.verdicts[max(e.verdict, 0)]
	for _, name := range sortedKeys(v.targets) {
		t := *v.targets[name]
		if e.verdict < 0 {
			t.Verdict = verification.Verdict{State: verification.Arriving}
		}
		if !t.HealthyBefore.OK && t.HealthyBefore.Err == "" {
			t.HealthyBefore = promotion.Sure(true) // nobody needed to know it
		}
		if t.Verdict.State == verification.Degraded {
			t.Unhealthy, t.ChangedObjects = promotion.Sure[[]verification.Resource](nil), promotion.Sure[[]promotion.Object](nil)
			t.ChangedSince = promotion.Sure[[]string](nil)
			if v.held != "" {
				t.ChangedSince = promotion.Unsure[[]string](v.held)
			}
		}
		e.targets = append(e.targets, t)
	}
}

// refresh brings the component's facts up to now.
func (u *unitModel) refresh(g *group) promotion.ComponentFacts {
	f := &u.facts
	f.Now, f.Tip = g.now, anyTip
	f.Limits = g.usage.limits(g, u)
	for _, e := range u.envs {
		u.refreshEnv(g, e)
	}
	return *f
}

func (u *unitModel) refreshEnv(g *group, e *envModel) {
	f := e.facts
	f.Tip, f.History, f.PastPulls, f.Targets, f.Compositions = anyTip, e.history, e.past, e.targets, u.compositions
	f.Restore = promotion.Sure(promotion.Composition{Tip: anyTip})
	s := e.state
	if s == nil {
		f.Release, f.Landed = promotion.Unsure[promotion.Release]("the record has nothing of "+f.Name), promotion.Known[promotion.Landed]{}
		return
	}
	f.Release, f.Landed = promotion.Sure(e.release), promotion.Sure(e.landed)
	if !s.Release.OK || e.landing == nil {
		f.Release, f.Landed = promotion.Unsure[promotion.Release](cmp.Or(s.Release.Err, "not read yet")), s.Landed
	}
	f.Fields, f.FieldsReason, f.HasNoTarget, f.SyncWindows = s.Fields, s.FieldsReason, s.HasNoTarget, s.SyncWindows
	f.MissingSignatures, f.BranchState, f.RevertBranchState = s.MissingSignatures, promotion.BranchOurs, promotion.BranchOurs
	f.MarkUnmanaged(s.BranchReason)
	f.MarkRevertUnmanaged(s.RevertBranchReason)
	if len(s.Edits) > 0 {
		f.Compositions = map[string]promotion.Composition{}
		for release, c := range u.compositions {
			if edit := s.Edits[release]; edit != nil && edit.State != promotion.EditEmpty {
				c.State, c.Reason, c.Incomplete = edit.State, edit.Reason, edit.Incomplete
			}
			f.Compositions[release] = c
		}
	}
	f.Open, f.Revert, f.BatchPull = nil, nil, nil
	for _, p := range g.pulls {
		if p.env != f.Name {
			continue
		}
		m, in := p.has(u.script.unit.Component)
		switch {
		case p.revert && in:
			f.Revert = u.openPull(g, p, m)
		case p.revert:
		case in:
			f.Open = u.openPull(g, p, m)
		default:
			f.BatchPull = u.openPull(g, p, m)
		}
	}
	f.AdvanceSoaks(g.now, longestGap)
}

// openPull is an open pull request as the component knows it, by what the record says of one that
// moves the same.
func (u *unitModel) openPull(g *group, p *pullModel, m promotion.Member) *promotion.Pull {
	out := promotion.Pull{Mergeable: promotion.MergeClean}
	if known := u.script.pullAt(pullKey{p.env, m.Release, p.revert}, g.now); known != nil {
		out = *known
	} else {
		out.Review.ChecksRead = true
		u.unknown[p.env+"|"+m.Release] = true
	}
	out.Number, out.Release, out.Name = p.number, m.Release, u.nameOf(m)
	out.Head, out.CreatedAt, out.UpdatedAt = fmt.Sprintf("%d-%s", p.number, p.id()), p.createdAt, p.createdAt
	out.Batch, out.Members = p.batch, p.members
	if out.HeadState != promotion.HeadModified {
		out.DeclaredRelease = promotion.Sure(m.Release)
	}
	return &out
}

func (p *pullModel) commit() string { return fmt.Sprintf("merge-%d", p.number) }

// isReadyByHand says that nothing but a person keeps a pull request from being merged.
func (u *unitModel) isReadyByHand(p *pullModel) bool {
	i := slices.IndexFunc(u.last, func(s promotion.EnvState) bool { return s.Environment == p.env })
	if i < 0 {
		return false
	}
	st := &u.last[i]
	gates := st.Gates
	if p.revert {
		gates = st.RevertGates
	}
	isManual := slices.ContainsFunc(st.Why, func(r promotion.Reason) bool { return r.Code == cause.Manual })
	return isManual && !slices.ContainsFunc(gates, func(r policies.Result) bool { return r.Outcome != policies.Pass })
}

// bind ties a command to the release that it became about.
func (u *unitModel) bind(id int64, release string) {
	for i := range u.facts.PendingCommands {
		if k := &u.facts.PendingCommands[i]; id != 0 && k.ID == id {
			k.Release = release
		}
	}
}

// answerCommands ends the commands that what was done in an environment fulfils.
func (u *unitModel) answerCommands(env string) {
	for _, a := range u.answers {
		if a.Environment == env {
			u.forget(a.ID)
		}
	}
}

func (u *unitModel) forget(id int64) {
	u.facts.PendingCommands = slices.DeleteFunc(slices.Clone(u.facts.PendingCommands),
		func(k promotion.PendingCommand) bool { return k.ID == id })
}

// write does at once what is only written down; true when that may change the decision.
func (u *unitModel) write(g *group, a promotion.Action) bool {
	e := u.env(promotion.EnvironmentOf(a))
	switch a := a.(type) {
	case promotion.FinishCommand:
		u.forget(a.ID)
		return true
	case promotion.BindCommand:
		u.facts.PendingCommands = slices.Clone(u.facts.PendingCommands)
		u.bind(a.ID, a.Release)
		return true
	case promotion.FactRequest:
		if _, known := u.compositions[a.Release]; known || a.What != promotion.RequestComposition {
			return false
		}
		u.compositions[a.Release] = promotion.Composition{Tip: anyTip}
		return true
	}
	if e == nil {
		return false
	}
	switch a := a.(type) {
	case promotion.Record:
		e.record(g, a)
		return a.ByHand || a.Verified && u.rules.looksAgain
	case promotion.LiftVeto:
		for i := range e.past {
			if e.past[i].Number == a.Pull {
				e.past[i].Superseded = true
			}
		}
		return true
	case promotion.RestartVerification:
		for i := range e.history {
			if h := &e.history[i]; h.Commit == e.landed.Commit {
				h.VerifiedAt, h.DegradedAt = time.Time{}, time.Time{}
			}
		}
		for i := range e.targets {
			e.targets[i].Verdict = verification.Verdict{State: verification.Arriving}
		}
		return true
	}
	return false
}

// record writes down what was found out about what landed.
func (e *envModel) record(g *group, a promotion.Record) {
	for i := range e.history {
		h := &e.history[i]
		if h.Release != a.Release || h.Commit != a.Commit {
			continue
		}
		switch {
		case a.ByHand:
			h.By, e.landed.By = promotion.ByHand, promotion.ByHand
		case a.Verified:
			h.MarkVerified(g.now)
			if e.outcome != nil && e.outcome.verified.IsZero() {
				e.outcome.verified = g.now
			}
		default:
			h.MarkDegraded(g.now)
			if e.outcome != nil && e.outcome.degraded.IsZero() {
				e.outcome.degraded = g.now
			}
		}
	}
}

// obstacleIn is what keeps anything from moving in an environment, by the last decision.
func (u *unitModel) obstacleIn(env string) string {
	for i := range u.last {
		if st := &u.last[i]; st.Environment == env {
			return firstObstacle(st).String()
		}
	}
	return ""
}

// firstObstacle is the first thing that keeps a release from moving; empty where nothing does.
func firstObstacle(st *promotion.EnvState) obstacle {
	for i := range st.Gates {
		if r := &st.Gates[i]; r.Outcome != policies.Pass {
			return obstacle{string(r.Gate), r.Reason}
		}
	}
	if len(st.Why) > 0 {
		return obstacle{"", st.Why[0].Text}
	}
	return obstacle{}
}

// keepObstacles remembers what the candidates wait for.
func (u *unitModel) keepObstacles() {
	for i := range u.last {
		st := &u.last[i]
		if o := firstObstacle(st); st.Candidate != "" && o.reason != "" {
			u.obstacles[obstacleKey{st.Environment, st.Candidate}] = o
		}
	}
}
