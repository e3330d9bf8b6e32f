package verification

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDrift tells a change in the cluster from what is about to be synced.
func TestDrift(t *testing.T) {
	lost := []Difference{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", How: IsDifferent}}
	drift := func(s *scenario) {
		s.app.SyncStatus, s.app.Differences, s.app.Differing = "OutOfSync", lost, 1
	}
	cases := []struct {
		name  string
		run   func(s *scenario)
		since time.Duration // of the drift; below 0: there is none
		why   string        // it can't be told; empty: it can
	}{
		{"changed in the cluster", func(s *scenario) {
			s.verify()
			drift(s)
			s.judgeAt(2*minute, Verified, "verified and healthy; it differs from Git in 1 resource: Deployment web (different)")
			s.judgeAt(3*minute, Verified, "")
		}, 2 * minute, ""},
		{"and healed", func(s *scenario) {
			s.verify()
			drift(s)
			s.judgeAt(2*minute, Verified, "")
			s.app.SyncStatus, s.app.Differences, s.app.Differing = "Synced", nil, 0
			s.judgeAt(3*minute, Verified, "synced and healthy")
		}, -1, ""},
		{"what Argo CD heals", func(s *scenario) {
			s.verify()
			s.app.SelfHeal = true
			drift(s)
			s.judgeAt(2*minute, Verified, "Argo CD is to heal it")
		}, 2 * minute, ""},
		{"while it is being synced", func(s *scenario) {
			s.verify()
			drift(s)
			s.operate("Running", "")
			s.judgeAt(2*minute, Verified, "synced and healthy")
		}, -1, "a sync is under way"},
		{"while a sync of it was asked for", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.Pending = true
			s.judgeAt(2*minute, Verified, "synced and healthy")
		}, -1, "a sync is under way"},
		{"while it is being deleted", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.Deleting = true
			s.judgeAt(2*minute, Verified, "being deleted")
		}, -1, "the Application is being deleted"},
		{"while it isn't said whether it is synced", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.SyncStatus = ""
			s.judgeAt(2*minute, Verified, "synced and healthy")
		}, -1, "Argo CD has not said yet whether it is synced"},
		{"before Argo CD has reported a revision", func(s *scenario) {
			drift(s)
			s.rel, s.app.Revisions = nil, nil
			s.judgeAt(0, Arriving, "")
		}, -1, "it waits to be synced with what Git says by now"},
		{"a newer commit that waits to be synced", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.Revisions = []string{commitY}
			s.judgeAt(2*minute, Verified, "synced and healthy")
		}, -1, "it waits to be synced with what Git says by now"},
		{"a newer specification", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.Sources = []Source{{Path: "other"}}
			s.judgeAt(2*minute, Verified, "synced and healthy")
		}, -1, "it waits to be synced with what Git says by now"},
		{"not compared with the newest specification", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.ComparedToSpec = false
			s.judgeAt(2*minute, Verified, "")
		}, -1, "Argo CD has not compared with the Application's present spec yet"},
		{"Argo CD can't tell", func(s *scenario) {
			s.verify()
			drift(s)
			s.judgeAt(2*minute, Verified, "differs")
			s.e.Unreachable = "timeout"
			s.judgeAt(3*minute, Verified, "can't be asked")
		}, -1, "Argo CD can't be asked: timeout"},
		{"before Liftlock looked, by the Application's own history", func(s *scenario) {
			s.notice()
			drift(s)
			s.app.Deployed = []Deployment{{Revisions: []string{commitX}, At: cluster, OfSpec: true}}
			s.judgeAt(minute, Syncing, "")
		}, minute, ""},
		{"deployed a moment ago, not compared since", func(s *scenario) {
			s.notice()
			drift(s)
			s.app.Deployed = []Deployment{{Revisions: []string{commitX}, At: s.app.ReconciledAt, OfSpec: true}}
			s.judgeAt(minute, Syncing, "")
		}, -1, "it waits to be synced with what Git says by now"},
		{"deployed from another revision", func(s *scenario) {
			s.notice()
			drift(s)
			s.app.Deployed = []Deployment{{Revisions: []string{commitW}, At: cluster, OfSpec: true}}
			s.judgeAt(minute, Syncing, "")
		}, -1, "it waits to be synced with what Git says by now"},
		{"deployed from other sources", func(s *scenario) {
			s.notice()
			drift(s)
			s.app.Deployed = []Deployment{{Revisions: []string{commitX}, At: cluster}}
			s.judgeAt(minute, Syncing, "")
		}, -1, "it waits to be synced with what Git says by now"},
		{"a newer commit whose sync failed", func(s *scenario) {
			s.verify()
			drift(s)
			s.app.Revisions = []string{commitY}
			s.operate("Failed", "denied")
			s.judgeAt(2*minute, Verified, "")
		}, -1, "it waits to be synced with what Git says by now, and its last sync ended Failed"},
		{"there is no such Application", func(s *scenario) {
			s.app = nil
			s.judgeAt(0, Absent, "")
		}, -1, "no such Application exists yet"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScenario(t)
			c.run(s)
			switch d := s.v.Drift; {
			case d == nil && c.since >= 0:
				t.Error("no drift")
			case d != nil && (c.since < 0 || !d.Since.Equal(start.Add(c.since)) || d.Total != 1 || len(d.Resources) != 1):
				t.Errorf("drift %+v", d)
			}
			if s.v.DriftUntold != c.why || s.v.InSync != (c.since < 0 && c.why == "") {
				t.Errorf("in sync: %t, it can't be told: %q, want %q", s.v.InSync, s.v.DriftUntold, c.why)
			}
		})
	}
}

// TestDriftAutoSync says whether the sync of a newer commit needs a person.
func TestDriftAutoSync(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scenario)
		want   bool
	}{
		"by hand":             {func(s *scenario) { s.app.AutoSync = false }, false},
		"automated":           {func(s *scenario) { s.app.AutoSync = true }, true},
		"asked for":           {func(s *scenario) { s.app.AutoSync, s.e.Limits.Trigger = false, true }, true},
		"not marked":          {func(s *scenario) { s.app.AutoSync, s.e.Limits.Trigger, s.e.Unmarked = false, true, "shop" }, false},
		"by its set":          {func(s *scenario) { s.app.AutoSync, s.app.SetStep.Status = false, "Healthy" }, true},
		"left out by its set": {func(s *scenario) { s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Healthy", Step: "-1"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.verify()
			s.app.SyncStatus, s.app.Differing = "OutOfSync", 1
			c.change(s)
			if s.judgeAt(2*minute, Verified, "differs"); s.v.Drift == nil || s.v.Drift.AutoSync != c.want {
				t.Errorf("drift %+v", s.v.Drift)
			}
		})
	}
}

// TestWithAbsent tells what is missing also where it needs no health.
func TestWithAbsent(t *testing.T) {
	web, notes := Difference{Group: "apps", Kind: "Deployment", Name: "web", How: IsOutOfSync}, Difference{Kind: "ConfigMap", Name: "notes", How: IsOutOfSync}
	app := &App{Differences: []Difference{web, notes}, Differing: 2}
	full := app.WithAbsent([]Resource{{Group: "apps", Kind: "Deployment", Name: "web", Health: degradedHealth}, {Kind: "ConfigMap", Name: "notes", Health: missing}})
	notes.How = IsMissing
	if diff := cmp.Diff(&App{Differences: []Difference{notes, web}, Differing: 2}, full); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if app.Differences[0].How != IsOutOfSync || app.WithAbsent([]Resource{{Kind: "Pod", Name: "web", Health: degradedHealth}}) != nil {
		t.Errorf("it changed %+v", app.Differences)
	}
}

func TestDescribeDrift(t *testing.T) {
	many := make([]Difference, 5)
	for i := range many {
		many[i] = Difference{Kind: "Pod", Name: string(rune('a' + i)), How: IsMissing}
	}
	for want, d := range map[string]Drift{
		"differs from Git":                        {Total: 0},
		"differs from Git; Argo CD is to heal it": {Total: 5, SelfHeal: true}, // without saying which
		"differs from Git in 2 resources: Pod a (missing), Pod b (missing); Argo CD is to heal it":     {Resources: many[:2], Total: 2, SelfHeal: true},
		"differs from Git in 70 resources: Pod a (missing), Pod b (missing), Pod c (missing), 67 more": {Resources: many, Total: 70},
	} {
		if got := d.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestIsOverwritten tells whether what was changed by hand is gone with the next sync.
func TestIsOverwritten(t *testing.T) {
	extra, other := Difference{Kind: "Pod", Name: "a", How: IsExtra}, Difference{Kind: "Pod", Name: "b", How: IsDifferent}
	for name, c := range map[string]struct {
		drift Drift
		want  bool
	}{
		"a change":                                {Drift{AutoSync: true, Resources: []Difference{other}, Total: 1}, true},
		"a change beside what is too many":        {Drift{AutoSync: true, Resources: []Difference{extra, other}, Total: 2}, true},
		"what is too many isn't overwritten":      {Drift{AutoSync: true, Resources: []Difference{extra}, Total: 1}, false},
		"of others nobody knows":                  {Drift{AutoSync: true, Resources: []Difference{extra}, Total: 2}, true},
		"nobody says which":                       {Drift{AutoSync: true}, true},
		"a change, where somebody asks for syncs": {Drift{Resources: []Difference{other}, Total: 1}, false},
	} {
		if got := c.drift.IsOverwritten(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUncheckedIsUnknown where the Application keeps health elsewhere, until a tree was read.
func TestUncheckedIsUnknown(t *testing.T) {
	s := newScenario(t)
	s.sync()
	for _, c := range []struct{ inTree, known, want bool }{{false, false, false}, {true, false, true}, {true, true, false}} {
		s.app.HealthInTree, s.app.UncheckedKnown = c.inTree, c.known
		if v := s.judgeAt(0, Refreshing, ""); v.UncheckedUnknown != c.want {
			t.Errorf("%+v: %t", c, v.UncheckedUnknown)
		}
	}
}

// TestUncheckedIsPassedOn says of every state what of the target nobody can tell.
func TestUncheckedIsPassedOn(t *testing.T) {
	want := Unchecked{Total: 1, Kinds: []string{"Kafka"}}
	s := newScenario(t)
	s.app.Unchecked = want
	for _, e := range []Expect{s.e, {Commit: s.e.Commit, Unreachable: "timeout"}} {
		if v, _ := Judge(e, s.app, []Relation{Holds}, Memory{}, s.now); v.Unchecked.Total != want.Total || !slices.Equal(v.Unchecked.Kinds, want.Kinds) {
			t.Errorf("%s: %+v", v.State, v.Unchecked)
		}
	}
	if v, _ := Judge(s.e, nil, nil, Memory{}, s.now); v.Unchecked.Total != 0 {
		t.Errorf("of no Application: %+v", v.Unchecked)
	}
}

// TestHealthChecksByTheTree goes by what the resource tree says where the Application doesn't,
// and waits while that can't be read.
func TestHealthChecksByTheTree(t *testing.T) {
	s := newScenario(t)
	s.e.Limits.RequireHealthChecks = true
	s.app.HealthInTree = true
	s.deploy(time.Second, "Healthy", Soaking)
	s.app = s.app.WithUnchecked(Unchecked{}, errors.New("502"))
	s.judgeAt(61*time.Second, Unclear, "healthy, but which resources have no health check can't be told: 502")
	s.app.UncheckedError = ""
	s.app = s.app.WithUnchecked(Unchecked{Total: 1, Kinds: []string{"Kafka"}}, nil)
	s.judgeAt(3*time.Minute, Failed, "Argo CD has no health check for 1 resource (Kafka)")
	s.app = s.app.WithUnchecked(Unchecked{}, nil)
	s.judgeAt(4*time.Minute, Verified, "")

	s = newScenario(t) // where nobody wants health checks it doesn't matter
	s.app = s.app.WithUnchecked(Unchecked{}, errors.New("502"))
	s.verify()
}

// TestMissingHealthChecks verifies what Argo CD can't tell the health of, but not where the
// environment asks for health checks; with them it is verified after all.
func TestMissingHealthChecks(t *testing.T) {
	for name, c := range map[string]struct {
		lacks func(*App)
		why   string
	}{
		"two kinds have none": {func(a *App) { a.Unchecked = Unchecked{Total: 3, Kinds: []string{"Kafka", "Topic"}} }, "Argo CD has no health check for 3 resources (Kafka, Topic); add one to argocd-cm (verify.ignoreMissingHealth: false)"},
		"nobody knows":        {func(a *App) { a.HealthInTree = true }, "set controller.resource.health.persist"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			c.lacks(s.app)
			s.verify()

			s = newScenario(t)
			s.e.Limits.RequireHealthChecks = true
			c.lacks(s.app)
			s.deploy(time.Second, "Healthy", Soaking)
			if v := s.judgeAt(61*time.Second, Failed, c.why); !v.Next.IsZero() || !s.mem.VerifiedAt.IsZero() {
				t.Errorf("it changes by itself: %+v", v)
			}
			s.app.Unchecked, s.app.HealthInTree = Unchecked{}, false
			s.judgeAt(2*time.Minute, Verified, "")
			c.lacks(s.app)
			s.judgeAt(3*time.Minute, Verified, "")
		})
	}
}
