package promotion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/policies"
)

// TestRequestReviewers holds when reviews of an open promotion are requested.
func TestRequestReviewers(t *testing.T) {
	gate := policies.Gate{Approvals: &policies.Approvals{Count: 1, From: policies.From{Users: []string{"ada"}, Teams: []string{"acme/sre"}}}}
	gated := func(change func(f *ComponentFacts, e *Env)) *ComponentFacts {
		f := gatedFacts(gate)
		e := f.env("qa")
		e.Spec.Gates = e.Gates
		if change != nil {
			change(f, e)
		}
		return f
	}
	want := []string{"request reviews of #7 from acme/sre, ada"}
	skip := Skip{Gate: "approvals", By: "ada", Reason: "the outage of today", At: noon, Until: noon.Add(time.Hour)}
	requested := func(release string) policies.ReviewRequests {
		return policies.ReviewRequests{Release: release, Names: []string{"acme/sre", "ada"}}
	}
	for name, c := range map[string]decisionCase{
		"open":       {facts: gated(nil), want: want},
		"open, held": {facts: gated(func(_ *ComponentFacts, e *Env) { e.Open.Held = true }), promo: Held},
		"its environment is held": {facts: gated(func(f *ComponentFacts, _ *Env) {
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "qa", By: "ada", At: noon}})
		}), promo: Held},
		"once": {facts: gated(func(_ *ComponentFacts, e *Env) { e.Open.Review.ReviewRequests = requested(id("r2")) })},
		"who reviewed another release": {facts: gated(func(_ *ComponentFacts, e *Env) {
			e.Open.Review.ReviewRequests = requested(id("r1"))
			e.Open.Review.Approvals = []policies.Approval{{User: "ada", MayWrite: true}}
		}), want: []string{"request reviews of #7 from ada"}},
		"approved": {facts: gated(func(_ *ComponentFacts, e *Env) {
			e.Open.Review.Approvals = []policies.Approval{{User: "ada", MayWrite: true, Current: true}}
		}), want: []string{"merge #7 into qa at head"}},
		"skipped":                            {facts: gated(func(_ *ComponentFacts, e *Env) { e.Open.Skips = []Skip{skip} }), want: []string{"merge #7 into qa at head"}},
		"skipped, but the floor asks":        {facts: gated(func(_ *ComponentFacts, e *Env) { e.Open.Skips, e.Floor = []Skip{skip}, []policies.Gate{gate} }), want: want},
		"somebody pushed to it":              {facts: gated(func(_ *ComponentFacts, e *Env) { e.Open.HeadState, e.Open.HeadReason = HeadModified, "ken pushed" }), promo: Held},
		"it only watches":                    {facts: gated(func(f *ComponentFacts, _ *Env) { f.Pipeline.Spec.Mode = pipeline.ModeDryRun }), why: "otherwise: request reviews of #7 from acme/sre, ada"},
		"about to be composed anew":          {facts: gated(func(f *ComponentFacts, e *Env) { e.Open.Stale = true; f.composed("qa", "r2") }), want: []string{"compose #7 anew for r2: the files it edits changed on the tracked branch"}},
		"about to be closed, as it is there": {facts: gated(func(_ *ComponentFacts, e *Env) { e.Release = Sure(rel("r2")) }), want: []string{"close #7: qa already carries r2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.env = "qa"
			if c.promo == "" {
				c.promo = Opened
			}
			c.check(t)
		})
	}
}

// TestRequestReviewersOfABatch holds that reviews of what moves together are requested once,
// for all of it.
func TestRequestReviewersOfABatch(t *testing.T) {
	both := []Member{{Component: "api", Release: id("r2"), Name: "r2"}, {Component: "web", Release: id("r2"), Name: "r2"}}
	y := newBatchFixture("api", "db", "web").arrived("api", "r2").arrived("web", "r2").openBatchPull("qa", both, nil)
	gate := policies.Gate{Approvals: &policies.Approvals{Count: 1, From: policies.From{Users: []string{"ada"}}}}
	for _, f := range y {
		f.env("qa").Gates = []policies.Gate{gate}
	}
	var got []RequestReviewers
	_, d := y.facts(nil)
	for _, s := range d.Steps() {
		if r, is := s.Action.(RequestReviewers); is {
			got = append(got, r)
		}
	}
	want := []RequestReviewers{{Environment: "qa", Pull: 7, Release: BatchID(both), Reviewers: policies.Reviewers{Users: []string{"ada"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wanted, got:\n%s", diff)
	}
}

// TestRequestsForReviewsAreLast holds that nothing waits for requests for reviews, and that none
// are made of a pull request that is closed.
func TestRequestsForReviewsAreLast(t *testing.T) {
	request := func(pull int) RequestReviewers {
		return RequestReviewers{Environment: "qa", Pull: pull, Reviewers: policies.Reviewers{Users: []string{"ada"}}}
	}
	d := Decision{Components: []ComponentDecision{
		{Actions: []Action{request(7), Record{Environment: "qa", Release: "r1", Degraded: true}}, Answers: []FinishCommand{{Environment: "qa", ID: 1}}},
		{Actions: []Action{request(8), RestartVerification{Environment: "qa"}}},
	}, Actions: []Action{OpenRevert{Environment: "qa", Pull: 6}, Close{Environment: "qa", Pull: 8}}}
	want := []Step{{0, d.Components[0].Actions[1]}, {1, d.Components[1].Actions[1]}, {-1, d.Actions[0]}, {-1, d.Actions[1]}, {0, d.Components[0].Answers[0]}, {0, request(7)}}
	if diff := cmp.Diff(want, d.Steps()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
