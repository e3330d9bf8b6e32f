package backtest

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/policies"
)

// TestItself holds that the plainest record replays to itself.
func TestItself(t *testing.T) {
	s := scenario{rules: threeEnvironments(nil), delays: usualDelays, until: noon.Add(72 * time.Hour), components: []scenarioComponent{
		{name: "web", releases: []scenarioRelease{oneRelease("r1", noon), oneRelease("r2", noon.Add(24*time.Hour))}}}}
	report := replaysToItself(t, s.record(t))
	if report.Counts[ResultSame] != 4 || report.Before.Merges != 4 || report.After.Merges != 4 {
		t.Errorf("%+v", report)
	}
}

// TestLongerSoak holds that a longer soak stops a planted degradation, exactly that, and delays the
// others.
func TestLongerSoak(t *testing.T) {
	bad := oneRelease("bad", noon.Add(24*time.Hour))
	bad.degraded = map[string]time.Duration{"qa": 3 * time.Hour}
	s := scenario{rules: threeEnvironments(nil), delays: usualDelays, until: noon.Add(96 * time.Hour), components: []scenarioComponent{
		{name: "web", releases: []scenarioRelease{oneRelease("good", noon), bad, oneRelease("fix", noon.Add(48*time.Hour))}}}}
	record := s.record(t)
	replaysToItself(t, record)
	report := mustRun(t, record, threeEnvironments(func(p *pipeline.Pipeline) {
		p.Spec.Environments[2].Gates = []policies.Gate{{Soak: &policies.Soak{For: 6 * time.Hour}}}
	}))
	if len(report.Stopped) != 1 || report.Stopped[0].Name != "bad" || report.Stopped[0].Environment != "prod" || report.Stopped[0].DegradedIn != "qa" {
		t.Errorf("stopped: %+v", report.Stopped)
	}
	want := `web prod good later by 5h59m57s: soak 20m46s
web prod bad never: bad degraded in qa at 2026-03-03T15 24h20m46s
web prod fix later by 5h59m57s: soak 48h20m46s`
	if got := describe(report); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// prodWith changes the last environment.
func prodWith(change func(e *pipeline.Environment)) func(*pipeline.Pipeline) {
	return func(p *pipeline.Pipeline) { change(&p.Spec.Environments[2]) }
}

func approvals(count int) func(*pipeline.Environment) {
	return func(e *pipeline.Environment) {
		e.Gates = append(e.Gates, policies.Gate{Approvals: &policies.Approvals{Count: count}})
	}
}

// TestChangedRules holds what each kind of change makes of what happened, after the record has replayed
// to itself.
func TestChangedRules(t *testing.T) {
	approved := func(r scenarioRelease, at ...time.Time) scenarioRelease {
		r.approved = map[string][]time.Time{"prod": at}
		return r
	}
	degraded := oneRelease("bad", noon)
	degraded.degraded = map[string]time.Duration{"prod": time.Hour}
	reverts := prodWith(func(e *pipeline.Environment) {
		e.OnDegraded = pipeline.OnDegraded{Action: pipeline.OnDegradedRevertAndMerge}
	})
	byHand := prodWith(func(e *pipeline.Environment) { e.Merge = pipeline.Manual })
	hold := promotion.Hold{Scope: "environment", Environment: "prod", By: "ada", At: noon.Add(5 * time.Minute), Until: noon.Add(2 * time.Hour)}
	for name, c := range map[string]struct {
		rules, changed func(*pipeline.Pipeline)
		component      scenarioComponent
		want           string
	}{
		"a window moves a merge": {
			changed: prodWith(func(e *pipeline.Environment) {
				e.Gates = []policies.Gate{{Window: &policies.Window{Cron: "0 14 * * *", Duration: 2 * time.Hour, Timezone: "UTC"}}}
			}),
			component: scenarioComponent{releases: []scenarioRelease{oneRelease("r1", noon)}},
			want:      "web prod r1 later by 1h39m34s: window 20m46s"},
		"two approvals where one was needed": {
			rules: prodWith(approvals(1)), changed: prodWith(approvals(2)),
			component: scenarioComponent{releases: []scenarioRelease{
				approved(oneRelease("r1", noon), noon.Add(time.Hour), noon.Add(3*time.Hour)), approved(oneRelease("r2", noon.Add(24*time.Hour)), noon.Add(25*time.Hour))}},
			want: "web prod r1 pending: approvals 1h0m20s\nweb prod r2 never: approvals 25h0m20s"},
		"no approval where one was needed": {
			rules:     prodWith(approvals(1)),
			component: scenarioComponent{releases: []scenarioRelease{approved(oneRelease("r1", noon), noon.Add(time.Hour))}},
			want:      "web prod r1 earlier by 39m34s: approvals 1h0m20s"},
		"a hold that a merge no longer meets": {
			rules:     prodWith(func(e *pipeline.Environment) { e.Gates = []policies.Gate{{Soak: &policies.Soak{For: time.Hour}}} }),
			component: scenarioComponent{holds: []promotion.Hold{hold}, releases: []scenarioRelease{oneRelease("r1", noon)}}},
		"a veto of what would have been merged before": {
			rules: prodWith(approvals(1)),
			component: scenarioComponent{releases: []scenarioRelease{oneRelease("r1", noon)},
				vetoes: []scenarioVeto{{"prod", "r1", noon.Add(time.Hour)}}},
			want: "web prod r1 new: a person closed it -2562047h47m16.854775808s"},
		"what degraded isn't taken back": {
			rules: reverts, component: scenarioComponent{releases: []scenarioRelease{degraded, oneRelease("r2", noon.Add(24*time.Hour))}},
			want: "web prod bad its revert never 1h21m9s"},
		"people merge": {
			rules: byHand, component: scenarioComponent{releases: []scenarioRelease{oneRelease("r1", noon)}},
			want: "web prod r1 earlier by 1h0m0s: every gate passes; merge 1h20m26s"},
		"a promotion that somebody asked for": {
			rules: prodWith(func(e *pipeline.Environment) { e.Open = pipeline.Manual }),
			component: scenarioComponent{releases: []scenarioRelease{oneRelease("r1", noon)},
				commands: []promotion.PendingCommand{{ID: 7, Verb: command.Promote, Environment: "prod", By: "ada", At: noon.Add(time.Hour)}}},
			want: "web prod r1 earlier by 39m37s: open 1h0m23s"},
	} {
		t.Run(name, func(t *testing.T) {
			c.component.name = "web"
			s := scenario{rules: threeEnvironments(c.rules), delays: usualDelays, byHand: time.Hour, until: noon.Add(96 * time.Hour),
				components: []scenarioComponent{c.component}}
			record := s.record(t)
			replaysToItself(t, record)
			if got := describe(mustRun(t, record, threeEnvironments(c.changed))); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestBatch holds that components that move at once replay to themselves, and what they do alone.
func TestBatch(t *testing.T) {
	batched := func(p *pipeline.Pipeline) { p.Spec.Batch = pipeline.BatchEnvironment }
	slow := oneRelease("s1", noon)
	slow.verified["qa"] = 2 * time.Hour
	s := scenario{rules: threeEnvironments(batched), delays: usualDelays, until: noon.Add(96 * time.Hour), components: []scenarioComponent{
		{name: "api", releases: []scenarioRelease{slow}}, {name: "web", releases: []scenarioRelease{oneRelease("r1", noon)}}}}
	record := s.record(t)
	if report := replaysToItself(t, record); report.Counts[ResultSame] != 4 {
		t.Errorf("%+v", report.Counts)
	}
	if got, want := describe(mustRun(t, record, threeEnvironments(nil))), "web prod r1 earlier by 1h50m0s 2h10m46s"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLimits holds that components that wait for each other's places replay to themselves.
func TestLimits(t *testing.T) {
	limited := func(p *pipeline.Pipeline) { p.Spec.Limits.MergesPerHour = 1 }
	s := scenario{rules: threeEnvironments(nil), delays: usualDelays, until: noon.Add(96 * time.Hour)}
	for _, name := range strings.Fields("a b c d") {
		s.components = append(s.components, scenarioComponent{name: name, releases: []scenarioRelease{oneRelease("r1", noon)}})
	}
	record := s.record(t)
	replaysToItself(t, record)
	report := mustRun(t, record, threeEnvironments(limited))
	if report.Counts[ResultLater] != 7 || report.Counts[ResultSame] != 1 || report.HeldWell != 7 {
		t.Errorf("%+v", report)
	}
	s.rules = threeEnvironments(limited)
	replaysToItself(t, s.record(t))
}
