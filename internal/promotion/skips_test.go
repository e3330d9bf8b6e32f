package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/policies"
)

// TestSkips holds what a skip passes: the pipeline's own gates of its kind, while it
// counts, and nothing else.
func TestSkips(t *testing.T) {
	approvals := func(n int) policies.Gate { return policies.Gate{Approvals: &policies.Approvals{Count: n}} }
	window := policies.Gate{Window: &policies.Window{Cron: "0 13 * * *", Duration: time.Hour, Timezone: "UTC"}}
	skip := func(gate string) Skip {
		return Skip{Gate: policies.GateName(gate), By: "ada", ByID: 7, Reason: "the outage of today", At: noon.Add(-time.Hour), Until: noon.Add(3 * time.Hour)}
	}
	gated := func(skips []Skip, change func(f *ComponentFacts, e *Env), own ...policies.Gate) *ComponentFacts {
		f := gatedFacts(own...)
		e := f.env("qa")
		e.Spec.Gates, e.Open.Skips = own, skips
		if change != nil {
			change(f, e)
		}
		return f
	}
	with := func(change func(s *Skip)) []Skip {
		s := skip("approvals")
		change(&s)
		return []Skip{s}
	}
	merge := []string{"merge #7 into qa at head"}
	for name, c := range map[string]decisionCase{
		"a skip":                   {facts: gated([]Skip{skip("approvals")}, nil, approvals(1)), want: merge, next: 3 * time.Hour},
		"of all gates of the kind": {facts: gated([]Skip{skip("approvals")}, nil, approvals(1), approvals(2)), want: merge, next: 3 * time.Hour},
		"of one gate of two":       {facts: gated([]Skip{skip("approvals")}, nil, approvals(1), window), next: time.Hour, why: "closed until"},
		"of both":                  {facts: gated([]Skip{skip("approvals"), skip("window")}, nil, approvals(1), window), want: merge, next: time.Hour},
		"of another gate":          {facts: gated([]Skip{skip("window")}, nil, approvals(1)), next: 3 * time.Hour, why: "0 of 1 approval"},
		"that is over":             {facts: gated(with(func(s *Skip) { s.Until = noon }), nil, approvals(1)), why: "0 of 1 approval"},
		"of tomorrow":              {facts: gated(with(func(s *Skip) { s.At, s.Until = noon.Add(24*time.Hour), noon.Add(28*time.Hour) }), nil, approvals(1)), why: "the skip doesn't count: it was given at 2026-03-03T12:00:00Z, by a clock that was ahead"},
		"of a moment from now":     {facts: gated(with(func(s *Skip) { s.At = noon.Add(policies.MaxClockAhead) }), nil, approvals(1)), want: merge, next: 3 * time.Hour},
		"that doesn't count, where nothing is to be skipped": {facts: gated(with(func(s *Skip) { s.Err = "ada left" }), func(_ *ComponentFacts, e *Env) {
			e.Open.Review.Approvals = []policies.Approval{{User: "grace", MayWrite: true, Current: true}}
		}, approvals(1)), want: merge, why: "approvals pass 1 of 1 approval (grace) []"},
		"by who may not any more": {facts: gated(with(func(s *Skip) { s.Err = "ada left" }), nil, approvals(1)), why: "the skip doesn't count: ada left"},
		"by an author":            {facts: gated([]Skip{skip("approvals")}, func(_ *ComponentFacts, e *Env) { e.Open.Review.Authors = []policies.Account{{ID: 7, Login: "ada-l"}} }, approvals(1)), why: "ada is an author of the release by now"},
		"by an author, where nothing says that they may": {facts: gated([]Skip{skip("approvals")}, func(f *ComponentFacts, e *Env) {
			f.Pipeline.Spec.BreakGlass = &pipeline.BreakGlass{}
			e.Open.Review.Authors = []policies.Account{{ID: 7, Login: "ada"}}
		}, approvals(1)), why: "ada is an author of the release by now"},
		"by an author who may": {facts: gated([]Skip{skip("approvals")}, func(f *ComponentFacts, e *Env) {
			f.Pipeline.Spec.BreakGlass = &pipeline.BreakGlass{AllowSelf: true}
			e.Open.Review.Authors = []policies.Account{{ID: 7, Login: "ada"}}
		}, approvals(1)), want: merge, next: 3 * time.Hour},
		"by who may be an author": {facts: gated([]Skip{skip("window")}, func(_ *ComponentFacts, e *Env) { e.Open.Review.AuthorsErr = "a push of nobody" }, window), next: time.Hour, why: "who made the release can't be told: a push of nobody"},
		"by who may be an author, and may": {facts: gated([]Skip{skip("window")}, func(f *ComponentFacts, e *Env) {
			f.Pipeline.Spec.BreakGlass = &pipeline.BreakGlass{AllowSelf: true}
			e.Open.Review.AuthorsErr = "a push of nobody"
		}, window), want: merge, next: time.Hour},
		"by a token, of whose-ever release":               {facts: gated([]Skip{{Gate: "window", By: "ci", Via: "api", Reason: "the outage of today", Until: noon.Add(3 * time.Hour)}}, func(_ *ComponentFacts, e *Env) { e.Open.Review.AuthorsErr = "a push of nobody" }, window), want: merge, next: time.Hour},
		"by a token":                                      {facts: gated(with(func(s *Skip) { s.Via = "api" }), func(_ *ComponentFacts, e *Env) { e.Open.Review.Authors = []policies.Account{{Login: "ada"}} }, approvals(1)), want: merge, next: 3 * time.Hour},
		"by a user of the console, of whose-ever release": {facts: gated(with(func(s *Skip) { s.Via = ViaConsole }), func(_ *ComponentFacts, e *Env) { e.Open.Review.AuthorsErr = "a push of nobody" }, approvals(1)), want: merge, next: 3 * time.Hour},
		"by an author, in the console":                    {facts: gated(with(func(s *Skip) { s.Via, s.Account = ViaConsole, "Ada-L" }), func(_ *ComponentFacts, e *Env) { e.Open.Review.Authors = []policies.Account{{ID: 7, Login: "ada-l"}} }, approvals(1)), why: "ada is an author of the release by now"},
		"by another one, in the console":                  {facts: gated(with(func(s *Skip) { s.Via, s.Account = ViaConsole, "ada" }), func(_ *ComponentFacts, e *Env) { e.Open.Review.Authors = []policies.Account{{ID: 7, Login: "ada-l"}} }, approvals(1)), want: merge, next: 3 * time.Hour},
		"not of the server's floor":                       {facts: gated([]Skip{skip("approvals")}, func(_ *ComponentFacts, e *Env) { e.Floor = []policies.Gate{approvals(1)} }, approvals(2)), next: 3 * time.Hour, why: "0 of 1 approval"},
		"and the floor is met": {facts: gated([]Skip{skip("approvals")}, func(_ *ComponentFacts, e *Env) {
			e.Floor = []policies.Gate{approvals(1)}
			e.Open.Review.Approvals = []policies.Approval{{User: "grace", MayWrite: true, Current: true}}
		}, approvals(2)), want: merge, next: 3 * time.Hour},
		"not of a hold": {facts: gated([]Skip{skip("hold"), skip("approvals")}, func(_ *ComponentFacts, e *Env) { e.Open.Held = true }, approvals(1)), next: 3 * time.Hour, why: "liftlock/hold"},
		"not of another environment": {facts: gated([]Skip{skip("one-environment")}, func(_ *ComponentFacts, e *Env) {
			e.Open.Reach, e.Open.ReachReason = ReachCrossEnvironment, "it reaches prod"
		}), next: 3 * time.Hour, why: "it reaches prod"},
		"not of a broken file": {facts: gated([]Skip{skip("pipeline-file")}, func(f *ComponentFacts, _ *Env) { f.PipelineErr = "line 3" }), next: 3 * time.Hour, why: "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			c.env, c.promo = "qa", Opened
			if name == "not of a hold" {
				c.promo = Held
			}
			c.check(t)
		})
	}
	f := gated([]Skip{skip("approvals")}, nil, approvals(1))
	d := decideAlone(t, *f)
	if g := d.Env("qa").Gates; len(g) != 1 || g[0].SkippedBy != "ada" || g[0].Reason != "skipped by ada until 2026-03-02T15:00:00Z: the outage of today (without that: 0 of 1 approval; waiting for 1 more from people who may write to the repository)" {
		t.Errorf("it says %+v", g)
	}
}

// A skip takes the place of an older one of the same person, and of nobody else who has that name.
func TestSkipsOfNamesakesStay(t *testing.T) {
	older := Skip{Gate: "soak", By: "Ada", Via: ViaConsole, Subject: "1"}
	for name, c := range map[string]struct {
		older, newer Skip
		want         bool
	}{
		"the same user":                  {older, older, true},
		"a namesake":                     {older, Skip{Gate: "soak", By: "Ada", Via: ViaConsole, Subject: "2"}, false},
		"users of whom nothing is known": {Skip{Gate: "soak", By: "Ada", Via: ViaConsole}, Skip{Gate: "soak", By: "Ada", Via: ViaConsole}, false},
		"a login":                        {older, Skip{Gate: "soak", By: "Ada"}, false},
		"the same login":                 {Skip{Gate: "soak", By: "Ada"}, Skip{Gate: "soak", By: "ada"}, true},
		"of another gate":                {older, Skip{Gate: "window", By: "Ada", Via: ViaConsole, Subject: "1"}, false},
	} {
		if got := c.newer.Replaces(&c.older); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
