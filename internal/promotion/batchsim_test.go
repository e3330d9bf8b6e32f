package promotion

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// batchSimulation is like simulation for components of one batch: a branch whose commits may move
// several, a forge, Argo CD and the store. verified and asked have what really happened; Decide
// never sees it.
type batchSimulation struct {
	now        time.Time
	specs      []pipeline.Environment
	spec       pipeline.Spec
	components []string
	log        []batchSimCommit
	pulls      []*batchSimPull
	heads      int
	released   int
	holds      []Hold // a component's has it in Environment
	broken     string
	refused    map[string]bool // component|environment: can't be composed with the others

	states   map[string]verification.State // by component|environment
	history  map[string][]Arrival          // by component|environment, newest first
	before   map[string]bool               // by pull request and component: well while it was open
	seq      int64
	pending  map[string][]PendingCommand // by component
	commands int64
	forgiven map[int]bool    // pull requests, by the decision that is checked
	seen     map[string]bool // component|commit that were evaluated while they were there, since the store was lost
	adopted  map[string]bool // component|commit of people that brought what would have been promoted
	adopting map[string]bool // those of which the decision that is checked says so

	verified   map[string]bool      // component|environment|release
	promotedAt map[string]time.Time // by component|environment: when a person last asked
}

// batchSimCommit moves components in one environment.
type batchSimCommit struct {
	sha, env string
	to, from map[string]string // by component
	pull     int               // ours
	at       time.Time
}

type batchSimPull struct {
	number       int
	env          string
	revert       bool
	of           int
	moves        []Member          // what its head carries; a revert: what it takes back
	declared     []Member          // what its body says
	back         map[string]string // a revert: what it restores
	base         int
	head         string
	open, merged bool
	held, super  bool
	headModified string
	approvals    int
	commit       string
	made, ended  time.Time
}

func stateKey(component, env string) string { return component + "|" + env }

func newBatchSimulation(t *rapid.T) *batchSimulation {
	w := &batchSimulation{now: noon, refused: map[string]bool{}, states: map[string]verification.State{}, history: map[string][]Arrival{}, before: map[string]bool{}, seen: map[string]bool{}, adopted: map[string]bool{},
		pending: map[string][]PendingCommand{}, verified: map[string]bool{}, promotedAt: map[string]time.Time{}, components: []string{"api", "db", "web"}[:rapid.IntRange(2, 3).Draw(t, "components")]}
	verify := pipeline.Verify{ArriveWithin: mins(15), Timeout: mins(10), HealthyFor: mins(1), Watch: mins(30), Debounce: pipeline.Duration(30 * time.Second)}
	for _, def := range simShapes[rapid.SampledFrom([]string{"diamond", "fan", "line"}).Draw(t, "shape")] {
		s := pipeline.Environment{Name: def[0], After: def[1:], Verify: verify, Open: pipeline.Auto, OnDegraded: pipeline.OnDegraded{Action: pipeline.OnDegradedHold}}
		if !s.IsSource() {
			s.Merge = rapid.SampledFrom([]string{pipeline.Auto, pipeline.Auto, pipeline.Manual}).Draw(t, "merge")
			s.OnDegraded.Action = rapid.SampledFrom([]string{pipeline.OnDegradedRevert, pipeline.OnDegradedRevertAndMerge, pipeline.OnDegradedRevertAndMerge}).Draw(t, "onDegraded")
			if n := rapid.IntRange(0, 1).Draw(t, "approvals"); n > 0 {
				s.Gates = []policies.Gate{{Approvals: &policies.Approvals{Count: n}}}
			}
		}
		w.specs = append(w.specs, s)
		c := batchSimCommit{sha: fmt.Sprintf("%040d", len(w.log)+1), env: s.Name, to: map[string]string{}, from: map[string]string{}, at: w.now.Add(-24 * time.Hour)}
		for _, name := range w.components {
			c.to[name] = id(name + "0")
			w.states[stateKey(name, s.Name)] = verification.Verified
		}
		w.log = append(w.log, c)
	}
	w.spec = pipeline.Spec{Mode: pipeline.ModeAct, Batch: pipeline.BatchEnvironment, Environments: w.specs, Limits: pipeline.Limits{OpenPerEnvironment: 1, MergesPerHour: 1000, RevertsPer10Minutes: 1000}}
	return w
}

// landed is the index of the commit that brought a component to where it is.
func (b *batchSimulation) landed(component, env string) int {
	for i := len(b.log) - 1; i >= 0; i-- {
		if _, moved := b.log[i].to[component]; moved && b.log[i].env == env {
			return i
		}
	}
	panic("nothing of " + component + " in " + env)
}

func (b *batchSimulation) carries(component, env string) string {
	return b.log[b.landed(component, env)].to[component]
}

func (b *batchSimulation) tip() string { return b.log[len(b.log)-1].sha }

// commit moves components in an environment; what moves nothing is left out.
func (b *batchSimulation) commit(env string, to map[string]string, pull int) string {
	c := batchSimCommit{sha: fmt.Sprintf("%040d", len(b.log)+1), env: env, to: map[string]string{}, from: map[string]string{}, pull: pull, at: b.now}
	for name, release := range to {
		if was := b.carries(name, env); was != release {
			c.to[name], c.from[name] = release, was
			b.states[stateKey(name, env)] = verification.Arriving
		}
	}
	b.log = append(b.log, c)
	return c.sha
}

func (b *batchSimulation) changedSince(env string, since int, members []Member) bool {
	return slices.ContainsFunc(b.log[since:], func(c batchSimCommit) bool {
		return c.env == env && slices.ContainsFunc(members, func(p Member) bool { _, moved := c.to[p.Component]; return moved })
	})
}

func (b *batchSimulation) merge(p *batchSimPull) bool {
	if !p.open || b.changedSince(p.env, p.base, p.moves) {
		return false
	}
	to := map[string]string{}
	for _, q := range p.moves {
		to[q.Component] = q.Release
		if p.revert {
			to[q.Component] = p.back[q.Component]
		}
	}
	p.open, p.merged, p.ended = false, true, b.now
	p.commit = b.commit(p.env, to, p.number)
	return true
}

// facts is what observe would gather.
func (b *batchSimulation) facts() Facts {
	f := Facts{Compositions: map[string]map[string]Composition{}}
	for _, name := range b.components {
		c := ComponentFacts{Now: b.now, Holds: Sure[[]Hold](nil), Unit: Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: name}, Pipeline: &pipeline.Pipeline{Spec: b.spec}, PipelineErr: b.broken, Tip: b.tip(), PendingCommands: slices.Clone(b.pending[name])}
		for _, h := range b.holds {
			if h.Scope != "component" || h.Environment == name {
				if h.Scope == "component" {
					h.Environment = ""
				}
				c.Holds.Value = append(c.Holds.Value, h)
			}
		}
		for _, s := range b.specs {
			c.Envs = append(c.Envs, b.env(name, s, c.Envs))
		}
		f.Components = append(f.Components, c)
	}
	return f
}

func (b *batchSimulation) env(name string, s pipeline.Environment, upstream []Env) Env {
	key, c := stateKey(name, s.Name), &b.log[b.landed(name, s.Name)]
	e := Env{Name: s.Name, Branch: "main", Tip: b.tip(), Spec: s, Gates: s.Gates, Release: Sure(Release{ID: c.to[name], Name: c.to[name][:6]}), Compositions: map[string]Composition{}}
	l := Landed{Commit: c.sha, At: c.at, By: ByPerson, Author: "linus"}
	switch {
	case len(c.from) == 0:
		l.By = ByBaseline
	case c.pull != 0:
		p := b.pulls[c.pull-1]
		l.By, l.Pull, l.Members, l.Batch = ByPromotion, c.pull, slices.Clone(p.moves), true
		if p.revert {
			l.By = ByRevert
		}
	}
	h := b.history[key]
	b.seen[stateKey(name, c.sha)] = true
	if len(h) > 0 && h[0].Commit == l.Commit && h[0].By == ByHand {
		l.By = ByHand
	}
	e.Landed = Sure(l)
	if len(h) == 0 || h[0].Commit != l.Commit {
		b.seq++
		h = append([]Arrival{{Seq: b.seq, Release: c.to[name], Name: c.to[name][:6], Commit: l.Commit, By: l.By, At: b.now}}, h...)
		for _, i := range (&Env{Spec: s, History: h}).ListWithdrawn() {
			h[i].WithdrawnAt = b.now
		}
		b.history[key] = h
	}
	e.History = slices.Clone(h)
	for _, p := range slices.Backward(b.pulls) {
		b.addPull(&e, p, name, upstream)
	}
	v := Target{Name: name + "-" + s.Name, Cluster: name, Verdict: verification.Verdict{State: b.states[key], Reason: string(b.states[key])}, HealthyBefore: Unsure[bool]("lost")}
	if well, known := b.before[fmt.Sprint(l.Pull, name)]; known {
		v.HealthyBefore = Sure(well)
	}
	if e.Open != nil {
		b.before[fmt.Sprint(e.Open.Number, name)] = b.states[key] == verification.Verified
	}
	if b.states[key] == verification.Verified {
		b.verified[key+"|"+c.to[name]] = true
	}
	e.Targets = []Target{v}
	return e
}

// addPull is a pull request as one component sees it.
func (b *batchSimulation) addPull(e *Env, p *batchSimPull, name string, upstream []Env) {
	if p.env != e.Name {
		return
	}
	q, in := FindMember(p.moves, name)
	if !p.open {
		if in {
			e.PastPulls = append(e.PastPulls, PastPull{Number: p.number, Revert: p.revert, Release: q.Release, Merged: p.merged, Superseded: p.super, At: p.ended, Commit: p.commit})
		}
		return
	}
	declared, _ := FindMember(p.declared, name)
	out := &Pull{Number: p.number, Head: p.head, Release: q.Release, Name: q.Name, DeclaredRelease: Known[string]{Value: declared.Release, OK: declared.Release != ""}, Members: slices.Clone(p.moves), Batch: true, CreatedAt: p.made, UpdatedAt: p.made,
		Held: p.held, Mergeable: "yes", Stale: b.changedSince(p.env, p.base, p.moves)}
	out.MarkModified(p.headModified)
	if in && !p.revert && !out.isDeclared() && !VerifiedInAll(upstream, e.Spec.After, q.Release) {
		out.MarkModified("it carries another release")
	}
	for i := range p.approvals {
		out.Review.Approvals = append(out.Review.Approvals, policies.Approval{User: []string{"ada", "grace"}[i], MayWrite: true, Current: true})
	}
	switch {
	case p.revert && in:
		e.Revert = out
	case p.revert:
	case in:
		e.Open = out
	default:
		e.BatchPull = out
	}
}

// answerRequest gathers what a Look asks for.
func (b *batchSimulation) answerRequest(f *Facts, i int, l FactRequest) {
	if i < 0 {
		out := Composition{Tip: b.tip(), RefusedByMember: map[string]string{}}
		for _, p := range l.Members {
			if b.refused[stateKey(p.Component, l.Environment)] {
				out.RefusedByMember[p.Component] = "another component's target reads it too"
			}
		}
		if f.Compositions[l.Environment] == nil {
			f.Compositions[l.Environment] = map[string]Composition{}
		}
		f.Compositions[l.Environment][BatchID(l.Members)] = out
		return
	}
	e := f.Components[i].findEnv(l.Environment)
	switch l.What {
	case RequestComposition:
		c := Composition{Tip: b.tip()}
		if l.Release == e.Release.Value.ID {
			c.State = EditEmpty
		}
		e.Compositions[l.Release] = c
	case RequestRestore:
		c := Composition{Tip: b.tip()}
		for _, p := range e.Landed.Value.Members {
			if b.log[b.landed(p.Component, e.Name)].sha != e.Landed.Value.Commit {
				c.Refuse(p.Component + "'s fields have changed since")
			}
		}
		e.Restore = Sure(c)
	case RequestBlame:
		e.Targets[0].ChangedSince = Sure[[]string](nil)
	case RequestCulprits:
		e.Targets[0].Unhealthy = Sure[[]verification.Resource](nil)
	}
}

// do performs an action of a component (i) or, with -1, a shared one.
func (b *batchSimulation) do(i int, a Action) bool {
	if i >= 0 {
		return b.doOwn(b.components[i], a)
	}
	b.heads++
	head := fmt.Sprintf("h%039d", b.heads)
	switch a := a.(type) {
	case Open:
		b.pulls = append(b.pulls, &batchSimPull{number: len(b.pulls) + 1, env: a.Environment, moves: a.Members, declared: a.Members, base: len(b.log), head: head, open: true, made: b.now})
		b.bindCommands(a.Members)
	case Replace:
		p := b.pulls[a.Pull-1]
		p.moves, p.declared, p.base, p.head, p.headModified, p.approvals = a.Members, a.Members, len(b.log), head, "", 0
		b.bindCommands(a.Members)
	case Close:
		p := b.pulls[a.Pull-1]
		p.open, p.super, p.ended = false, true, b.now
	case Merge:
		return b.merge(b.pulls[a.Pull-1])
	case OpenRevert:
		back := map[string]string{}
		for _, c := range b.log {
			if c.pull == a.Pull {
				back = c.from
			}
		}
		b.pulls = append(b.pulls, &batchSimPull{number: len(b.pulls) + 1, env: a.Environment, revert: true, of: a.Pull, moves: a.Members, back: back, base: len(b.log), head: head, open: true, made: b.now})
		b.bindCommands(a.Members)
	case RecomposeRevert:
		b.pulls[a.Pull-1].base = len(b.log)
	}
	return true
}

func (b *batchSimulation) bindCommands(members []Member) {
	for _, p := range members {
		for k := range b.pending[p.Component] {
			if pending := &b.pending[p.Component][k]; p.CommandID != 0 && pending.ID == p.CommandID {
				pending.Release = p.Release
			}
		}
	}
}

func (b *batchSimulation) doOwn(name string, a Action) bool {
	switch a := a.(type) {
	case Refresh, Sync:
		return false
	case Record:
		for k := range b.history[stateKey(name, a.Environment)] {
			h := &b.history[stateKey(name, a.Environment)][k]
			switch {
			case h.Commit != a.Commit:
			case a.ByHand:
				h.By, b.adopted[stateKey(name, a.Commit)] = ByHand, true
			case a.Verified:
				h.MarkVerified(b.now)
			default:
				h.MarkDegraded(b.now)
			}
		}
	case LiftVeto:
		b.pulls[a.Pull-1].super = true
	case RestartVerification:
		b.states[stateKey(name, a.Environment)] = verification.Arriving
		for k := range b.history[stateKey(name, a.Environment)] {
			h := &b.history[stateKey(name, a.Environment)][k]
			if h.Commit == b.log[b.landed(name, a.Environment)].sha {
				h.VerifiedAt, h.DegradedAt = time.Time{}, time.Time{}
			}
		}
	case BindCommand:
		for k := range b.pending[name] {
			if b.pending[name][k].ID == a.ID {
				b.pending[name][k].Release = a.Release
			}
		}
	case FinishCommand:
		b.pending[name] = slices.DeleteFunc(b.pending[name], func(k PendingCommand) bool { return k.ID == a.ID })
	}
	return true
}
