package promotion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// id makes a release's identity out of its name.
func id(name string) string {
	return (fmt.Sprintf("%x", name) + strings.Repeat("0", 64))[:64]
}

func rel(name string) Release { return Release{ID: id(name), Name: name} }

const tip = "cccccccccccccccccccccccccccccccccccccccc"

// linearFacts is dev → qa → prod, everything carrying r1 since the baseline, all well.
func linearFacts() *ComponentFacts {
	f := &ComponentFacts{Now: noon, Tip: tip, Holds: Sure[[]Hold](nil), Unit: Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}}
	p := &pipeline.Pipeline{}
	p.Metadata.Name = "shop"
	verify := pipeline.Verify{ArriveWithin: mins(15), Timeout: mins(10), HealthyFor: mins(1), Watch: mins(30), Debounce: pipeline.Duration(30 * time.Second)}
	p.Spec = pipeline.Spec{Mode: pipeline.ModeAct, Limits: pipeline.Limits{OpenPerEnvironment: 10, MergesPerHour: 20, RevertsPer10Minutes: 3},
		Environments: []pipeline.Environment{
			{Name: "dev", Verify: verify, OnDegraded: pipeline.OnDegraded{Action: pipeline.OnDegradedHold}},
			{Name: "qa", After: []string{"dev"}, Open: pipeline.Auto, Merge: pipeline.Auto, OnDegraded: pipeline.OnDegraded{Action: pipeline.OnDegradedRevertAndMerge}, Verify: verify},
			{Name: "prod", After: []string{"qa"}, Open: pipeline.Auto, Merge: pipeline.Auto, OnDegraded: pipeline.OnDegraded{Action: pipeline.OnDegradedRevert}, Verify: verify,
				Gates: []policies.Gate{{Approvals: &policies.Approvals{Count: 2}}}},
		}}
	f.Pipeline = p
	for i, e := range p.Spec.Environments {
		env := Env{Name: e.Name, Branch: "main", Tip: tip, Spec: e, Gates: e.Gates, Compositions: map[string]Composition{}, Release: Sure(rel("r1")),
			Landed: Sure(Landed{Commit: "base", By: ByBaseline, At: noon.Add(-24 * time.Hour)}),
			Targets: []Target{{Name: "web-" + e.Name, Cluster: "one", Verdict: verification.Verdict{State: verification.Verified}, HealthyBefore: Sure(true), ChangedSince: Sure[[]string](nil),
				Unhealthy: Sure[[]verification.Resource](nil)}}}
		env.History = []Arrival{{Seq: int64(i + 1), Release: id("r1"), Name: "r1", Commit: "base", By: ByBaseline, At: noon.Add(-24 * time.Hour)}}
		f.Envs = append(f.Envs, env)
	}
	return f
}

func mins(n int) pipeline.Duration { return pipeline.Duration(time.Duration(n) * time.Minute) }

func (c *ComponentFacts) env(name string) *Env {
	for i := range c.Envs {
		if c.Envs[i].Name == name {
			return &c.Envs[i]
		}
	}
	panic("no environment " + name)
}

// land puts a release into an environment.
func (c *ComponentFacts) land(env, release, by string, pull int) *Env {
	e := c.env(env)
	commit := env + "-" + release
	e.Release = Sure(rel(release))
	e.Landed = Sure(Landed{Commit: commit, Parent: "before", By: by, Pull: pull, At: noon.Add(-5 * time.Minute), Author: "linus"})
	var seq int64
	for _, x := range c.Envs {
		for _, a := range x.History {
			seq = max(seq, a.Seq)
		}
	}
	e.History = append([]Arrival{{Seq: seq + 1, Release: id(release), Name: release, Commit: commit, By: by, At: noon.Add(-5 * time.Minute)}}, e.History...)
	for _, i := range e.ListWithdrawn() {
		e.History[i].WithdrawnAt = noon.Add(-5 * time.Minute)
	}
	if by == ByPromotion {
		e.PastPulls = append([]PastPull{{Number: pull, Release: id(release), Merged: true, At: noon.Add(-5 * time.Minute), Commit: commit}}, e.PastPulls...)
	}
	return e
}

func (c *ComponentFacts) verified(env string) *ComponentFacts {
	c.env(env).History[0].VerifiedAt = noon.Add(-2 * time.Minute)
	return c
}

func (c *ComponentFacts) verdict(env string, s verification.State, reason string) *ComponentFacts {
	e := c.env(env)
	e.Targets[0].Verdict = verification.Verdict{State: s, Reason: reason}
	return c
}

func (c *ComponentFacts) composed(env, release string) *ComponentFacts {
	c.env(env).Compositions[id(release)] = Composition{Tip: tip, Files: []string{"overlays/" + env + "/kustomization.yaml"}}
	return c
}

// pull opens a promotion of ours.
func (c *ComponentFacts) pull(env, release string, approvals ...string) *ComponentFacts {
	p := &Pull{Number: 7, Head: "head", Release: id(release), DeclaredRelease: Sure(id(release)), Name: release, Mergeable: "yes", CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon.Add(-time.Hour)}
	for _, a := range approvals {
		p.Review.Approvals = append(p.Review.Approvals, policies.Approval{User: a, MayWrite: true, Current: true})
	}
	c.env(env).Open = p
	return c
}

func (c *ComponentFacts) openRevert(env, release string) *ComponentFacts {
	c.env(env).Revert = &Pull{Number: 9, Head: "undo", Release: id(release), Name: release, Mergeable: "yes", CreatedAt: noon.Add(-time.Minute), UpdatedAt: noon.Add(-time.Minute)}
	return c
}

// decideAlone decides one component; its decision has all actions, in the order in which
// they are to be done.
func decideAlone(t interface {
	Helper()
	Errorf(string, ...any)
}, f ComponentFacts) ComponentDecision {
	t.Helper()
	d := Decide(Facts{Components: []ComponentFacts{f}})
	out := d.Components[0]
	if len(d.Components) != 1 || !d.Next.Equal(out.Next) {
		t.Errorf("%d decisions for one component, to be looked at again at %s and %s", len(d.Components), d.Next, out.Next)
	}
	out.Actions = nil
	for _, s := range d.Steps() {
		if a, ok := s.Action.(PullAction); ok {
			if _, members := a.Subject(); s.Component != -1 || len(members) != 1 || members[0].Component != f.Unit.Component {
				t.Errorf("%s moves %v, as a step of %d", a.Describe(), members, s.Component)
			}
		}
		out.Actions = append(out.Actions, s.Action)
	}
	return out
}

func (c *ComponentFacts) with(change func(*ComponentFacts)) *ComponentFacts { change(c); return c }

// soakInQA asks for a soak that nothing has served.
var soakInQA = []policies.Gate{{Approvals: &policies.Approvals{Count: 2}}, {Soak: &policies.Soak{Environment: "qa", For: time.Hour}}}

// approvedForProd has r2 open and approved for prod, while qa has moved on to r3.
func approvedForProd() *ComponentFacts {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").land("qa", "r2", ByPromotion, 5)
	f.verified("qa").land("dev", "r3", ByPerson, 0)
	f.verified("dev").land("qa", "r3", ByPromotion, 6)
	return f.verified("qa").pull("prod", "r2", "ada", "grace").composed("prod", "r2").composed("prod", "r3")
}

// decisionCase is what is decided of one component.
type decisionCase struct {
	name  string
	facts *ComponentFacts
	want  []string // Describe of every action
	env   string   // the environment with these reasons
	why   string   // part of one
	state string
	promo string
	next  time.Duration // from noon on, when it is decided again; 0: that doesn't matter here
}

func (dc decisionCase) check(t *testing.T) {
	d := decideAlone(t, *dc.facts)
	var got []string
	for _, a := range d.Actions {
		got = append(got, a.Describe())
	}
	if fmt.Sprint(got) != fmt.Sprint(dc.want) {
		t.Errorf("actions\n got  %q\n want %q\nenvs %+v", got, dc.want, d.Envs)
	}
	if dc.next != 0 && !d.Next.Equal(noon.Add(dc.next)) {
		t.Errorf("it is looked at again in %s, want %s", d.Next.Sub(noon), dc.next)
	}
	if dc.env == "" {
		return
	}
	st := d.Env(dc.env)
	if dc.state != "" && st.State != dc.state {
		t.Errorf("state of %s is %s (%s), want %s", dc.env, st.State, st.Reason, dc.state)
	}
	if dc.promo != "" && st.Promotion != dc.promo {
		t.Errorf("promotion into %s is %s, want %s: %+v", dc.env, st.Promotion, dc.promo, st.Why)
	}
	if dc.why != "" && !strings.Contains(fmt.Sprint(st.Reason, st.Why, st.Gates, st.RevertGates), dc.why) {
		t.Errorf("why of %s\n got  %s %+v\n want %q", dc.env, st.Reason, st.Why, dc.why)
	}
}

// TestDecide has a case for each thing that Decide decides: what is done, and a
// word of why, where nothing is.
func TestDecide(t *testing.T) {
	// moved is the line after r2 arrived in dev and was verified there.
	moved := func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		return f.verified("dev")
	}
	// inQA is the line after r2 was promoted to qa.
	inQA := func() *ComponentFacts {
		f := moved()
		f.land("qa", "r2", ByPromotion, 5)
		return f
	}
	// retried is r2 that failed in QA, and that a person has verified again.
	retried := func(u verification.Unsynced, barred Known[string]) *ComponentFacts {
		f := inQA().verdict("qa", verification.Failed, "ended Error")
		t := &f.env("qa").Targets[0]
		t.Verdict.Unsynced, t.SyncBarred = &u, barred
		f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		return f
	}
	degraded := func() *ComponentFacts {
		return inQA().verdict("qa", verification.Degraded, "Deployment web is Degraded")
	}
	restorable := func() *ComponentFacts {
		return degraded().with(func(f *ComponentFacts) { f.env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}}) })
	}
	for _, c := range []decisionCase{
		{name: "first day", facts: linearFacts(), env: "qa", state: Baseline, promo: Idle},
		{name: "first day, already different", facts: linearFacts().with(func(f *ComponentFacts) {
			f.env("dev").Release = Sure(rel("r0"))
			f.env("dev").History[0].Release = id("r0")
		}), env: "qa", why: "adopt: baseline", promo: Idle},
		{name: "an arrival is verified", facts: linearFacts().with(func(f *ComponentFacts) { f.land("dev", "r2", ByPerson, 0) }), want: []string{"record 723200000000 verified in dev", "look: compose in qa"}},
		{name: "an arrival is not verified yet", facts: linearFacts().with(func(f *ComponentFacts) { f.land("dev", "r2", ByPerson, 0) }).verdict("dev", verification.Soaking, "healthy, not yet for 1m"), env: "qa", why: "dev has not verified r2: web-dev: healthy, not yet for 1m"},
		{name: "compose first", facts: moved(), want: []string{"look: compose in qa"}, env: "qa", promo: Waiting},
		{name: "composed on an older tip", facts: moved().with(func(f *ComponentFacts) { f.env("qa").Compositions[id("r2")] = Composition{Tip: "old"} }), want: []string{"look: compose in qa"}},
		{name: "open", facts: moved().composed("qa", "r2"), want: []string{"open a promotion of r2 into qa"}},
		{name: "refused", facts: moved().with(func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditRefused, Reason: "shared with web-prod"}
		}), env: "qa", why: "shared with web-prod"},
		{name: "nothing to change", facts: moved().with(func(f *ComponentFacts) { f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditEmpty} }), env: "qa", why: "would change nothing"},
		{name: "manual opening waits", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Spec.Open = pipeline.Manual }), env: "qa", why: "/liftlock promote qa opens it"},
		{name: "manual opening asked for", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Spec.Open = pipeline.Manual
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "promote", Environment: "qa", By: "ada", At: noon}}
		}), want: []string{"open a promotion of r2 into qa"}},
		{name: "diverged after it was asked for", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.land("qa", "r9", ByPerson, 0)
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "promote", Environment: "qa", Release: id("r2"), At: noon.Add(-time.Hour)}}
		}), want: []string{"answer 1: linus changed qa by hand since (qa-r9); /liftlock promote qa again takes that over"}, env: "qa", promo: Held},
		{name: "diverged after something else was asked for", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.land("qa", "r9", ByPerson, 0)
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "promote", Environment: "prod", At: noon.Add(-time.Hour)}}
		}), want: []string{"answer 1: there is nothing to promote to prod: qa was changed by hand to r9; that is not carried on"}, env: "qa", promo: Held},
		{name: "observe", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.Pipeline.Spec.Mode = pipeline.ModeDryRun }), env: "qa", why: "mode is observe; otherwise: open a promotion of r2 into qa"},
		{name: "broken pipeline file", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.PipelineErr = ".liftlock.yaml:3: bad" }), env: "qa", why: ".liftlock.yaml:3: bad"},
		{name: "unresolved targets", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.Problems = []string{"argocd/x.yaml: no such file"} }), env: "qa", why: "argocd/x.yaml"},
		{name: "environment on hold", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "qa", By: "ada", At: noon}})
		}), env: "qa", why: "environment qa is on hold by ada", promo: Held},
		{name: "on hold for a while", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "component", By: "ada", At: noon, Until: noon.Add(time.Hour)}})
		}), env: "qa", why: "component web is on hold by ada since 2026-03-02T12:00:00Z until 2026-03-02T13:00:00Z; /liftlock unhold component lifts it", promo: Held, next: time.Hour},
		{name: "a hold that is over", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "component", By: "ada", At: noon.Add(-time.Hour), Until: noon}})
		}), want: []string{"open a promotion of r2 into qa"}},
		{name: "another environment on hold", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "environment", Environment: "prod"}}) }), want: []string{"open a promotion of r2 into qa"}},
		{name: "no place", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.Limits.OpenByOthers = map[string]int{"qa": 9}
			f.Limits.QueuedAhead = map[string]int{"qa": 1}
		}), env: "qa", why: "9 of 10 pull requests are open"},
		{name: "diverged", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }), env: "qa", state: Diverged, why: "linus changed it by hand"},
		{name: "diverged, taken over", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.land("qa", "r9", ByPerson, 0)
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "promote", Environment: "qa", By: "ada", At: noon}}
		}), want: []string{"open a promotion of r2 into qa"}},
		{name: "a foreign branch", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").MarkUnmanaged("#3 by mallory") }), env: "qa", why: "#3 by mallory"},
		{name: "closed by a person", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r2"), At: noon}} }), env: "qa", promo: Closed, why: "#4 with r2 was closed by a person"},
		{name: "closed by a person, release unknown", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").PastPulls = []PastPull{{Number: 4, At: noon}} }), env: "qa", promo: Closed},
		{name: "closed by us", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r2"), Superseded: true}}
		}), want: []string{"open a promotion of r2 into qa"}},
		{name: "closed with an older release", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r0")}} }), want: []string{"open a promotion of r2 into qa"}},
		{name: "retry after a close", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r2")}}
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"forgive the closed #4", "answer 2: the closed #4 no longer counts", "open a promotion of r2 into qa"}},
		{name: "retry without a reason", facts: linearFacts().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"answer 2: there is nothing to retry in qa: nothing failed and nothing was closed"}},
		{name: "older than what is there", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.env("dev").History[0].VerifiedAt, f.env("dev").History[0].DegradedAt = noon.Add(-time.Hour), noon
			f.land("qa", "r3", ByPromotion, 6)
		}).verdict("dev", verification.Degraded, "bad").verified("qa"), env: "qa", promo: Idle},
		{name: "degraded upstream", facts: moved().verdict("dev", verification.Degraded, "bad").composed("qa", "r2"), want: []string{"record 723200000000 degraded in dev"}, env: "qa", why: "dev has not verified r2"},
		{name: "degraded upstream, by a clock that is behind", facts: moved().verdict("dev", verification.Degraded, "bad").composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("dev").History[0].VerifiedAt = f.Now.Add(time.Minute)
			f.env("dev").History[0].MarkDegraded(f.Now)
		}), env: "qa", why: "dev has not verified r2"},
		{name: "degraded two steps upstream before anybody asked", facts: linearFacts().verdict("dev", verification.Degraded, "bad").with(func(f *ComponentFacts) {
			f.env("qa").History[0].VerifiedAt = noon.Add(-time.Hour)
			f.env("prod").Release, f.env("prod").History[0].Release = Sure(rel("r0")), id("r0")
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "prod"}}
		}), want: []string{"answer 3: there is nothing to promote to prod: r1: is degraded in dev"}},
		{name: "promote with nothing to promote", facts: linearFacts().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa"}}
		}), want: []string{"record 723100000000 verified in dev", "answer 3: there is nothing to promote to qa"}},
		{name: "promote into a source", facts: linearFacts().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "dev"}}
		}), want: []string{"answer 3: dev is a source environment: releases arrive there by commits, not by promotions"}},

		{name: "merge", facts: moved().pull("qa", "r2"), want: []string{"merge #7 into qa at head"}},
		{name: "merge by hand", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), env: "qa", why: "a person merges it"},
		{name: "held pull request", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.Held = true }), env: "qa", promo: Held},
		{name: "holds unreadable", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.Holds = Unsure[[]Hold]("boom") }), env: "qa", promo: Opened},
		{name: "broken file blocks the merge", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.PipelineErr = "x" }), env: "qa", promo: Opened},
		{name: "not computed yet", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.Mergeable = "unknown" }), env: "qa", promo: Opened},
		{name: "blocked by the forge", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.Mergeable = "blocked" }), env: "qa", promo: Opened},
		{name: "upstream not well any more", facts: moved().pull("qa", "r2").verdict("dev", verification.Unclear, "ComparisonError"), env: "qa", promo: Opened},
		{name: "somebody else's head", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.MarkModified("it changes base/x") }), env: "qa", promo: Held, why: "it changes base/x"},
		{name: "retry takes the head over", facts: moved().pull("qa", "r2").composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Open.MarkModified("it changes base/x")
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"compose #7 anew for r2: taken over by /liftlock retry", "answer 2: the pull request is composed anew"}},
		{name: "already there", facts: moved().pull("qa", "r1"), want: []string{"close #7: qa already carries r1"}},
		{name: "composed anew on a conflict", facts: moved().pull("qa", "r2").composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.Stale = true }), want: []string{"compose #7 anew for r2: the files it edits changed on the tracked branch"}},
		{name: "replaced by a newer", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.land("dev", "r3", ByPerson, 0) }).verified("dev").composed("qa", "r3"), want: []string{"compose #7 anew for r3: r3 is newer"}},
		{name: "the newer waits behind an approved", facts: moved().pull("qa", "r2", "ada").with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.env("qa").Gates = []policies.Gate{{Approvals: &policies.Approvals{Count: 2}}}
		}).verified("dev").composed("qa", "r3"), env: "qa", why: "r3 is newer and waits its turn"},
		{name: "approved, but it can't soak any more", facts: approvedForProd().with(func(f *ComponentFacts) { f.env("prod").Gates = soakInQA }), want: []string{"compose #7 anew for r3: r3 is newer"}},
		{name: "approved, and it has soaked", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates = soakInQA
			f.env("qa").History[1].Soak.Longest = time.Hour
		}), want: []string{"merge #7 into prod at head"}},
		{name: "approved, and what it left is back, so that it still can soak", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates = []policies.Gate{{Soak: &policies.Soak{Environment: "dev", For: time.Hour}}}
			f.land("dev", "r2", ByPerson, 0)
		}).verified("dev"), want: []string{"look: compose in qa"}, env: "prod", promo: Opened, why: "soak"},
		{name: "approved, it can't soak any more, and that is skipped", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates, f.env("prod").Spec.Gates = soakInQA, soakInQA
			f.env("prod").Open.Skips = []Skip{{Gate: "soak", By: "ken", Reason: "the outage of today", Until: noon.Add(time.Hour)}}
		}), want: []string{"merge #7 into prod at head"}},
		{name: "approved, and it can't soak in the environment before any more", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates = []policies.Gate{{Soak: &policies.Soak{For: time.Hour}}}
		}), want: []string{"compose #7 anew for r3: r3 is newer"}},
		{name: "approved, and it has soaked in the environment before, which is enough", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates = []policies.Gate{{Soak: &policies.Soak{For: time.Hour}}}
			f.env("qa").History[1].Soak.Longest = time.Hour
		}), want: []string{"merge #7 into prod at head"}},
		{name: "approved, and it can't be told whether it has left", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates = soakInQA
			f.env("qa").Release = Unsure[Release]("line 3")
		}), env: "prod", why: "r3 is newer and waits its turn"},
		{name: "approved, and what took its place is degraded", facts: approvedForProd().verdict("qa", verification.Degraded, "bad"), want: []string{"record 723300000000 degraded in qa", "look: restore in qa", "merge #7 into prod at head"}},
		{name: "approved without a soak", facts: approvedForProd(), want: []string{"merge #7 into prod at head"}},
		{name: "changed by hand meanwhile", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }), env: "qa", promo: Held, state: Diverged},
		{name: "degraded upstream after opening", facts: moved().pull("qa", "r2").verdict("dev", verification.Degraded, "bad"), want: []string{"record 723200000000 degraded in dev", "close #7: r2 degraded in dev at 2026-03-02T12:00:00Z"}},
		{name: "upstream can't be read", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("dev").Release = Unsure[Release]("kustomization.yaml:3: alias") }), env: "qa", promo: Opened, why: "kustomization.yaml:3: alias"},
		{name: "limit of merges", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.Limits.MergesLastHour = 20
			f.Limits.OldestMerge = noon.Add(-30 * time.Minute)
		}), env: "qa", promo: Opened},
		{name: "approvals missing", facts: inQA().verified("qa").pull("prod", "r2", "ada"), env: "prod", promo: Opened},
		{name: "approved", facts: inQA().verified("qa").pull("prod", "r2", "ada", "grace"), want: []string{"merge #7 into prod at head"}},
		{name: "what landed before settles first", facts: inQA().verdict("qa", verification.Soaking, "healthy").pull("qa", "r3").with(func(f *ComponentFacts) { f.land("dev", "r3", ByPerson, 0) }).verified("dev"), env: "qa", promo: Opened},

		{name: "degraded: blame first", facts: degraded().with(func(f *ComponentFacts) { f.env("qa").Targets[0].ChangedSince = Known[[]string]{} }), want: []string{"record 723200000000 degraded in qa", "look: blame in qa"}, env: "qa", state: Degraded},
		{name: "degraded: compose the way back", facts: degraded(), want: []string{"record 723200000000 degraded in qa", "look: restore in qa"}},
		{name: "degraded: revert", facts: restorable(), want: []string{"record 723200000000 degraded in qa", "open a revert of #5 in qa"}, env: "qa", promo: Reverting},
		{name: "degraded: onDegraded hold", facts: restorable().with(func(f *ComponentFacts) { f.env("qa").Spec.OnDegraded.Action = pipeline.OnDegradedHold }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "onDegraded: hold"},
		{name: "degraded: then what is unhealthy", facts: degraded().with(func(f *ComponentFacts) { f.env("qa").Targets[0].Unhealthy = Known[[]verification.Resource]{} }), want: []string{"record 723200000000 degraded in qa", "look: culprits in qa"}, env: "qa", state: Degraded},
		{name: "degraded: was unwell before", facts: restorable().with(func(f *ComponentFacts) { f.env("qa").Targets[0].HealthyBefore = Sure(false) }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "already unwell before"},
		{name: "degraded: not known how it was", facts: restorable().with(func(f *ComponentFacts) { f.env("qa").Targets[0].HealthyBefore = Unsure[bool]("the record is lost") }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "the record is lost"},
		{name: "degraded: somebody else's change", facts: restorable().with(func(f *ComponentFacts) { f.env("qa").Targets[0].ChangedSince = Sure([]string{"abc"}) }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "abc also changed what web-qa reads"},
		{name: "degraded: bad weather elsewhere", facts: restorable().with(func(f *ComponentFacts) {
			f.ClusterIncidents = []ClusterIncident{{Cluster: "two", Target: "db", Since: noon}}
		}), want: []string{"record 723200000000 degraded in qa", "open a revert of #5 in qa"}},
		{name: "degraded: bad weather long before", facts: restorable().with(func(f *ComponentFacts) {
			f.ClusterIncidents = []ClusterIncident{{Cluster: "one", Target: "db", Since: noon.Add(-time.Hour)}}
		}), want: []string{"record 723200000000 degraded in qa", "open a revert of #5 in qa"}},
		{name: "degraded: a storm", facts: restorable().with(func(f *ComponentFacts) { f.Limits.RevertsByEnv = map[string]int{"qa": 3} }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "everything holds"},
		{name: "degraded: merged too long ago", facts: restorable().with(func(f *ComponentFacts) { f.env("qa").Landed.Value.At = noon.Add(-time.Hour) }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "longer ago than its watch"},
		{name: "degraded: the revert was closed by a person", facts: restorable().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = append([]PastPull{{Number: 9, Revert: true, Release: wording.Short(id("r2")), At: noon}}, f.env("qa").PastPulls...)
		}), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "#9 was closed by a person"},
		{name: "degraded: an earlier revert of it was merged", facts: restorable().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = append([]PastPull{{Number: 9, Revert: true, Merged: true, Release: wording.Short(id("r2")), At: noon}}, f.env("qa").PastPulls...)
		}), want: []string{"record 723200000000 degraded in qa", "open a revert of #5 in qa"}},
		{name: "degraded: can't be restored", facts: degraded().with(func(f *ComponentFacts) {
			f.env("qa").Restore = Sure(Composition{Tip: tip, State: EditRefused, Reason: "changed since"})
		}), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "changed since"},
		{name: "degraded by hand", facts: linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).verdict("qa", verification.Degraded, "bad"), env: "qa", state: Diverged},
		{name: "degraded after a revert", facts: inQA().with(func(f *ComponentFacts) { f.land("qa", "r1", ByRevert, 9) }).verdict("qa", verification.Degraded, "bad").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = append([]PastPull{{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon}}, f.env("qa").PastPulls...)
		}), want: []string{"record 723100000000 degraded in qa"}, env: "qa", why: "not brought by a promotion"},
		{name: "well after a revert", facts: linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r1", ByRevert, 9) }).verified("qa"), env: "qa", state: Verified, promo: Reverted},
		{name: "failed after a revert", facts: linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r1", ByRevert, 9) }).verdict("qa", verification.Failed, "not noticed"), env: "qa", state: Failed, promo: Idle},
		{name: "failed asks a person", facts: inQA().verdict("qa", verification.Failed, "not noticed"), env: "qa", state: Failed},
		{name: "retry verifies again", facts: inQA().verdict("qa", verification.Failed, "not noticed").with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"verify qa again", "answer 2: the verification starts again"}},
		{name: "retry asks first who may have it synced", facts: retried(verification.Unsynced{}, Known[string]{}), want: []string{"look: syncRights in qa"}},
		{name: "retry has it synced again", facts: retried(verification.Unsynced{}, Sure("")),
			want: []string{"verify qa again with another sync of web-qa", "answer 2: the verification starts again; Argo CD is asked for another sync of web-qa"}},
		{name: "retry where the rights are missing", facts: retried(verification.Unsynced{}, Sure("allow it")),
			want: []string{"verify qa again", "answer 2, and reply: the verification starts again; Argo CD doesn't try again by itself, and Liftlock can't ask for another sync of web-qa (allow it; or sync it in Argo CD)"}},
		{name: "retry where nobody knows the rights", facts: retried(verification.Unsynced{}, Unsure[string]("it is away")),
			want: []string{"verify qa again", "answer 2, and reply: the verification starts again; Argo CD doesn't try again by itself, and Liftlock can't ask for another sync of web-qa (whether Liftlock may is not known: it is away: sync it in Argo CD, or /liftlock retry once that is known)"}},
		{name: "retry where people sync", facts: retried(verification.Unsynced{Barred: "verify.sync is wait: sync it"}, Known[string]{}),
			want: []string{"verify qa again", "answer 2, and reply: the verification starts again; Argo CD doesn't try again by itself, and Liftlock can't ask for another sync of web-qa (verify.sync is wait: sync it)"}},
		{name: "revert asked for", facts: inQA().verified("qa").with(func(f *ComponentFacts) {
			f.env("qa").Restore = Sure(Composition{Tip: tip})
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", By: "ada"}}
		}), want: []string{"open a revert of #5 in qa"}, env: "prod", why: "is being reverted from qa"},
		{name: "revert asked for, nothing to take back", facts: linearFacts().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa"}}
		}), want: []string{"answer 4: what qa carries was not brought by a promotion, so there is nothing to take back"}},

		{name: "undo merges by itself", facts: degraded().openRevert("qa", "r2"), want: []string{"record 723200000000 degraded in qa", "merge #9 into qa at undo"}},
		{name: "undo waits for a person", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Spec.OnDegraded.Action = pipeline.OnDegradedRevert }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "waits for a person"},
		{name: "undo held", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "component", Reverts: true}}) }), want: []string{"record 723200000000 degraded in qa"}},
		{name: "undo while something larger is held", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "component"}, {Scope: "environment", Environment: "qa"}, {Scope: "pipeline"}})
		}), want: []string{"record 723200000000 degraded in qa", "merge #9 into qa at undo"}},
		{name: "undo of what is well again", facts: inQA().openRevert("qa", "r2"), want: []string{"record 723200000000 verified in qa"}, env: "qa", promo: Reverting},
		{name: "undo of what is gone", facts: inQA().openRevert("qa", "r8"), want: []string{"record 723200000000 verified in qa", "look: compose in prod", "close #9: qa no longer carries what it takes back"}},
		{name: "undo composed anew", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Revert.Stale = true }), want: []string{"record 723200000000 degraded in qa", "compose revert #9 anew"}},
		{name: "undo by somebody else", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Revert.MarkModified("changes x") }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "changes x"},
		{name: "reverted does not come back", facts: inQA().with(func(f *ComponentFacts) {
			f.land("qa", "r1", ByRevert, 9)
			f.env("qa").PastPulls = append([]PastPull{{Number: 9, Revert: true, Merged: true, Release: wording.Short(id("r2")), At: noon}}, f.env("qa").PastPulls...)
		}).verified("qa"), env: "qa", promo: Reverted, why: "was reverted from qa by #9"},
		{name: "reverted does not pass", facts: inQA().verified("qa").with(func(f *ComponentFacts) { f.env("qa").RevertedReleases = []string{wording.Short(id("r2"))} }), env: "prod", why: "was reverted from qa by a commit"},
		{name: "promoted again after a revert passes", facts: inQA().verified("qa").composed("prod", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = append(f.env("qa").PastPulls, PastPull{Number: 4, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(-time.Hour)})
		}), want: []string{"open a promotion of r2 into prod"}},
		{name: "promoted again after a revert passes once it is verified again", facts: inQA().verified("qa").composed("prod", "r2").with(func(f *ComponentFacts) {
			f.land("qa", "r1", ByRevert, 9)
			f.land("qa", "r2", ByPromotion, 12)
		}), want: []string{"record 723200000000 verified in qa", "open a promotion of r2 into prod"}},
		{name: "promoted again after a revert waits until it is verified again", facts: inQA().verified("qa").composed("prod", "r2").with(func(f *ComponentFacts) {
			f.land("qa", "r1", ByRevert, 9)
			f.land("qa", "r2", ByPromotion, 12)
		}).verdict("qa", verification.Progressing, "health is Progressing"), env: "prod", why: "qa has not verified r2 again since it was reverted from there"},
		{name: "what came back by itself was verified before", facts: inQA().verified("qa").composed("prod", "r2").with(func(f *ComponentFacts) {
			f.land("qa", "r3", ByPromotion, 9)
			f.land("qa", "r2", ByPromotion, 12)
		}).verdict("qa", verification.Progressing, "health is Progressing"), want: []string{"open a promotion of r2 into prod"}},
		{name: "reverted while downstream is open", facts: inQA().verified("qa").pull("prod", "r2").openRevert("qa", "r2"), want: []string{"close #7: r2 is being reverted from qa by #9"}},
		{name: "was verified, can't be told now", facts: moved().verdict("dev", verification.Unclear, "ComparisonError").composed("qa", "r2"), want: []string{"open a promotion of r2 into qa"}, env: "dev", state: Verified},
		{name: "a veto outlives another release's merge", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 6, Release: id("r7"), Merged: true, At: noon}, {Number: 4, Release: id("r2"), At: noon.Add(-time.Hour)}}
		}), env: "qa", promo: Closed, why: "#4 with r2 was closed by a person"},
		{name: "a veto behind a merge is retried", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 6, Release: id("r7"), Merged: true, At: noon}, {Number: 4, Release: id("r2"), At: noon.Add(-time.Hour)}}
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"forgive the closed #4", "answer 2: the closed #4 no longer counts", "open a promotion of r2 into qa"}},
		{name: "promote overrules an older close", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r2"), At: noon.Add(-time.Hour)}}
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon}}
		}), want: []string{"open a promotion of r2 into qa"}},
		{name: "a later close overrules promote", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r2"), At: noon}}
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon.Add(-time.Minute)}}
		}), want: []string{"answer 3: there is nothing to promote to qa: #4 with r2 was closed by a person; it stays closed until /liftlock retry or a new release"}},
		{name: "a later revert overrules promote", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Revert: true, Merged: true, Release: id("r2"), At: noon}}
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon.Add(-time.Minute)}}
		}), want: []string{"answer 3: there is nothing to promote to qa: r2 was reverted from qa by #4; /liftlock promote qa brings it back"}},
		{name: "a revert at the same time overrules promote", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Revert: true, Merged: true, Release: id("r2"), At: noon}}
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon}}
		}), want: []string{"answer 3: there is nothing to promote to qa: r2 was reverted from qa by #4; /liftlock promote qa brings it back"}},
		{name: "promote never takes an older release in", facts: moved().verdict("dev", verification.Degraded, "bad").with(func(f *ComponentFacts) {
			f.land("qa", "r2", ByPromotion, 5)
			f.env("dev").History[1].By, f.env("dev").History[1].VerifiedAt = ByPerson, noon.Add(-time.Hour)
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon}}
		}), want: []string{"record 723200000000 degraded in dev", "record 723200000000 verified in qa", "answer 3: there is nothing to promote to qa"}},
		{name: "promote while its pull request is open", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon}}
		}), want: []string{"bind 3 to 723200000000 in qa", "merge #7 into qa at head"}},
		{name: "promote asks for the newer", facts: moved().pull("qa", "r2", "ada").with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", By: "ada", At: noon}}
		}).verified("dev").composed("qa", "r3"), want: []string{"compose #7 anew for r3: ada asked for r3"}},
		{name: "promote is done when its release is in", facts: inQA().verified("qa").composed("prod", "r2").with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", Release: id("r2")}}
		}), want: []string{"answer 3: qa carries it", "open a promotion of r2 into prod"}},
		{name: "manual opening keeps its release", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.env("qa").Spec.Open, f.env("qa").Spec.Merge = pipeline.Manual, pipeline.Manual
		}).verified("dev").composed("qa", "r3"), env: "qa", why: "/liftlock promote qa brings the newer in"},
		{name: "a hold keeps its release", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "qa"}})
		}).verified("dev").composed("qa", "r3"), env: "qa", promo: Held, why: "it is on hold"},
		{name: "retry in a source environment", facts: linearFacts().with(func(f *ComponentFacts) {
			f.land("dev", "r2", ByPerson, 0)
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "dev"}}
		}).verdict("dev", verification.Failed, "not noticed"), want: []string{"verify dev again", "answer 2: the verification starts again"}},
		{name: "retry doesn't revert", facts: restorable().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"record 723200000000 degraded in qa", "verify qa again", "answer 2: the verification starts again"}},
		{name: "retry with a stranger on the branch", facts: moved().with(func(f *ComponentFacts) {
			f.env("qa").MarkUnmanaged("#3 by mallory")
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"answer 2: there is nothing to retry in qa: #3 by mallory"}},
		{name: "retry of a head of which nothing is known", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Open.HeadState, f.env("qa").Open.HeadReason, f.env("qa").Open.Release = HeadModified, "it changes base/x", ""
			f.env("qa").Open.DeclaredRelease = Known[string]{}
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"close #7: its head can't be composed anew: which release Liftlock put there can't be told", "answer 2: #7 is closed; its head can't be composed anew: which release Liftlock put there can't be told"}},
		{name: "retry composes what was ours", facts: moved().pull("qa", "r9").composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Open.HeadState, f.env("qa").Open.HeadReason, f.env("qa").Open.DeclaredRelease = HeadModified, "it carries another release", Sure(id("r2"))
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"compose #7 anew for r2: taken over by /liftlock retry", "answer 2: the pull request is composed anew"}},
		{name: "retry composes what was ours, whatever is verified of what it carries now", facts: moved().pull("qa", "r9").composed("qa", "r2").with(func(f *ComponentFacts) {
			f.env("dev").History = append(f.env("dev").History, Arrival{Release: id("r9"), Name: "r9", Commit: "older", By: ByPerson, VerifiedAt: noon.Add(-time.Hour)})
			f.env("qa").Open.HeadState, f.env("qa").Open.HeadReason, f.env("qa").Open.DeclaredRelease = HeadModified, "it carries another release", Sure(id("r2"))
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"compose #7 anew for r2: taken over by /liftlock retry", "answer 2: the pull request is composed anew"}},
		{name: "retry takes a spoilt revert back", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Revert.MarkModified("changes x")
			f.PendingCommands = []PendingCommand{{ID: 2, Verb: "retry", Environment: "qa"}}
		}), want: []string{"record 723200000000 degraded in qa", "close #9: its branch was changed by somebody else; where it is still needed it is opened anew", "answer 2: #9 is closed; where it is still needed it is opened anew"}},
		{name: "a spoilt revert of which little is known stays", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Revert.HeadState, f.env("qa").Revert.HeadReason, f.env("qa").Revert.Release = HeadModified, "changes x", wording.Short(id("r2"))
		}), want: []string{"record 723200000000 degraded in qa"}, env: "qa", promo: Reverting, why: "changes x"},
		{name: "a stranger on the revert's branch", facts: restorable().with(func(f *ComponentFacts) { f.env("qa").MarkRevertUnmanaged("#3 by mallory") }), want: []string{"record 723200000000 degraded in qa"}, env: "qa", why: "#3 by mallory"},
		{name: "undo over a person's change", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Landed.Value.By = ByPerson }), want: []string{"close #9: linus changed qa by hand since"}},
		{name: "undo of what a revert brought", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Landed.Value.By = ByRevert }), want: []string{"record 723200000000 degraded in qa", "close #9: what qa carries was not brought by a promotion"}},
		{name: "undo where nothing can be read", facts: degraded().openRevert("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Release = Unsure[Release]("gone") }), env: "qa", why: "gone"},
		{name: "nothing moves in while a revert opens", facts: restorable().pull("qa", "r3").with(func(f *ComponentFacts) { f.land("dev", "r3", ByPerson, 0) }).verified("dev"), want: []string{"record 723200000000 degraded in qa", "open a revert of #5 in qa"}, env: "qa", why: "a revert is being opened"},
		{name: "nothing merges in a storm", facts: moved().pull("qa", "r2").with(func(f *ComponentFacts) {
			f.Limits.RevertsByEnv, f.Limits.OldestRecentRevert = map[string]int{"qa": 3}, noon.Add(-time.Minute)
		}), env: "qa", why: "everything holds"},
		{name: "a revert that was asked for is done", facts: linearFacts().with(func(f *ComponentFacts) {
			f.land("qa", "r1", ByRevert, 9)
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", Release: id("r2")}}
		}).verified("qa"), want: []string{"answer 4: qa no longer carries it"}},
		{name: "a revert that was asked for and closed", facts: inQA().verified("qa").with(func(f *ComponentFacts) {
			f.env("prod").Spec.Open = pipeline.Manual
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", Release: id("r2")}}
		}), want: []string{"answer 4: its revert is no longer open"}},
		{name: "a revert that is open is asked for", facts: inQA().verified("qa").openRevert("qa", "r2").with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa"}}
		}), want: []string{"bind 4 to 723200000000 in qa"}},
		{name: "what a revert put back moves when asked", facts: inQA().with(func(f *ComponentFacts) {
			f.land("dev", "r0", ByPerson, 0)
			f.env("qa").History = f.env("qa").History[:0]
			f.land("qa", "r0", ByRevert, 9)
			f.PendingCommands = []PendingCommand{{ID: 5, Verb: "promote", Environment: "prod", At: noon}}
		}).verified("dev").verified("qa").composed("prod", "r0"), want: []string{"open a promotion of r0 into prod"}},
		{name: "observe answers commands", facts: moved().composed("qa", "r2").with(func(f *ComponentFacts) {
			f.Pipeline.Spec.Mode = pipeline.ModeDryRun
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa"}}
		}), want: []string{"answer 3: nothing was done: the pipeline's mode is observe"}},
		{name: "an unknown command is answered", facts: linearFacts().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "dance", Environment: "qa"}}
		}), want: []string{"answer 3: there is no command dance"}},
		{name: "mixed", facts: moved().with(func(f *ComponentFacts) {
			f.env("qa").Fields, f.env("qa").FieldsReason = FieldsMixed, "a has 1, b has 2"
			f.env("qa").Release = Unsure[Release]("mixed")
		}), env: "qa", state: Mixed},
		{name: "unreadable", facts: moved().with(func(f *ComponentFacts) { f.env("qa").Release = Unsure[Release]("kustomization.yaml:3: alias") }), env: "qa", state: Unreadable},
	} {
		t.Run(c.name, c.check)
	}
}

// TestWaitsForAllBefore names what is waited for where several environments must
// have verified a release.
func TestWaitsForAllBefore(t *testing.T) {
	f := linearFacts()
	f.Pipeline.Spec.Environments[1].After = nil
	f.Envs[1].Spec.After = nil
	f.Envs[2].Spec.After = []string{"dev", "qa"}
	f.land("dev", "r2", ByPerson, 0).History[0].VerifiedAt = noon.Add(-time.Minute)
	d := decideAlone(t, *f)
	st := d.Env("prod")
	if len(st.Why) != 1 || st.Why[0].Text != "dev has verified r2; it moves when all of dev, qa have" {
		t.Errorf("prod waits because of %+v", st.Why)
	}
}
