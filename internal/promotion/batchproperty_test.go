package promotion

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
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
func (w *batchSimulation) decide(t *rapid.T) (Facts, Decision) {
	f := w.facts()
	for range 8 {
		d := Decide(f)
		looks := 0
		for i := range d.Components {
			for _, a := range d.Components[i].Actions {
				if l, ok := a.(FactRequest); ok {
					looks++
					w.answerRequest(&f, i, l)
				}
			}
		}
		for _, a := range d.Actions {
			if l, ok := a.(FactRequest); ok {
				looks++
				w.answerRequest(&f, -1, l)
			}
		}
		if looks == 0 {
			w.check(t, &f, &d)
			return f, d
		}
	}
	t.Fatal("asks for facts without end")
	return f, Decision{}
}

// run is one run of the engine; true when it did something that is news.
func (w *batchSimulation) run(t *rapid.T) bool {
	_, d := w.decide(t)
	acted := false
	for _, s := range d.Steps() {
		acted = w.do(s.Component, s.Action) || acted
		w.checkOnePullEach(t)
	}
	return acted
}

func (w *batchSimulation) untilQuiet(t *rapid.T) {
	for range 40 {
		w.now = w.now.Add(time.Millisecond)
		if !w.run(t) {
			return
		}
	}
	_, d := w.decide(t)
	t.Fatalf("doesn't come to rest: %v", d.Actions)
}

// checkOnePullEach holds 2: one promotion an environment, one revert a component there.
func (w *batchSimulation) checkOnePullEach(t *rapid.T) {
	n := map[string]int{}
	for _, p := range w.pulls {
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
func (w *batchSimulation) check(t *rapid.T, f *Facts, d *Decision) {
	w.forgiven, w.adopting = map[int]bool{}, map[string]bool{}
	for i := range d.Components {
		for _, a := range d.Components[i].Actions {
			switch a := a.(type) {
			case Record:
				if a.ByHand {
					w.adopting[stateKey(w.components[i], a.Commit)] = true
				}
			case LiftVeto:
				w.forgiven[a.Pull] = true
			case Open, Replace, Merge, OpenRevert, RecomposeRevert, Close:
				t.Fatalf("%s alone: %s", w.components[i], a.Describe())
			}
		}
	}
	for _, a := range d.Actions {
		switch a := a.(type) {
		case Open:
			if w.openIn(a.Environment) != nil {
				t.Fatalf("%s while another is open (2)", a.Describe())
			}
			for _, q := range a.Members {
				w.mayCome(t, f, a, a.Environment, q)
				w.mayJoin(t, a, a.Environment, q)
			}
		case Replace:
			w.mayReplace(t, f, a)
		case Merge:
			w.mayMerge(t, f, a)
		case OpenRevert:
			w.mayRevert(t, a)
		}
	}
}

func (w *batchSimulation) openIn(env string) *batchSimPull {
	for _, p := range w.pulls {
		if p.open && !p.revert && p.env == env {
			return p
		}
	}
	return nil
}

// mayCome holds 1 and 6 for one passenger, and that what came together goes on
// together.
func (w *batchSimulation) mayCome(t *rapid.T, f *Facts, a Action, env string, q Member) {
	own := &f.Components[slices.Index(w.components, q.Component)]
	e := simEnv(own, env)
	for _, u := range e.Spec.After {
		if !w.verified[stateKey(q.Component, u)+"|"+q.Release] {
			t.Fatalf("%s: %s never verified %s (1)", a.Describe(), u, q)
		}
		w.membersVerified(t, f, a, u, q)
	}
	for _, u := range append(upstreamOf(own, env), env) {
		if at := w.revertedAt(u, q); !at.IsZero() && (u != env || !w.promotedAt[stateKey(q.Component, env)].After(at)) {
			t.Fatalf("%s: %s was taken back from %s at %s (1, 6)", a.Describe(), q, u, at)
		}
		if u != env && w.carries(q.Component, u) == q.Release && w.states[stateKey(q.Component, u)] == verification.Degraded {
			t.Fatalf("%s: %s is degraded in %s (1)", a.Describe(), q, u)
		}
	}
	if l := e.Landed.Value; l.By == ByPerson && w.promotedAt[stateKey(q.Component, env)].Before(l.At) {
		t.Fatalf("%s: %s over a person's change (6)", a.Describe(), q)
	}
	for _, u := range upstreamOf(own, env) {
		if w.wentBack(q, simEnv(own, u), w.seen) {
			t.Fatalf("%s: people took %s back from %s (10)", a.Describe(), q, u)
		}
	}
}

// wentBack says that a release was taken back from an environment where it hasn't been since, as far
// as is known: what was there before it came again, or a person replaced it by hand.
func (w *batchSimulation) wentBack(q Member, e *Env, known map[string]bool) bool {
	came, before := -1, map[string]bool{}
	moves := func(c *batchSimCommit) bool { _, moved := c.to[q.Component]; return moved && c.env == e.Name }
	for i := range w.log {
		if c := &w.log[i]; moves(c) && c.to[q.Component] == q.Release {
			if came = i; known != nil && !known[stateKey(q.Component, c.sha)] {
				came = -1
			}
		}
	}
	for i := range w.log {
		c := &w.log[i]
		switch key := stateKey(q.Component, c.sha); {
		case came < 0, !moves(c), known != nil && !known[key]:
		case i <= came:
			before[c.to[q.Component]] = true
		case before[c.to[q.Component]], c.from[q.Component] == q.Release && c.pull == 0 && !e.Source() && !w.adopted[key] && !w.adopting[key]:
			return true
		}
	}
	return false
}

// isUnproven says that an environment before has the release on record, and not that it was verified there: the
// record was lost, and it was replaced before it was verified again.
func (w *batchSimulation) isUnproven(f *Facts, env string, q Member) bool {
	own := &f.Components[slices.Index(w.components, q.Component)]
	return slices.ContainsFunc(simEnv(own, env).Spec.After, func(u string) bool {
		on := func(a Arrival) bool { return a.Release == q.Release }
		verified := func(a Arrival) bool { return on(a) && a.IsVerified() }
		return slices.ContainsFunc(simEnv(own, u).History, on) && !slices.ContainsFunc(simEnv(own, u).History, verified)
	})
}

// isWithdrawn says that upstream went back from a release, or that what is there came upstream later.
func (w *batchSimulation) isWithdrawn(f *Facts, env string, q Member) bool {
	own := &f.Components[slices.Index(w.components, q.Component)]
	came := func(release string) int {
		last := -1
		for i := range w.log {
			if c := &w.log[i]; slices.Contains(simEnv(own, env).Spec.After, c.env) && c.to[q.Component] == release {
				last = i
			}
		}
		return last
	}
	return came(w.carries(q.Component, env)) >= came(q.Release) || slices.ContainsFunc(upstreamOf(own, env), func(u string) bool { return w.wentBack(q, simEnv(own, u), nil) })
}

// membersVerified holds that whoever came to an environment with a passenger and is
// still as it came is verified there.
func (w *batchSimulation) membersVerified(t *rapid.T, f *Facts, a Action, env string, q Member) {
	i := w.landed(q.Component, env)
	c := &w.log[i]
	if c.to[q.Component] != q.Release || c.pull == 0 || w.pulls[c.pull-1].revert {
		return
	}
	for name, release := range c.to {
		if name == q.Component || w.landed(name, env) != i {
			continue
		}
		e := simEnv(&f.Components[slices.Index(w.components, name)], env)
		if h := e.currentArrival(); h == nil || !h.IsVerified() || w.states[stateKey(name, env)] == verification.Degraded {
			t.Fatalf("%s: %s goes on without %s %s, which came with it to %s and is %s", a.Describe(), q, name, release[:6], env, w.states[stateKey(name, env)])
		}
	}
}

// revertedAt is when a revert of a release was last opened or merged and nothing
// brought it back since; zero when none was.
func (w *batchSimulation) revertedAt(env string, q Member) time.Time {
	var at, back time.Time
	for _, p := range w.pulls {
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
func (w *batchSimulation) mayJoin(t *rapid.T, a Action, env string, q Member) {
	if w.broken != "" || w.heldIn(q.Component, env, false) {
		t.Fatalf("%s: %s, broken %q, held %t", a.Describe(), q, w.broken, w.heldIn(q.Component, env, false))
	}
	for _, p := range w.pulls {
		r, in := FindMember(p.moves, q.Component)
		if in && p.env == env && !p.open && !p.merged && !p.super && !w.forgiven[p.number] && !p.revert && r.Release == q.Release && p.ended.After(w.promotedAt[stateKey(q.Component, env)]) && !w.mergedSince(p, q) {
			t.Fatalf("%s: #%d with %s was closed by a person (8)", a.Describe(), p.number, q)
		}
	}
}

func (w *batchSimulation) mergedSince(p *batchSimPull, q Member) bool {
	return slices.ContainsFunc(w.pulls, func(o *batchSimPull) bool {
		r, in := FindMember(o.moves, q.Component)
		return in && o.merged && !o.revert && o.env == p.env && r.Release == q.Release && !o.ended.Before(p.ended)
	})
}

// heldIn says that a hold stops a component's promotions in an environment, or reverts.
func (w *batchSimulation) heldIn(component, env string, revert bool) bool {
	return slices.ContainsFunc(w.holds, func(h Hold) bool {
		return (h.Reverts || !revert) && (h.Scope == "pipeline" || h.Scope == "environment" && h.Environment == env || h.Scope == "component" && h.Environment == component)
	})
}

func (w *batchSimulation) mayReplace(t *rapid.T, f *Facts, a Replace) {
	p := w.pulls[a.Pull-1]
	if !p.open || p.head != a.Head || w.broken != "" {
		t.Fatalf("%s: open %t, broken %q", a.Describe(), p.open, w.broken)
	}
	fresh := 0
	for _, q := range a.Members {
		was, in := FindMember(p.declared, q.Component)
		if in && was.Release == q.Release {
			continue
		}
		fresh++
		w.mayCome(t, f, a, a.Environment, q)
		w.mayJoin(t, a, a.Environment, q)
	}
	requested := slices.ContainsFunc(f.Components, func(c ComponentFacts) bool { return len(c.PendingCommands) > 0 })
	withdrawn := slices.ContainsFunc(p.moves, func(q Member) bool {
		put, _ := FindMember(p.declared, q.Component)
		return put.Release != q.Release || w.isWithdrawn(f, a.Environment, q) || w.isUnproven(f, a.Environment, q)
	})
	if fresh > 0 && (p.approvals > 0 && !withdrawn || p.held) && !requested && p.headModified == "" {
		t.Fatalf("%s: #%d is approved %d, held %t, and nobody asked; moves %v declared %v", a.Describe(), p.number, p.approvals, p.held, p.moves, p.declared)
	}
	if p.headModified != "" && !requested {
		t.Fatalf("%s: it is somebody else's work", a.Describe())
	}
}

// mayMerge holds 4 for all that is in it, and for a revert 5.
func (w *batchSimulation) mayMerge(t *rapid.T, f *Facts, a Merge) {
	p := w.pulls[a.Pull-1]
	if w.broken != "" || p.held || p.headModified != "" || !p.open || p.head != a.Head || w.changedSince(p.env, p.base, p.moves) || BatchID(a.Members) != BatchID(p.moves) {
		t.Fatalf("%s: broken %q, held %t, spoilt %q, open %t, passengers %v of %v (4)", a.Describe(), w.broken, p.held, p.headModified, p.open, a.Members, p.moves)
	}
	bad := false
	for _, q := range p.moves {
		if w.heldIn(q.Component, p.env, p.revert) {
			t.Fatalf("%s: %s is on hold (4)", a.Describe(), q.Component)
		}
		bad = bad || w.states[stateKey(q.Component, p.env)] == verification.Degraded
		bad = bad || slices.ContainsFunc(w.pending[q.Component], func(k PendingCommand) bool { return k.Verb == "revert" && k.Environment == p.env })
		e := simEnv(&f.Components[slices.Index(w.components, q.Component)], p.env)
		switch {
		case !p.revert:
			w.mayCome(t, f, a, p.env, q)
			if e.Revert != nil || len(e.Gates) > p.approvals || e.Spec.Merge != pipeline.Auto {
				t.Fatalf("%s: approvals %d, merge %s (4)", a.Describe(), p.approvals, e.Spec.Merge)
			}
		case w.carries(q.Component, p.env) != q.Release || w.log[w.landed(q.Component, p.env)].from[q.Component] != p.back[q.Component]:
			t.Fatalf("%s: %s isn't what it takes back (5)", a.Describe(), q)
		}
	}
	if p.revert && !bad {
		t.Fatalf("%s: nothing is degraded and nobody asked", a.Describe())
	}
}

// mayRevert holds that a way back takes back all of its promotion.
func (w *batchSimulation) mayRevert(t *rapid.T, a OpenRevert) {
	p := w.pulls[a.Pull-1]
	if !p.merged || p.revert || BatchID(a.Members) != BatchID(p.moves) {
		t.Fatalf("%s takes back %v, #%d brought %v", a.Describe(), a.Members, p.number, p.moves)
	}
	for _, q := range p.moves {
		if w.log[w.landed(q.Component, p.env)].pull != p.number {
			t.Fatalf("%s: %s has moved on (5)", a.Describe(), q)
		}
	}
}

// event lets something happen that is none of Liftlock's doing.
func (w *batchSimulation) event(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	component := oneOf(t, w.components, "component")
	env := oneOf(t, w.specs, "env")
	var open []*batchSimPull
	for _, p := range w.pulls {
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
		w.release(component)
	case "release all":
		w.release(w.components...)
	case "well":
		for _, name := range w.components {
			w.states[stateKey(name, env.Name)] = verification.Verified
		}
	case "bad":
		w.states[stateKey(component, env.Name)] = verification.Degraded
	case "soaking":
		w.states[stateKey(component, env.Name)] = verification.Soaking
	case "approve":
		pull.approvals = min(pull.approvals+1, 2)
	case "label":
		pull.held = !pull.held
	case "hold":
		if len(w.holds) > 0 {
			w.holds = nil
			break
		}
		h := Hold{Scope: rapid.SampledFrom([]string{"component", "environment", "pipeline"}).Draw(t, "scope"), By: "ada", At: w.now, Reverts: rapid.Bool().Draw(t, "reverts")}
		h.Environment = map[string]string{"component": component, "environment": env.Name}[h.Scope]
		w.holds = []Hold{h}
	case "file":
		w.broken = map[string]string{"": ".liftlock.yaml:3: unknown key"}[w.broken]
	case "close":
		pull.open, pull.ended = false, w.now
	case "merge":
		if pull.number > 0 && pull.headModified == "" {
			w.merge(pull)
		}
	case "push another": // well made, but nobody knows of which release
		if len(pull.moves) == 0 || pull.revert {
			return
		}
		p := pull.moves[0]
		p.Release = id(fmt.Sprint(p.Component, max(0, w.released-rapid.IntRange(0, 3).Draw(t, "older"))))
		p.Name = p.Release[:6]
		pull.moves, pull.head = append([]Member{p}, pull.moves[1:]...), fmt.Sprint("pushed", w.now.UnixNano())
	case "push":
		pull.headModified, pull.head = "somebody pushed to it", fmt.Sprint("pushed", w.now.UnixNano())
	case "by hand":
		if !env.IsSource() {
			w.released++
			w.commit(env.Name, map[string]string{component: id(fmt.Sprint(component[:1], w.released))}, 0)
		}
	case "ask":
		w.giveCommand(component, rapid.SampledFrom([]string{"promote", "revert", "retry"}).Draw(t, "verb"), env.Name)
	case "lost":
		w.seen = map[string]bool{}
		w.history, w.before, w.pending = map[string][]Arrival{}, map[string]bool{}, map[string][]PendingCommand{}
	case "refused":
		w.refused[stateKey(component, env.Name)] = !w.refused[stateKey(component, env.Name)]
	case "time":
		w.now = w.now.Add(2 * time.Hour)
	}
}

func (w *batchSimulation) release(components ...string) {
	to := map[string]string{}
	for _, name := range components {
		w.released++
		to[name] = id(fmt.Sprint(name[:1], w.released))
	}
	w.commit(w.specs[0].Name, to, 0)
}

func (w *batchSimulation) giveCommand(component, verb, env string) {
	w.commands++
	w.pending[component] = append(w.pending[component], PendingCommand{ID: w.commands, Verb: verb, Environment: env, By: "ada", At: w.now})
	if verb == "promote" {
		w.promotedAt[stateKey(component, env)] = w.now
	}
}

// everywhere holds that no state is a trap: when all is mended, people get the
// next release of every component everywhere by what they are told.
func (w *batchSimulation) everywhere(t *rapid.T) {
	w.holds, w.broken, w.refused = nil, "", map[string]bool{}
	w.release(w.components...)
	next := map[string]string{}
	for _, name := range w.components {
		next[name] = w.carries(name, w.specs[0].Name)
	}
	for range 25 {
		w.now = w.now.Add(10 * time.Minute)
		done := true
		for key := range w.states {
			w.states[key] = verification.Verified
		}
		for _, s := range w.specs {
			for _, name := range w.components {
				done = done && w.carries(name, s.Name) == next[name]
			}
		}
		w.untilQuiet(t)
		if done {
			return
		}
		w.actAsPerson(t)
	}
	_, d := w.decide(t)
	t.Fatalf("never everywhere: %v", d.Components)
}

// actAsPerson is people doing what they are asked for.
func (w *batchSimulation) actAsPerson(t *rapid.T) {
	for _, p := range w.pulls {
		p.held = false
		if p.open && p.revert && p.headModified == "" {
			p.open, p.ended = false, w.now
		}
	}
	f, d := w.decide(t)
	for i, name := range w.components {
		for k := range f.Components[i].Envs {
			e := &f.Components[i].Envs[k]
			st := d.Components[i].Env(e.Name)
			switch {
			case e.Open != nil && e.Open.HeadState == HeadModified, e.Revert != nil && e.Revert.HeadState == HeadModified:
				w.giveCommand(name, "retry", e.Name)
			case slices.ContainsFunc(st.Why, func(r Reason) bool { return r.Code == "diverged" }), e.Open != nil && waitsFor(st.Gates, "diverged"):
				w.giveCommand(name, "promote", e.Name)
			}
		}
	}
	for _, p := range w.pulls {
		if p.open && !p.revert && p.headModified == "" {
			p.approvals = 2
			ready := true
			for i := range w.components {
				if e := simEnv(&f.Components[i], p.env); e.Open != nil && !allPassBut(d.Components[i].Env(p.env), "approvals") {
					ready = false
				}
			}
			if ready && slices.ContainsFunc(w.specs, func(s pipeline.Environment) bool { return s.Name == p.env && s.Merge == pipeline.Manual }) {
				w.merge(p)
			}
		}
	}
}

func allPassBut(st *EnvState, gate string) bool {
	for _, r := range st.Gates {
		if r.Gate != gate && r.Outcome != "pass" {
			return false
		}
	}
	return true
}
