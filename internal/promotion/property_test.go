package promotion

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

var long = flag.Bool("long", false, "check the properties over many more worlds")

// checks is how many worlds a property is checked over, unless -rapid.checks says.
const (
	checksDefault = "500"
	checksLong    = "50000"
)

func TestMain(m *testing.M) {
	given := slices.ContainsFunc(os.Args, func(a string) bool { return bytes.Contains([]byte(a), []byte("rapid.checks")) })
	flag.Parse()
	if !given {
		n := checksDefault
		if *long {
			n = checksLong
		}
		if err := flag.Set("rapid.checks", n); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestInvariants lets random things happen to random worlds while Decide is
// obeyed, well or badly, and holds every action to the invariants. At the end
// the world must come to rest, and people must be able to get the next release
// everywhere with the means that they are told of.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t)
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "smooth") {
				w.smooth(t)
			} else {
				w.event(t)
			}
			for range rapid.IntRange(0, 3).Draw(t, "runs") {
				w.run(t, true)
			}
		}
		w.comesToRest(t)
		w.reachesEverywhere(t)
	})
}

// decide judges the world, with its looks answered, and checks the decision.
func (w *simulation) decide(t *rapid.T) (ComponentFacts, ComponentDecision) {
	f := w.facts()
	for range 8 {
		d := decideAlone(t, f)
		if w.decisions++; w.decisions%pureEvery == 0 {
			isPure(t, Facts{Components: []ComponentFacts{f}})
			observesOnly(t, f)
			waitsOnDoubt(t, f)
		}
		if !d.Next.IsZero() && d.Next.Before(f.Now.Add(minRecheckDelay)) {
			t.Fatalf("look again at %s, now is %s", d.Next, f.Now)
		}
		looks := 0
		for _, a := range d.Actions {
			if l, ok := a.(FactRequest); ok {
				looks++
				w.answerRequest(&f, l)
			}
		}
		if looks == 0 {
			w.check(t, &f, &d)
			return f, d
		}
	}
	t.Fatalf("asks for facts without end")
	return f, ComponentDecision{}
}

// run is one run of the engine; true when it did something that is news. With
// faults the world may move on before the actions are done, and the process may
// die in the middle of one.
func (w *simulation) run(t *rapid.T, faults bool) bool {
	f, d := w.decide(t)
	if faults && rapid.IntRange(0, 5).Draw(t, "race") == 0 {
		w.event(t)
	}
	acted := false
	for _, a := range d.Actions {
		switch a.(type) {
		case Refresh, Sync:
			continue
		}
		crash := faults && rapid.IntRange(0, 15).Draw(t, "crash") == 0
		if faults && rapid.IntRange(0, 15).Draw(t, "fails") == 0 {
			return acted
		}
		err := w.do(&f, a, crash)
		if err != nil {
			if !errors.Is(err, errStale) && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			return true
		}
		acted = true
		w.checkOnePullEach(t)
	}
	return acted
}

// comesToRest holds 9: with no news, few decisions until nothing is done any
// more, and then few times at which to look again.
func (w *simulation) comesToRest(t *rapid.T) {
	w.rest, w.skew = true, 0
	defer func() { w.rest = false }()
	w.untilQuiet(t)
	looks, end := 0, w.now.Add(4*time.Hour)
	for {
		_, d := w.decide(t)
		if d.Next.IsZero() || d.Next.After(end) {
			return
		}
		if looks++; looks > 120 {
			t.Fatalf("looked %d times in %s without news; next %s, now %s", looks, 4*time.Hour-end.Sub(w.now), d.Next, w.now)
		}
		w.now = d.Next
		w.untilQuiet(t)
	}
}

func (w *simulation) untilQuiet(t *rapid.T) {
	for range 40 {
		w.now = w.now.Add(time.Millisecond)
		if !w.run(t, false) {
			return
		}
	}
	_, d := w.decide(t)
	t.Fatalf("doesn't come to rest: %s", asJSON(t, d))
}

// reachesEverywhere holds that no state is a trap: when what is broken is mended and all is
// well, people get the next release everywhere by what Liftlock tells them.
func (w *simulation) reachesEverywhere(t *rapid.T) {
	w.broken, w.problems, w.holds, w.holdsErr, w.incidents, w.limits, w.refused = "", nil, nil, "", nil, Limits{}, map[string]bool{}
	next := id("rz")
	for _, s := range w.sources(true) {
		w.commit(s, next, "person")
	}
	for range 25 {
		w.now = w.now.Add(10 * time.Minute)
		done := true
		for _, s := range w.specs {
			w.settle(s.Name, verification.Verified)
			done = done && w.currentRelease(s.Name) == next
		}
		w.untilQuiet(t)
		if done {
			if len(w.store.pending) > 0 {
				t.Fatalf("commands that nobody answers: %+v", w.store.pending)
			}
			return
		}
		w.actAsPerson(t)
	}
	_, d := w.decide(t)
	t.Fatalf("%s never gets everywhere: %s", wording.Short(next), asJSON(t, d))
}

// actAsPerson do what they are asked for.
func (w *simulation) actAsPerson(t *rapid.T) {
	for _, p := range w.pulls {
		switch {
		case !p.open:
		case !p.ours:
			p.open, p.ended = false, w.now
		case p.revert && p.headModified == "":
			p.open, p.ended = false, w.now // it is well: the revert isn't wanted
		}
		p.held = false
		if p.mergeable != "yes" {
			p.mergeable = "yes"
		}
	}
	f, d := w.decide(t)
	for i := range d.Envs {
		st, e := &d.Envs[i], simEnv(&f, d.Envs[i].Environment)
		switch {
		case hasReason(st, "foreign") || e.Revert != nil && e.Revert.HeadState == HeadModified:
			w.giveCommand("retry", e.Name)
		case e.Open != nil:
			p := w.pull(e.Open.Number)
			switch {
			case waitsFor(st.Gates, "settled"):
				for _, tg := range w.targets[e.Name] {
					tg.drift = "" // synced, as the reason says
				}
			case waitsFor(st.Gates, "approvals"):
				p.approvals["ada"], p.approvals["grace"] = p.release, p.release
			case waitsFor(st.Gates, "diverged"), waitsFor(st.Gates, "closed"), waitsFor(st.Gates, "upstream") && hasReason(st, "newer-waits"):
				w.giveCommand("promote", e.Name)
			case allPass(st.Gates):
				w.merge(p, false, true)
			}
		case hasReason(st, "diverged") || hasReason(st, "manual"):
			w.giveCommand("promote", e.Name)
		}
	}
}

func hasReason(st *EnvState, code string) bool {
	return slices.ContainsFunc(st.Why, func(r Reason) bool { return r.Code == code })
}

func waitsFor(rs []policies.Result, gate string) bool {
	return slices.ContainsFunc(rs, func(r policies.Result) bool { return r.Gate == gate && r.Outcome != policies.Pass })
}
