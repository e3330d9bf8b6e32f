package promotion

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestBatchInvariants lets random things happen to components that travel together while
// Decide is obeyed, and holds every shared action to the invariants and to
// all or nothing. At the end the world must come to rest, and people must be able
// to get the next release of everything everywhere.
func TestBatchInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newBatchSimulation(t)
		for range rapid.IntRange(10, 50).Draw(t, "steps") {
			w.event(t)
			for range rapid.IntRange(0, 3).Draw(t, "runs") {
				w.run(t)
			}
		}
		w.untilQuiet(t)
		w.everywhere(t)
	})
}

// decide judges the world with its looks answered, and checks the decision.
func (b *batchSimulation) decide(t *rapid.T) (Facts, Decision) {
	f := b.facts()
	for range 8 {
		d := Decide(f)
		looks := 0
		for i := range d.Components {
			for _, a := range d.Components[i].Actions {
				if l, ok := a.(FactRequest); ok {
					looks++
					b.answerRequest(&f, i, l)
				}
			}
		}
		for _, a := range d.Actions {
			if l, ok := a.(FactRequest); ok {
				looks++
				b.answerRequest(&f, -1, l)
			}
		}
		if looks == 0 {
			b.check(t, &f, &d)
			return f, d
		}
	}
	t.Fatal("asks for facts without end")
	return f, Decision{}
}

// run is one run of the engine; true when it did something that is news.
func (b *batchSimulation) run(t *rapid.T) bool {
	_, d := b.decide(t)
	acted := false
	for _, s := range d.Steps() {
		acted = b.do(s.Component, s.Action) || acted
		b.checkOnePullEach(t)
	}
	return acted
}

func (b *batchSimulation) untilQuiet(t *rapid.T) {
	for range 40 {
		b.now = b.now.Add(time.Millisecond)
		if !b.run(t) {
			return
		}
	}
	_, d := b.decide(t)
	t.Fatalf("doesn't come to rest: %v", d.Actions)
}

// checkOnePullEach holds 2: one promotion an environment, one revert a component there.
func (b *batchSimulation) checkOnePullEach(t *rapid.T) {
	n := map[string]int{}
	for _, p := range b.pulls {
		switch {
		case !p.open:
		case p.revert:
			for _, q := range p.moves {
				n["revert of "+stateKey(q.Component, p.env)]++
			}
		default:
			n[p.env]++
		}
	}
	for what, k := range n {
		if k > 1 {
			t.Fatalf("%d are open: %s (2)", k, what)
		}
	}
}

// check holds a decision's shared actions to the invariants.
func (b *batchSimulation) check(t *rapid.T, f *Facts, d *Decision) {
	b.forgiven, b.adopting = map[int]bool{}, map[string]bool{}
	for i := range d.Components {
		for _, a := range d.Components[i].Actions {
			switch a := a.(type) {
			case Record:
				if a.ByHand {
					b.adopting[stateKey(b.components[i], a.Commit)] = true
				}
			case LiftVeto:
				b.forgiven[a.Pull] = true
			case Open, Replace, Merge, OpenRevert, RecomposeRevert, Close:
				t.Fatalf("%s alone: %s", b.components[i], a.Describe())
			}
		}
	}
	for _, a := range d.Actions {
		switch a := a.(type) {
		case Open:
			if b.openIn(a.Environment) != nil {
				t.Fatalf("%s while another is open (2)", a.Describe())
			}
			for _, q := range a.Members {
				b.mayCome(t, f, a, a.Environment, q)
				b.mayJoin(t, a, a.Environment, q)
			}
		case Replace:
			b.mayReplace(t, f, a)
		case Merge:
			b.mayMerge(t, f, a)
		case OpenRevert:
			b.mayRevert(t, a)
		}
	}
}

func (b *batchSimulation) openIn(env string) *batchSimPull {
	for _, p := range b.pulls {
		if p.open && !p.revert && p.env == env {
			return p
		}
	}
	return nil
}

// mayCome holds 1 and 6 for one passenger, and that what came together goes on
// together.
func (b *batchSimulation) mayCome(t *rapid.T, f *Facts, a Action, env string, q Member) {
	own := &f.Components[slices.Index(b.components, q.Component)]
	e := simEnv(own, env)
	for _, u := range e.Spec.After {
		if !b.verified[stateKey(q.Component, u)+"|"+q.Release] {
			t.Fatalf("%s: %s never verified %s (1)", a.Describe(), u, q)
		}
		b.membersVerified(t, f, a, u, q)
	}
	for _, u := range append(upstreamOf(own, env), env) {
		if at := b.revertedAt(u, q); !at.IsZero() && (u != env || !b.promotedAt[stateKey(q.Component, env)].After(at)) {
			t.Fatalf("%s: %s was taken back from %s at %s (1, 6)", a.Describe(), q, u, at)
		}
		if u != env && b.carries(q.Component, u) == q.Release && b.states[stateKey(q.Component, u)] == verification.Degraded {
			t.Fatalf("%s: %s is degraded in %s (1)", a.Describe(), q, u)
		}
	}
	if l := e.Landed.Value; l.By == ByPerson && b.promotedAt[stateKey(q.Component, env)].Before(l.At) {
		t.Fatalf("%s: %s over a person's change (6)", a.Describe(), q)
	}
	for _, u := range upstreamOf(own, env) {
		if b.wentBack(q, simEnv(own, u), b.seen) {
			t.Fatalf("%s: people took %s back from %s (10)", a.Describe(), q, u)
		}
	}
}

// wentBack says that a release was withdrawn from an environment where it hasn't been since, as far
// as is known. The release before it came again, or a person replaced it by hand.
func (b *batchSimulation) wentBack(q Member, e *Env, known map[string]bool) bool {
	came, before := -1, map[string]bool{}
	moves := func(c *batchSimCommit) bool { _, moved := c.to[q.Component]; return moved && c.env == e.Name }
	for i := range b.log {
		if c := &b.log[i]; moves(c) && c.to[q.Component] == q.Release {
			if came = i; known != nil && !known[stateKey(q.Component, c.sha)] {
				came = -1
			}
		}
	}
	for i := range b.log {
		c := &b.log[i]
		switch key := stateKey(q.Component, c.sha); {
		case came < 0, !moves(c), known != nil && !known[key]:
		case i <= came:
			before[c.to[q.Component]] = true
		case before[c.to[q.Component]], c.from[q.Component] == q.Release && c.pull == 0 && !e.Source() && !b.adopted[key] && !b.adopting[key]:
			return true
		}
	}
	return false
}

// isUnproven says that an environment before has a record of the release, but not of its
// verification there. The record was lost, and the release was replaced before it was verified
// again.
func (b *batchSimulation) isUnproven(f *Facts, env string, q Member) bool {
	own := &f.Components[slices.Index(b.components, q.Component)]
	return slices.ContainsFunc(simEnv(own, env).Spec.After, func(u string) bool {
		on := func(a Arrival) bool { return a.Release == q.Release }
		verified := func(a Arrival) bool { return on(a) && a.IsVerified() }
		return slices.ContainsFunc(simEnv(own, u).History, on) && !slices.ContainsFunc(simEnv(own, u).History, verified)
	})
}

// isWithdrawn says that upstream went back from a release, or that what is there came upstream later.
func (b *batchSimulation) isWithdrawn(f *Facts, env string, q Member) bool {
	own := &f.Components[slices.Index(b.components, q.Component)]
	came := func(release string) int {
		last := -1
		for i := range b.log {
			if c := &b.log[i]; slices.Contains(simEnv(own, env).Spec.After, c.env) && c.to[q.Component] == release {
				last = i
			}
		}
		return last
	}
	return came(b.carries(q.Component, env)) >= came(q.Release) || slices.ContainsFunc(upstreamOf(own, env), func(u string) bool { return b.wentBack(q, simEnv(own, u), nil) })
}

// membersVerified holds that a component that came to an environment with another and is still as
// it came is verified there.
func (b *batchSimulation) membersVerified(t *rapid.T, f *Facts, a Action, env string, q Member) {
	i := b.landed(q.Component, env)
	c := &b.log[i]
	if c.to[q.Component] != q.Release || c.pull == 0 || b.pulls[c.pull-1].revert {
		return
	}
	for name, release := range c.to {
		if name == q.Component || b.landed(name, env) != i {
			continue
		}
		e := simEnv(&f.Components[slices.Index(b.components, name)], env)
		if h := e.currentArrival(); h == nil || !h.IsVerified() || b.states[stateKey(name, env)] == verification.Degraded {
			t.Fatalf("%s: %s goes on without %s %s, which came with it to %s and is %s", a.Describe(), q, name, release[:6], env, b.states[stateKey(name, env)])
		}
	}
}

// revertedAt is when a revert of a release was last opened or merged and nothing
// brought it back since; zero when none was.
func (b *batchSimulation) revertedAt(env string, q Member) time.Time {
	var at, back time.Time
	for _, p := range b.pulls {
		if r, in := FindMember(p.moves, q.Component); p.env != env || !in || r.Release != q.Release {
			continue
		}
		switch {
		case p.revert && p.open && p.made.After(at):
			at = p.made
		case p.revert && p.merged && p.ended.After(at):
			at = p.ended
		case !p.revert && p.merged && p.ended.After(back):
			back = p.ended
		}
	}
	if back.After(at) {
		return time.Time{}
	}
	return at
}

// mayJoin holds what keeps a component from setting out.
func (b *batchSimulation) mayJoin(t *rapid.T, a Action, env string, q Member) {
	if b.broken != "" || b.heldIn(q.Component, env, false) {
		t.Fatalf("%s: %s, broken %q, held %t", a.Describe(), q, b.broken, b.heldIn(q.Component, env, false))
	}
	for _, p := range b.pulls {
		r, in := FindMember(p.moves, q.Component)
		if in && p.env == env && !p.open && !p.merged && !p.super && !b.forgiven[p.number] && !p.revert && r.Release == q.Release && p.ended.After(b.promotedAt[stateKey(q.Component, env)]) && !b.mergedSince(p, q) {
			t.Fatalf("%s: #%d with %s was closed by a person (8)", a.Describe(), p.number, q)
		}
	}
}

func (b *batchSimulation) mergedSince(p *batchSimPull, q Member) bool {
	return slices.ContainsFunc(b.pulls, func(o *batchSimPull) bool {
		r, in := FindMember(o.moves, q.Component)
		return in && o.merged && !o.revert && o.env == p.env && r.Release == q.Release && !o.ended.Before(p.ended)
	})
}

// heldIn says that a hold stops a component's promotions in an environment, or reverts.
func (b *batchSimulation) heldIn(component, env string, revert bool) bool {
	return slices.ContainsFunc(b.holds, func(h Hold) bool {
		return (h.Reverts || !revert) && (h.Scope == "pipeline" || h.Scope == "environment" && h.Environment == env || h.Scope == "component" && h.Environment == component)
	})
}

func (b *batchSimulation) mayReplace(t *rapid.T, f *Facts, a Replace) {
	p := b.pulls[a.Pull-1]
	if !p.open || p.head != a.Head || b.broken != "" {
		t.Fatalf("%s: open %t, broken %q", a.Describe(), p.open, b.broken)
	}
	fresh := 0
	for _, q := range a.Members {
		was, in := FindMember(p.declared, q.Component)
		if in && was.Release == q.Release {
			continue
		}
		fresh++
		b.mayCome(t, f, a, a.Environment, q)
		b.mayJoin(t, a, a.Environment, q)
	}
	requested := slices.ContainsFunc(f.Components, func(c ComponentFacts) bool { return len(c.PendingCommands) > 0 })
	withdrawn := slices.ContainsFunc(p.moves, func(q Member) bool {
		put, _ := FindMember(p.declared, q.Component)
		return put.Release != q.Release || b.isWithdrawn(f, a.Environment, q) || b.isUnproven(f, a.Environment, q)
	})
	if fresh > 0 && (p.approvals > 0 && !withdrawn || p.held) && !requested && p.headModified == "" {
		t.Fatalf("%s: #%d is approved %d, held %t, and nobody asked; moves %v declared %v", a.Describe(), p.number, p.approvals, p.held, p.moves, p.declared)
	}
	if p.headModified != "" && !requested {
		t.Fatalf("%s: it is somebody else's work", a.Describe())
	}
}

// mayMerge holds 4 for all that is in it, and for a revert 5.
func (b *batchSimulation) mayMerge(t *rapid.T, f *Facts, a Merge) {
	p := b.pulls[a.Pull-1]
	if b.broken != "" || p.held || p.headModified != "" || !p.open || p.head != a.Head || b.changedSince(p.env, p.base, p.moves) || BatchID(a.Members) != BatchID(p.moves) {
		t.Fatalf("%s: broken %q, held %t, spoilt %q, open %t, passengers %v of %v (4)", a.Describe(), b.broken, p.held, p.headModified, p.open, a.Members, p.moves)
	}
	bad := false
	for _, q := range p.moves {
		if b.heldIn(q.Component, p.env, p.revert) {
			t.Fatalf("%s: %s is on hold (4)", a.Describe(), q.Component)
		}
		bad = bad || b.states[stateKey(q.Component, p.env)] == verification.Degraded
		bad = bad || slices.ContainsFunc(b.pending[q.Component], func(k PendingCommand) bool { return k.Verb == "revert" && k.Environment == p.env })
		e := simEnv(&f.Components[slices.Index(b.components, q.Component)], p.env)
		switch {
		case !p.revert:
			b.mayCome(t, f, a, p.env, q)
			if e.Revert != nil || len(e.Gates) > p.approvals || e.Spec.Merge != pipeline.Auto {
				t.Fatalf("%s: approvals %d, merge %s (4)", a.Describe(), p.approvals, e.Spec.Merge)
			}
		case b.carries(q.Component, p.env) != q.Release || b.log[b.landed(q.Component, p.env)].from[q.Component] != p.back[q.Component]:
			t.Fatalf("%s: %s isn't what it takes back (5)", a.Describe(), q)
		}
	}
	if p.revert && !bad {
		t.Fatalf("%s: nothing is degraded and nobody asked", a.Describe())
	}
}

// mayRevert holds that a way back takes back all of its promotion.
func (b *batchSimulation) mayRevert(t *rapid.T, a OpenRevert) {
	p := b.pulls[a.Pull-1]
	if !p.merged || p.revert || BatchID(a.Members) != BatchID(p.moves) {
		t.Fatalf("%s takes back %v, #%d brought %v", a.Describe(), a.Members, p.number, p.moves)
	}
	for _, q := range p.moves {
		if b.log[b.landed(q.Component, p.env)].pull != p.number {
			t.Fatalf("%s: %s has moved on (5)", a.Describe(), q)
		}
	}
}

// event lets something happen that is none of Liftlock's doing.
func (b *batchSimulation) event(t *rapid.T) {
	b.now = b.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	component := oneOf(t, b.components, "component")
	env := oneOf(t, b.specs, "env")
	var open []*batchSimPull
	for _, p := range b.pulls {
		if p.open {
			open = append(open, p)
		}
	}
	pull := &batchSimPull{}
	if len(open) > 0 {
		pull = oneOf(t, open, "pull")
	}
	switch rapid.SampledFrom([]string{"release", "release all", "well", "well", "well", "bad", "soaking", "approve", "approve", "label", "hold", "file", "close", "merge", "push", "push another", "by hand", "ask", "ask", "lost", "refused", "time"}).Draw(t, "event") {
	case "release":
		b.release(component)
	case "release all":
		b.release(b.components...)
	case "well":
		for _, name := range b.components {
			b.states[stateKey(name, env.Name)] = verification.Verified
		}
	case "bad":
		b.states[stateKey(component, env.Name)] = verification.Degraded
	case "soaking":
		b.states[stateKey(component, env.Name)] = verification.Soaking
	case "approve":
		pull.approvals = min(pull.approvals+1, 2)
	case "label":
		pull.held = !pull.held
	case "hold":
		if len(b.holds) > 0 {
			b.holds = nil
			break
		}
		h := Hold{Scope: rapid.SampledFrom([]string{"component", "environment", "pipeline"}).Draw(t, "scope"), By: "ada", At: b.now, Reverts: rapid.Bool().Draw(t, "reverts")}
		h.Environment = map[string]string{"component": component, "environment": env.Name}[h.Scope]
		b.holds = []Hold{h}
	case "file":
		b.broken = map[string]string{"": ".liftlock.yaml:3: unknown key"}[b.broken]
	case "close":
		pull.open, pull.ended = false, b.now
	case "merge":
		if pull.number > 0 && pull.headModified == "" {
			b.merge(pull)
		}
	case "push another": // well made, but nobody knows of which release
		if len(pull.moves) == 0 || pull.revert {
			return
		}
		p := pull.moves[0]
		p.Release = id(fmt.Sprint(p.Component, max(0, b.released-rapid.IntRange(0, 3).Draw(t, "older"))))
		p.Name = p.Release[:6]
		pull.moves, pull.head = append([]Member{p}, pull.moves[1:]...), fmt.Sprint("pushed", b.now.UnixNano())
	case "push":
		pull.headModified, pull.head = "somebody pushed to it", fmt.Sprint("pushed", b.now.UnixNano())
	case "by hand":
		if !env.IsSource() {
			b.released++
			b.commit(env.Name, map[string]string{component: id(fmt.Sprint(component[:1], b.released))}, 0)
		}
	case "ask":
		b.giveCommand(component, rapid.SampledFrom([]string{"promote", "revert", "retry"}).Draw(t, "verb"), env.Name)
	case "lost":
		b.seen = map[string]bool{}
		b.history, b.before, b.pending = map[string][]Arrival{}, map[string]bool{}, map[string][]PendingCommand{}
	case "refused":
		b.refused[stateKey(component, env.Name)] = !b.refused[stateKey(component, env.Name)]
	case "time":
		b.now = b.now.Add(2 * time.Hour)
	}
}

func (b *batchSimulation) release(components ...string) {
	to := map[string]string{}
	for _, name := range components {
		b.released++
		to[name] = id(fmt.Sprint(name[:1], b.released))
	}
	b.commit(b.specs[0].Name, to, 0)
}

func (b *batchSimulation) giveCommand(component, verb, env string) {
	b.commands++
	b.pending[component] = append(b.pending[component], PendingCommand{ID: b.commands, Verb: command.Verb(verb), Environment: env, By: "ada", At: b.now})
	if verb == "promote" {
		b.promotedAt[stateKey(component, env)] = b.now
	}
}

// everywhere holds that no state is a trap: when all is mended, people get the
// next release of every component everywhere by what they are told.
func (b *batchSimulation) everywhere(t *rapid.T) {
	b.holds, b.broken, b.refused = nil, "", map[string]bool{}
	b.release(b.components...)
	next := map[string]string{}
	for _, name := range b.components {
		next[name] = b.carries(name, b.specs[0].Name)
	}
	for range 25 {
		b.now = b.now.Add(10 * time.Minute)
		done := true
		for key := range b.states {
			b.states[key] = verification.Verified
		}
		for _, s := range b.specs {
			for _, name := range b.components {
				done = done && b.carries(name, s.Name) == next[name]
			}
		}
		b.untilQuiet(t)
		if done {
			return
		}
		b.actAsPerson(t)
	}
	_, d := b.decide(t)
	t.Fatalf("never everywhere: %v", d.Components)
}

// actAsPerson is people doing what they are asked for.
func (b *batchSimulation) actAsPerson(t *rapid.T) {
	for _, p := range b.pulls {
		p.held = false
		if p.open && p.revert && p.headModified == "" {
			p.open, p.ended = false, b.now
		}
	}
	f, d := b.decide(t)
	for i, name := range b.components {
		for k := range f.Components[i].Envs {
			e := &f.Components[i].Envs[k]
			st := d.Components[i].Env(e.Name)
			switch {
			case e.Open != nil && e.Open.HeadState == HeadModified, e.Revert != nil && e.Revert.HeadState == HeadModified:
				b.giveCommand(name, "retry", e.Name)
			case slices.ContainsFunc(st.Why, func(r Reason) bool { return r.Code == "diverged" }), e.Open != nil && waitsFor(st.Gates, "diverged"):
				b.giveCommand(name, "promote", e.Name)
			}
		}
	}
	for _, p := range b.pulls {
		if p.open && !p.revert && p.headModified == "" {
			p.approvals = 2
			ready := true
			for i := range b.components {
				if e := simEnv(&f.Components[i], p.env); e.Open != nil && !allPassBut(d.Components[i].Env(p.env), "approvals") {
					ready = false
				}
			}
			if ready && slices.ContainsFunc(b.specs, func(s pipeline.Environment) bool { return s.Name == p.env && s.Merge == pipeline.Manual }) {
				b.merge(p)
			}
		}
	}
}

func allPassBut(st *EnvState, gate string) bool {
	for _, r := range st.Gates {
		if string(r.Gate) != gate && r.Outcome != "pass" {
			return false
		}
	}
	return true
}
