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
func (si *simulation) decide(t *rapid.T) (ComponentFacts, ComponentDecision) {
	f := si.facts()
	for range 8 {
		d := decideAlone(t, f)
		if si.decisions++; si.decisions%pureEvery == 0 {
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
				si.answerRequest(&f, l)
			}
		}
		if looks == 0 {
			si.check(t, &f, &d)
			return f, d
		}
	}
	t.Fatalf("asks for facts without end")
	return f, ComponentDecision{}
}

// run is one run of the engine; true when it did something that is news. With
// faults the world may move on before the actions are done, and the process may
// die in the middle of one.
func (si *simulation) run(t *rapid.T, faults bool) bool {
	f, d := si.decide(t)
	if faults && rapid.IntRange(0, 5).Draw(t, "race") == 0 {
		si.event(t)
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
		err := si.do(&f, a, crash)
		if err != nil {
			if !errors.Is(err, errStale) && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			return true
		}
		acted = true
		si.checkOnePullEach(t)
	}
	return acted
}

// comesToRest holds 9: with no news, few decisions until nothing is done any
// more, and then few times at which to look again.
func (si *simulation) comesToRest(t *rapid.T) {
	si.rest, si.skew = true, 0
	defer func() { si.rest = false }()
	si.untilQuiet(t)
	looks, end := 0, si.now.Add(4*time.Hour)
	for {
		_, d := si.decide(t)
		if d.Next.IsZero() || d.Next.After(end) {
			return
		}
		if looks++; looks > 120 {
			t.Fatalf("looked %d times in %s without news; next %s, now %s", looks, 4*time.Hour-end.Sub(si.now), d.Next, si.now)
		}
		si.now = d.Next
		si.untilQuiet(t)
	}
}

func (si *simulation) untilQuiet(t *rapid.T) {
	for range 40 {
		si.now = si.now.Add(time.Millisecond)
		if !si.run(t, false) {
			return
		}
	}
	_, d := si.decide(t)
	t.Fatalf("doesn't come to rest: %s", asJSON(t, d))
}

// reachesEverywhere holds that no state is a trap. When all faults are mended, people get the next
// release everywhere by Liftlock's own instructions.
func (si *simulation) reachesEverywhere(t *rapid.T) {
	si.broken, si.problems, si.holds, si.holdsErr, si.incidents, si.limits, si.refused = "", nil, nil, "", nil, Limits{}, map[string]bool{}
	next := id("rz")
	for _, s := range si.sources(true) {
		si.commit(s, next, "person")
	}
	for range 25 {
		si.now = si.now.Add(10 * time.Minute)
		done := true
		for _, s := range si.specs {
			si.settle(s.Name, verification.Verified)
			done = done && si.currentRelease(s.Name) == next
		}
		si.untilQuiet(t)
		if done {
			if len(si.store.pending) > 0 {
				t.Fatalf("commands that nobody answers: %+v", si.store.pending)
			}
			return
		}
		si.actAsPerson(t)
	}
	_, d := si.decide(t)
	t.Fatalf("%s never gets everywhere: %s", wording.Short(next), asJSON(t, d))
}

// actAsPerson do what they are asked for.
func (si *simulation) actAsPerson(t *rapid.T) {
	for _, p := range si.pulls {
		switch {
		case !p.open:
		case !p.ours:
			p.open, p.ended = false, si.now
		case p.revert && p.headModified == "":
			p.open, p.ended = false, si.now // it is well: the revert isn't wanted
		}
		p.held = false
		if p.mergeable != "yes" {
			p.mergeable = "yes"
		}
	}
	f, d := si.decide(t)
	for i := range d.Envs {
		st, e := &d.Envs[i], simEnv(&f, d.Envs[i].Environment)
		switch {
		case hasReason(st, "foreign") || e.Revert != nil && e.Revert.HeadState == HeadModified:
			si.giveCommand("retry", e.Name)
		case e.Open != nil:
			p := si.pull(e.Open.Number)
			switch {
			case waitsFor(st.Gates, "settled"):
				for _, tg := range si.targets[e.Name] {
					tg.drift = "" // synced, as the reason says
				}
			case waitsFor(st.Gates, "approvals"):
				p.approvals["ada"], p.approvals["grace"] = p.release, p.release
			case waitsFor(st.Gates, "diverged"), waitsFor(st.Gates, "closed"), waitsFor(st.Gates, "upstream") && hasReason(st, "newer-waits"):
				si.giveCommand("promote", e.Name)
			case allPass(st.Gates):
				si.merge(p, false, true)
			}
		case hasReason(st, "diverged") || hasReason(st, "manual"):
			si.giveCommand("promote", e.Name)
		}
	}
}

func hasReason(st *EnvState, code string) bool {
	return slices.ContainsFunc(st.Why, func(r Reason) bool { return string(r.Code) == code })
}

func waitsFor(rs []policies.Result, gate string) bool {
	return slices.ContainsFunc(rs, func(r policies.Result) bool { return string(r.Gate) == gate && r.Outcome != policies.Pass })
}
