package promotion

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// gatedFacts is qa waiting for its open promotion's gates; all else is well.
func gatedFacts(gates ...policies.Gate) *ComponentFacts {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").pull("qa", "r2")
	e := f.env("qa")
	e.Open.DeclaredRelease, e.Gates = Sure(id("r2")), gates
	return f
}

// TestGates holds that the pipeline's gates stop the merge of a promotion, and says when they are
// evaluated again.
func TestGates(t *testing.T) {
	window := func(cron string) policies.Gate {
		return policies.Gate{Window: &policies.Window{Cron: cron, Duration: time.Hour, Timezone: "UTC"}}
	}
	freeze := func(from, to policies.Moment) policies.Gate {
		return policies.Gate{Freeze: &policies.Freeze{From: from, To: to, Timezone: "Europe/Berlin", Reason: "holidays"}}
	}
	expression := func(text policies.Expression) policies.Gate { return policies.Gate{Expression: &text} }
	expressed := func(text policies.Expression) *ComponentFacts {
		f := gatedFacts(expression(text))
		f.env("qa").Open.Review.Promotion = &policies.Promotion{Release: &policies.Release{Name: "r2", Images: []policies.Image{{Name: "web", Tag: "r2"}}}, Pull: policies.PullRequest{Number: 7}}
		return f
	}
	checked := func(state policies.CheckState) *ComponentFacts {
		f := gatedFacts(policies.Gate{Checks: &policies.Checks{Require: []string{"ci"}}})
		f.env("qa").Open.Review.Checks, f.env("qa").Open.Review.ChecksRead = []policies.Check{{Name: "ci", State: state}}, true
		return f
	}
	measured := func(values ...float64) *ComponentFacts {
		m := &policies.Metric{Prometheus: "main", Query: "errors{env={{ .environment }}}", When: "value < 1", For: 2 * time.Minute, Every: time.Minute}
		f := gatedFacts(policies.Gate{Metric: m})
		reading := policies.MetricReading{Prometheus: "main", Query: `errors{env="qa"}`, Every: time.Minute, NextAt: f.Now.Add(30 * time.Second)}
		for i, v := range values {
			reading.Samples = append(reading.Samples, policies.MetricSample{At: f.Now.Add(-time.Duration(len(values)-1-i)*time.Minute - 30*time.Second), Values: []float64{v}})
		}
		f.env("qa").Open.Review.Promotion, f.env("qa").Open.Review.Metrics = &policies.Promotion{}, []policies.MetricReading{reading}
		return f
	}
	answered := func(o policies.Outcome) *ComponentFacts {
		f := gatedFacts(policies.Gate{HTTP: &policies.HTTP{Endpoint: "board", Every: time.Minute, Timeout: time.Second, MaxAge: 10 * time.Minute}})
		f.env("qa").Open.Review.Endpoints = []policies.EndpointReading{{Endpoint: "board", Answered: true, Outcome: o, Reason: "CHG-7", At: f.Now.Add(-9 * time.Minute), NextAt: f.Now.Add(2 * time.Minute)}}
		return f
	}
	synced := func(closed bool, changes time.Duration) *ComponentFacts {
		f := gatedFacts(policies.Gate{Window: &policies.Window{ArgoCD: true}})
		f.env("qa").SyncWindows = []policies.TargetWindow{{Target: "web-qa", Project: "shop", Closed: closed, Changes: f.Now.Add(changes)}}
		return f
	}
	settled := func(drift string, change func(*verification.Verdict)) *ComponentFacts {
		f := gatedFacts(policies.Gate{Settled: &policies.Settled{Drift: drift}})
		change(&f.env("qa").Targets[0].Verdict)
		return f
	}
	drifts := func(v *verification.Verdict) {
		v.Drift = &verification.Drift{Since: noon.Add(-time.Hour), Total: 2, Resources: []verification.Difference{{Kind: "Deployment", Name: "web", How: verification.IsMissing}}}
	}
	merge := []string{"merge #7 into qa at head"}
	for name, c := range map[string]decisionCase{
		"targets as Git says":                        {facts: settled("block", func(v *verification.Verdict) { v.InSync = true }), want: merge},
		"a target that drifted":                      {facts: settled("block", drifts), why: "web-qa differs from Git in 2 resources: Deployment web (missing), 1 more, since Mon 2026-03-02 11:00 UTC; sync what differs, or put into Git what was changed"},
		"a target that drifted, which is only told":  {facts: settled("warn", drifts), want: merge, why: "1 more, since Mon 2026-03-02 11:00 UTC (drift: warn)"},
		"a target that drifted, and no gate":         {facts: gatedFacts().with(func(f *ComponentFacts) { drifts(&f.env("qa").Targets[0].Verdict) }), want: merge},
		"a target of which drift can't be told":      {facts: settled("block", func(v *verification.Verdict) { v.DriftUntold = "a sync is under way" }), why: "whether web-qa is as Git says can't be told: a sync is under way"},
		"a target that nobody looked at":             {facts: settled("block", func(*verification.Verdict) {}), why: "whether web-qa is as Git says can't be told: nobody has looked yet"},
		"another environment's drift":                {facts: settled("block", func(v *verification.Verdict) { v.InSync = true }).with(func(f *ComponentFacts) { drifts(&f.env("prod").Targets[0].Verdict) }), want: merge},
		"Argo CD's sync windows, open":               {facts: synced(false, time.Hour), want: merge, next: time.Hour},
		"Argo CD's sync windows, closed":             {facts: synced(true, time.Hour), next: time.Hour, why: "Argo CD's sync windows keep web-qa (project shop) from being synced until Mon 2026-03-02 13:00 UTC"},
		"Argo CD's sync windows, which nobody knows": {facts: gatedFacts(policies.Gate{Window: &policies.Window{ArgoCD: true}}), why: "Argo CD's sync windows can't be told"},
		"no gate":                                   {facts: gatedFacts(), want: merge},
		"a window that is open":                     {facts: gatedFacts(window("30 11 * * *")), want: merge, next: 30 * time.Minute},
		"a window that opens now":                   {facts: gatedFacts(window("0 12 * * *")), want: merge, next: time.Hour},
		"a window that closes now":                  {facts: gatedFacts(window("0 11 * * *")), next: 23 * time.Hour, why: "closed until Tue 2026-03-03 11:00 UTC"},
		"a window that opens later":                 {facts: gatedFacts(window("15 12 * * *")), next: 15 * time.Minute, why: "closed until Mon 2026-03-02 12:15 UTC"},
		"the earlier of two windows":                {facts: gatedFacts(window("15 12 * * *"), window("10 12 * * *")), next: 10 * time.Minute, why: "closed until"},
		"a freeze":                                  {facts: gatedFacts(freeze("2026-03-02", "2026-03-03")), next: 11 * time.Hour, why: "frozen until Tue 2026-03-03 00:00 CET: holidays"},
		"a freeze beats a window":                   {facts: gatedFacts(window("30 11 * * *"), freeze("2026-03-02", "2026-03-03")), next: 30 * time.Minute, why: "frozen until"},
		"a freeze to come":                          {facts: gatedFacts(freeze("2026-03-02T12:30:00Z", "2026-03-03")), want: merge, next: 30 * time.Minute},
		"a freeze that is over":                     {facts: gatedFacts(freeze("2026-03-01", "2026-03-02T12:00:00Z")), want: merge},
		"checks that passed":                        {facts: checked(policies.CheckPassed), want: merge},
		"checks that aren't done":                   {facts: checked(policies.CheckPending), why: "not done: ci"},
		"checks that failed":                        {facts: checked(policies.CheckFailed), why: "failed: ci"},
		"checks that nobody read":                   {facts: gatedFacts(policies.Gate{Checks: &policies.Checks{Require: []string{"ci"}}}), why: "the checks aren't read yet"},
		"a metric that has held":                    {facts: measured(0, 0, 0), want: merge, next: 30 * time.Second},
		"a metric that hasn't held for long enough": {facts: measured(0, 0), next: 30 * time.Second, why: "value < 1 has held since"},
		"a metric that doesn't hold":                {facts: measured(0, 0, 2), next: 30 * time.Second, why: "value < 1 doesn't hold since"},
		"a metric that nobody asked for":            {facts: gatedFacts(policies.Gate{Metric: &policies.Metric{Prometheus: "main", Query: "up", When: "value < 1", For: 2 * time.Minute, Every: time.Minute}}), why: "the Prometheus main hasn't been asked yet"},
		"an endpoint that says pass":                {facts: answered(policies.Pass), want: merge, next: time.Minute},
		"an endpoint that says wait":                {facts: answered(policies.Wait), next: 2 * time.Minute, why: "board says wait: CHG-7"},
		"an endpoint that says fail":                {facts: answered(policies.Fail), why: "board says fail: CHG-7"},
		"an endpoint that nobody asked":             {facts: gatedFacts(policies.Gate{HTTP: &policies.HTTP{Endpoint: "board", Every: time.Minute, Timeout: time.Second, MaxAge: time.Hour}}), why: "board hasn't been asked yet"},
		"retry of an endpoint that failed": {facts: answered(policies.Fail).with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "retry", Environment: "qa"}}
		}), want: []string{"have the endpoints of #7 answer anew", "answer 1: the endpoints that #7 waits for are asked again"}, why: "board says fail: CHG-7"},
		"an expression":                                  {facts: expressed(`release.images.all(i, i.tag == "r2") && upstream[0].verified && pull.number == 7`), want: merge},
		"an expression about what it is of":              {facts: expressed(`pipeline == "shop" && component == "web" && environment == "qa" && targets[0].name == "web-qa" && upstream[0].name == "dev" && now - upstream[0].verifiedAt == duration("2m")`), want: merge, next: time.Minute},
		"an expression that is false":                    {facts: expressed(`release.name != "r2"`), why: "the expression is false"},
		"an expression about time":                       {facts: expressed(`now.getHours() > 12`), next: time.Minute, why: "the expression is false"},
		"an expression that nobody read the release for": {facts: gatedFacts(expression("true")), why: "what is promoted isn't known"},
		"a gate that isn't valid":                        {facts: gatedFacts(window("@daily")), why: "the gate is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			c.env, c.promo = "qa", Opened
			c.check(t)
		})
	}
}

// TestFreezeSpeaksFirst holds that of several gates that wait the freeze is named first.
func TestFreezeSpeaksFirst(t *testing.T) {
	f := gatedFacts(policies.Gate{Approvals: &policies.Approvals{Count: 1}}, policies.Gate{Window: &policies.Window{Cron: "0 13 * * *", Duration: time.Hour, Timezone: "UTC"}},
		policies.Gate{Freeze: &policies.Freeze{From: "2026-03-02", To: "2026-03-03", Timezone: "UTC"}})
	var got []string
	d := decideAlone(t, *f)
	for _, g := range d.Env("qa").Gates {
		got = append(got, string(g.Gate))
	}
	freeze := policies.Gate{Freeze: &policies.Freeze{}}
	soak := policies.Gate{Soak: &policies.Soak{}}
	for _, gates := range [][]policies.Gate{{freeze, soak, freeze}, {soak, freeze, freeze}, {freeze, freeze, soak}} {
		if o := orderGates(gates); o[0].Freeze == nil || o[1].Freeze == nil || o[2].Soak == nil {
			t.Errorf("of %d gates with two freezes: %+v", len(gates), o)
		}
	}
	if want := []string{"freeze", "approvals", "window"}; !slices.Equal(got, want) {
		t.Errorf("the gates are %q, want %q", got, want)
	}
}

// TestMergeabilityIsReadLast holds that whether the forge would merge it is read once nothing else
// waits: each read is a call.
func TestMergeabilityIsReadLast(t *testing.T) {
	for name, c := range map[string]struct {
		gates []policies.Gate
		held  bool
		want  []string
	}{
		"nothing waits":    {nil, false, []string{"look: mergeability in qa"}},
		"a gate waits":     {[]policies.Gate{{Approvals: &policies.Approvals{Count: 1}}}, false, nil},
		"a person's label": {nil, true, nil},
	} {
		f := gatedFacts(c.gates...)
		f.env("qa").Open.MergeUnread, f.env("qa").Open.Held = true, c.held
		if got := describeAll(decideAlone(t, *f).Actions); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestGatesDontStopReverts holds that no gate of the pipeline is asked about a revert.
func TestGatesDontStopReverts(t *testing.T) {
	f := linearFacts()
	e := f.land("qa", "r2", ByPromotion, 5)
	e.Gates = []policies.Gate{{Settled: &policies.Settled{Drift: "block"}}, {Freeze: &policies.Freeze{From: "2026-03-01", To: "2026-03-09", Timezone: "UTC"}}, {Window: &policies.Window{Cron: "0 13 * * *", Duration: time.Hour, Timezone: "UTC"}}}
	f.verified("qa").openRevert("qa", "r2").verdict("qa", verification.Degraded, "it crashes")
	e.Targets[0].Verdict.Drift = &verification.Drift{Since: noon, Total: 1}
	decisionCase{facts: f, want: []string{"record 723200000000 degraded in qa", "merge #9 into qa at undo"}, env: "qa"}.check(t)
}

// TestNoTargetIsOneReason waits for a target, and not also for what none would tell of.
func TestNoTargetIsOneReason(t *testing.T) {
	f := arrivedFacts()
	f.land("qa", "r0", ByPromotion, 4).Targets = nil
	f.pull("qa", "r2")
	var waits []string
	d := decideAlone(t, *f)
	for _, g := range d.Env("qa").Gates {
		if g.Outcome != policies.Pass {
			waits = append(waits, string(g.Gate))
		}
	}
	if !slices.Equal(waits, []string{"targets"}) {
		t.Errorf("it waits for %q", waits)
	}
}

// TestGatesKnowHowLongEachWasHealthy holds that what a gate is told of an environment before is
// that one's own.
func TestGatesKnowHowLongEachWasHealthy(t *testing.T) {
	f := arrivedFacts()
	f.land("qa", "r2", ByPromotion, 5)
	f.verified("qa").pull("prod", "r2").env("prod").Open.Review.Promotion = &policies.Promotion{}
	j := &evaluator{facts: f, spec: &f.Pipeline.Spec}
	e := f.env("prod")
	known := j.describePromotion(e, e.Open, []policies.Soaked{
		{Environment: "qa", Direct: true, Running: 20 * time.Minute, Longest: 5 * time.Minute},
		{Environment: "dev", Running: time.Minute, Longest: time.Hour},
	})
	got := map[string]time.Duration{}
	for _, u := range known.Upstream {
		got[u.Name] = u.HealthyFor
	}
	if diff := cmp.Diff(map[string]time.Duration{"qa": 20 * time.Minute, "dev": time.Hour}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
