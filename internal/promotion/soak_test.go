package promotion

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

const soakGap = 10 * time.Minute

// soakLook is one look at qa, a while after the one before.
type soakLook struct {
	after time.Duration
	see   func(f *ComponentFacts)
	want  Soak // of r2, Seen as the time since noon
	store bool // it is to be written down
}

// TestSoakIsCounted tells what a stretch is made of, look by look.
func TestSoakIsCounted(t *testing.T) {
	well := func(f *ComponentFacts) { f.verdict("qa", verification.Verified, "") }
	as := func(s verification.State) func(*ComponentFacts) {
		return func(f *ComponentFacts) { f.verdict("qa", s, "because") }
	}
	lapsed := func(f *ComponentFacts) { well(f); f.env("qa").Targets[0].Verdict.Lapsed = true }
	seen := func(served, longest, since time.Duration) Soak {
		return Soak{Served: served, Seen: noon.Add(since), Longest: longest}
	}
	paused := func(served, since time.Duration) Soak {
		return Soak{Served: served, Seen: noon.Add(since), Paused: true}
	}
	const m = time.Minute
	first := soakLook{0, well, seen(0, 0, 0), true}
	for name, looks := range map[string][]soakLook{
		"it goes on":                         {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {5 * m, well, seen(10*m, 0, 10*m), true}},
		"a look soon after isn't written":    {first, {m, well, seen(m, 0, m), false}, {m, well, seen(2*m, 0, 2*m), false}, {m, well, seen(3*m, 0, 3*m), true}},
		"as far apart as may be":             {first, {10 * m, well, seen(10*m, 0, 10*m), true}},
		"nobody looked":                      {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {10*m + 1, well, seen(5*m, 0, 15*m+1), true}, {m, well, seen(6*m, 0, 16*m+1), false}},
		"a clock that is behind":             {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {-2 * m, well, seen(5*m, 0, 5*m), false}, {3 * m, well, seen(6*m, 0, 6*m), false}},
		"a quarter of the gap is written":    {first, {150 * time.Second, well, seen(150*time.Second, 0, 150*time.Second), true}},
		"nobody knows who brought it":        {first, {5 * m, func(f *ComponentFacts) { f.env("qa").Landed.OK = false }, paused(0, 0), true}},
		"as far behind as counts":            {first, {10 * m, well, seen(10*m, 0, 10*m), true}, {-10 * m, well, seen(10*m, 0, 10*m), false}, {11 * m, well, seen(11*m, 0, 11*m), false}},
		"a clock that was far ahead":         {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {9000 * time.Hour, well, seen(5*m, 0, 9000*time.Hour+5*m), true}, {m - 9000*time.Hour, well, seen(5*m, 0, 6*m), true}, {m, well, seen(6*m, 0, 7*m), false}},
		"degraded":                           {first, {5 * m, as(verification.Degraded), Soak{}, true}, {m, well, seen(0, 0, 6*m), true}},
		"degraded, after a while":            {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {m, as(verification.Degraded), Soak{Longest: 5 * m}, true}, {m, as(verification.Degraded), Soak{Longest: 5 * m}, false}, {m, well, seen(0, 5*m, 8*m), true}},
		"failed":                             {first, {5 * m, as(verification.Failed), Soak{}, true}},
		"the longest of several stays":       {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {m, as(verification.Degraded), Soak{Longest: 5 * m}, true}, {m, well, seen(0, 5*m, 7*m), true}, {2 * m, well, seen(2*m, 5*m, 9*m), false}, {m, as(verification.Failed), Soak{Longest: 5 * m}, true}},
		"it can't be told":                   {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {m, as(verification.Unclear), paused(5*m, 5*m), true}, {m, as(verification.Unclear), paused(5*m, 5*m), false}, {m, well, seen(5*m, 0, 8*m), true}, {m, well, seen(6*m, 0, 9*m), false}},
		"verified, but only from before":     {first, {5 * m, lapsed, paused(0, 0), true}},
		"Progressing for a moment":           {first, {5 * m, as(verification.Progressing), paused(0, 0), true}, {m, well, seen(0, 0, 6*m), true}},
		"another release":                    {first, {5 * m, well, seen(5*m, 0, 5*m), true}, {m, func(f *ComponentFacts) { f.land("qa", "r3", ByPromotion, 6) }, Soak{Longest: 5 * m}, true}, {m, func(*ComponentFacts) {}, Soak{Longest: 5 * m}, false}},
		"overlays that disagree":             {first, {5 * m, func(f *ComponentFacts) { e := f.env("qa"); e.Fields, e.Release.OK = FieldsMixed, false }, Soak{}, true}},
		"files that can't be read":           {first, {5 * m, func(f *ComponentFacts) { f.env("qa").Release.OK = false }, paused(0, 0), true}},
		"changed by hand, to the same":       {first, {5 * m, func(f *ComponentFacts) { f.env("qa").Landed.Value.By = ByPerson }, Soak{}, true}},
		"not verified yet":                   {{0, as(verification.Soaking), Soak{}, false}, {m, well, seen(0, 0, m), true}},
		"well before it was written down":    {{0, func(f *ComponentFacts) { well(f); f.env("qa").History[0].VerifiedAt = time.Time{} }, Soak{}, false}},
		"degraded is on record, and not now": {first, {m, func(f *ComponentFacts) { well(f); f.env("qa").History[0].MarkDegraded(noon) }, Soak{}, true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := linearFacts()
			f.land("qa", "r2", ByPromotion, 5)
			f.verified("qa")
			now := noon
			for i, l := range looks {
				now = now.Add(l.after)
				l.see(f)
				e := f.env("qa")
				stored := e.AdvanceSoaks(now, soakGap)
				at := len(e.History) - 2 // r2's, before which there is the baseline's
				if got := e.History[at].Soak; got != l.want {
					t.Fatalf("look %d: %+v, want %+v", i, got, l.want)
				}
				if (len(stored) > 0) != l.store {
					t.Errorf("look %d: to be written down: %d, want %t", i, len(stored), l.store)
				}
				if !l.store { // the next look doesn't know of it
					e.History[at].Soak = looksBack(looks, i)
				}
			}
		})
	}
}

// looksBack is what was last written down until a look.
func looksBack(looks []soakLook, i int) Soak {
	for ; i >= 0; i-- {
		if looks[i].store {
			return looks[i].want
		}
	}
	return Soak{}
}

// TestSoakNeverCountsTooMuch holds, over random looks, that the count is never more than the time
// between healthy looks, each within the gap of the one before.
func TestSoakNeverCountsTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Soak
		now, lastWell, latest := noon, time.Time{}, time.Time{}
		var running, longest time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(-60, 1200).Draw(t, "after")) * time.Second)
			state := rapid.SampledFrom([]soakState{soakWell, soakWell, soakWell, soakUnclear, soakBroken}).Draw(t, "state")
			s = s.advance(state, now, soakGap)
			switch {
			case state == soakBroken:
				longest, running, lastWell, latest = max(longest, running), 0, time.Time{}, time.Time{}
			case state == soakUnclear:
				lastWell = time.Time{}
			default:
				if d := now.Sub(lastWell); !lastWell.IsZero() && d > 0 && d <= soakGap {
					running += d
				}
				if now.After(latest) { // a clock that is behind counts nothing twice
					latest = now
				}
				lastWell = latest
			}
			if s.Served > running || s.Longest > longest {
				t.Fatalf("%+v counts more than %s, and %s before", s, running, longest)
			}
		}
	})
}

// TestSoakGate holds what the gate is told of the environments before.
func TestSoakGate(t *testing.T) {
	gated := func(soak Soak, change func(f *ComponentFacts)) *ComponentFacts {
		f := gatedFacts(policies.Gate{Soak: &policies.Soak{For: time.Hour}})
		f.env("dev").History[0].Soak = soak
		if change != nil {
			change(f)
		}
		return f
	}
	merge := []string{"merge #7 into qa at head"}
	for name, c := range map[string]decisionCase{
		"full":                   {facts: gated(Soak{Served: time.Hour, Seen: noon}, nil), want: merge},
		"not yet":                {facts: gated(Soak{Served: 20 * time.Minute, Seen: noon}, nil), next: 40 * time.Minute, why: "1h in dev without a break is full at Mon 2026-03-02 12:40 UTC"},
		"standing still":         {facts: gated(Soak{Served: 20 * time.Minute, Seen: noon, Paused: true}, nil), why: "20m of 1h in dev; it stands still: synced and healthy on 1 target"},
		"the longest":            {facts: gated(Soak{Seen: noon, Longest: time.Hour}, nil), want: merge},
		"lost with the database": {facts: gated(Soak{}, nil), why: "it has to be verified in dev for 1h without a break, and isn't yet"},
		"of an arrival before": {facts: gated(Soak{}, func(f *ComponentFacts) {
			e := f.env("dev")
			e.History = append(e.History, Arrival{Release: id("r2"), Commit: "older", Soak: Soak{Served: time.Hour, Seen: noon}})
		}), want: merge},
		"of an arrival before, for less": {facts: gated(Soak{}, func(f *ComponentFacts) {
			e := f.env("dev")
			e.History = append(e.History, Arrival{Release: id("r2"), Commit: "older", Soak: Soak{Served: 20 * time.Minute, Seen: noon}})
		}), why: "it was verified in dev for 20m without a break, 1h needed"},
		"of an arrival before it was reverted": {facts: gated(Soak{}, func(f *ComponentFacts) {
			e := f.env("dev")
			e.History = append(e.History[:1], Arrival{Release: id("r1"), Commit: "back", By: ByRevert}, Arrival{Release: id("r2"), Commit: "older", Soak: Soak{Served: time.Hour, Seen: noon}})
		}), why: "isn't yet"},
		"of another release": {facts: gated(Soak{}, func(f *ComponentFacts) { f.env("dev").History[1].Soak = Soak{Longest: time.Hour} }), why: "isn't yet"},
	} {
		t.Run(name, func(t *testing.T) {
			c.env, c.promo = "qa", Opened
			c.check(t)
		})
	}
}

// TestSoakingReleaseIsSwept holds that a soaking release is evaluated although it is settled.
func TestSoakingReleaseIsSwept(t *testing.T) {
	t.Parallel()
	spec := &pipeline.Spec{Environments: []pipeline.Environment{{Name: "dev"}, {Name: "qa", After: []string{"dev"}},
		{Name: "prod", After: []string{"qa"}, Gates: []policies.Gate{{Soak: &policies.Soak{For: time.Hour}}}},
		{Name: "late", After: []string{"prod"}, Gates: []policies.Gate{{Soak: &policies.Soak{Environment: "dev", For: time.Hour}}}}}}
	expression := policies.Expression(`upstream.all(u, u.healthyFor > duration("1h"))`)
	spec.Environments = append(spec.Environments, pipeline.Environment{Name: "last", After: []string{"late"}, Gates: []policies.Gate{{Expression: &expression}}})
	all := []EnvState{{Environment: "dev", State: Verified, Release: "b"}, {Environment: "qa", State: Verified, Release: "b"},
		{Environment: "prod", State: Verified, Release: "b"}, {Environment: "late", State: Verified, Release: "b"}, {Environment: "last", State: Verified, Release: "b"}}
	spec.Environments[3].Gates = append([]policies.Gate{{Approvals: &policies.Approvals{Count: 1}}}, spec.Environments[3].Gates...)
	stale := append(slices.Clone(all), EnvState{Environment: "gone", Release: "a"}) // the pipeline has it no more
	for i := range stale {
		if IsSoaking(spec, stale, &stale[i]) {
			t.Errorf("%s soaks for an environment that isn't there", stale[i].Environment)
		}
	}
	for name, c := range map[string]struct {
		change func(all []EnvState)
		want   []bool
	}{
		"everything is everywhere":  {func([]EnvState) {}, []bool{false, false, false, false, false}},
		"what prod waits for":       {func(all []EnvState) { all[2].Release, all[3].Release = "a", "b" }, []bool{false, true, true, false, false}},
		"what is named farther up":  {func(all []EnvState) { all[3].Release = "a" }, []bool{true, false, false, true, false}},
		"what an expression asks":   {func(all []EnvState) { all[4].Release = "a" }, []bool{true, true, true, true, false}},
		"what isn't verified there": {func(all []EnvState) { all[2].Release, all[1].State = "a", Verifying }, []bool{false, false, true, false, false}},
	} {
		states := append([]EnvState(nil), all...)
		c.change(states)
		for i := range states {
			if got := IsSoaking(spec, states, &states[i]); got != c.want[i] {
				t.Errorf("%s: %s: %t", name, states[i].Environment, got)
			}
		}
	}
}

// TestSourceSoaks counts what people bring into a source environment: nothing else comes there.
func TestSourceSoaks(t *testing.T) {
	f := arrivedFacts()
	e := f.env("dev")
	e.AdvanceSoaks(noon, soakGap)
	e.AdvanceSoaks(noon.Add(5*time.Minute), soakGap)
	if got := e.History[0].Soak.Served; got != 5*time.Minute {
		t.Errorf("it served %s", got)
	}
}
