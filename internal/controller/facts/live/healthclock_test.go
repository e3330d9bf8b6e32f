package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestHealthClock remembers since when an Application is unhealthy, for as long as it is. That
// holds also when its health only changes from bad to worse, and the time is never later than Argo
// CD says.
func TestHealthClock(t *testing.T) {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	now := start
	h := NewHealthClock(func() time.Time { return now })
	app := func(name, health string, since time.Time) verification.App {
		return verification.App{ArgoCD: "hub", Namespace: "argocd", Name: name, Health: health, HealthSince: since}
	}
	for i, step := range []struct {
		app     verification.App
		deleted bool
		want    string // name and minutes since the start
	}{
		{app("web", "Healthy", time.Time{}), false, ""},
		{app("web", "Degraded", time.Time{}), false, "web 1"},
		{app("web", "Missing", time.Time{}), false, "web 1"},
		{app("api", "Degraded", start.Add(-5*time.Minute)), false, "api -5, web 1"},
		{app("db", "Degraded", start.Add(time.Hour)), false, "api -5, db 4, web 1"},
		{app("web", "Progressing", time.Time{}), false, "api -5, db 4, web 1 to 5"},
		{app("web", "Degraded", time.Time{}), false, "api -5, db 4, web 6"},
		{app("api", "Degraded", start), true, "db 4, web 6"},
		{app("web", "Healthy", time.Time{}), false, "db 4, web 6 to 8"},
		{app("web", "Healthy", time.Time{}), false, "db 4, web 6 to 8"},
		{app("web", "Degraded", start.Add(-3*time.Hour)), false, "db 4, web 9"}, // it was seen well since
		{app("db", "Healthy", start), false, "db 4 to 11, web 9"},
		{app("db", "Healthy", start), true, "web 9"},
		{app("db", "Degraded", start.Add(2*time.Minute)), false, "db 2, web 9"}, // another one by its name
	} {
		now = start.Add(time.Duration(i) * time.Minute)
		h.RecordApp(step.app, step.deleted)
		var got []string
		for key, s := range h.unhealthy() {
			text := fmt.Sprintf("%s %.0f", key.name, s.since.Sub(start).Minutes())
			if !s.until.IsZero() {
				text += fmt.Sprintf(" to %.0f", s.until.Sub(start).Minutes())
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != step.want {
			t.Errorf("step %d: got %q, want %q", i, text, step.want)
		}
	}
}

// TestClusterIncidents lists what is unhealthy of others, with whom it belongs to where
// the pipeline knows it.
func TestClusterIncidents(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	degraded := func(name, cluster string) *verification.App {
		return &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: name, Health: "Degraded", Destination: verification.Destination{Name: cluster}}
	}
	apps := map[string]*verification.App{}
	health := NewHealthClock(func() time.Time { return now })
	for _, a := range []*verification.App{degraded("web-dev", "c1"), degraded("api-dev", "c1"), degraded("zoo", "c2"), degraded("gone", "c1"), degraded("mended", "c1")} {
		apps["argocd/"+a.Name] = a
		health.RecordApp(*a, false)
	}
	delete(apps, "argocd/gone") // the watch will tell
	apps["argocd/mended"] = &verification.App{Name: "mended", Health: "Healthy"}
	health.RecordApp(verification.App{ArgoCD: "removed", Namespace: "argocd", Name: "x", Health: "Degraded"}, false)
	target := func(component string) appset.Target {
		return appset.Target{Namespace: "argocd", Name: component + "-dev", Component: component, Environment: "dev"}
	}
	g := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: &knownApps{apps: apps}}}}, Health: health}
	p := &branch.ResolvedPipeline{TargetSet: &appset.TargetSet{Targets: []appset.Target{target("web"), target("api")}}}
	apps["argocd/api-dev"] = &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "api-dev", Health: "Progressing", Destination: verification.Destination{Name: "c1"}}
	health.RecordApp(*apps["argocd/api-dev"], false)
	want := []promotion.ClusterIncident{{ID: "hub/argocd/api-dev", Component: "api", Environment: "dev", Cluster: "c1", Target: "api-dev", Health: "Progressing", Since: now, Until: now},
		{ID: "hub/argocd/web-dev", Component: "web", Environment: "dev", Cluster: "c1", Target: "web-dev", Health: "Degraded", Since: now}, {ID: "hub/argocd/zoo", Cluster: "c2", Target: "zoo", Health: "Degraded", Since: now}}
	if diff := cmp.Diff(want, g.clusterIncidents(p, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnsettledOtherTargets counts as unhealthy what turned Progressing or Unknown without
// having changed itself, and says so; what was deployed or made just before doesn't count.
func TestUnsettledOtherTargets(t *testing.T) {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	now := start
	h := NewHealthClock(func() time.Time { return now })
	app := func(health string, since, synced int) verification.App {
		return verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "db", Health: health, HealthSince: start.Add(time.Duration(since) * time.Minute),
			Operation: &verification.Operation{Phase: "Succeeded", FinishedAt: start.Add(time.Duration(synced) * time.Minute)}}
	}
	for i, step := range []struct {
		app  verification.App
		want string
	}{
		{app("Healthy", -9, -9), "none"},
		{app("Progressing", 1, 1), "none"}, // its own rollout
		{app("Healthy", 2, 1), "none"},
		{app("Progressing", 3, 1), "unsettled since 3"},
		{app("Unknown", 4, 1), "unsettled since 3"},
		{app("Degraded", 5, 1), "since 3"},
		{app("Progressing", 6, 1), "since 3"},
		{app("Healthy", 7, 1), "since 3 until 7"},
		{app("Unknown", 8, 1), "unsettled since 8"},
		{app("Healthy", 9, 1), "unsettled since 8 until 9"},
	} {
		now = start.Add(time.Duration(i) * time.Minute)
		h.RecordApp(step.app, false)
		got := "none"
		for _, s := range h.unhealthy() {
			got = fmt.Sprintf("since %.0f", s.since.Sub(start).Minutes())
			if s.unsettled {
				got = "unsettled " + got
			}
			if !s.until.IsZero() {
				got += fmt.Sprintf(" until %.0f", s.until.Sub(start).Minutes())
			}
		}
		if got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

// TestManyArgoCDs tells targets of one name apart, and the cluster that each Argo CD runs
// in, however a destination names it.
func TestManyArgoCDs(t *testing.T) {
	one := &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {}}}
	two := &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {}, "edge": {}}}
	for _, c := range []struct {
		target   appset.Target
		one, two string
	}{
		{appset.Target{Server: "https://kubernetes.default.svc"}, "in-cluster", "hub/in-cluster"},
		{appset.Target{Server: "https://kubernetes.default.svc/", ArgoCD: "edge"}, "in-cluster", "edge/in-cluster"},
		{appset.Target{Cluster: "in-cluster", ArgoCD: "edge"}, "in-cluster", "edge/in-cluster"},
		{appset.Target{Cluster: "prod-eu", Server: "https://10.0.0.1", ArgoCD: "edge"}, "prod-eu", "prod-eu"},
		{appset.Target{Server: "https://10.0.0.1"}, "https://10.0.0.1", "https://10.0.0.1"},
	} {
		if a, b := one.ClusterOf(&c.target), two.ClusterOf(&c.target); a != c.one || b != c.two {
			t.Errorf("%+v is on %s, and with two Argo CDs on %s", c.target, a, b)
		}
	}
	aliased := &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{
		"hub":  {ClusterAliases: map[string]string{"in-cluster": "eu", "prod-eu": "prod", "https://10.0.0.2": "prod"}},
		"edge": {ClusterAliases: map[string]string{"https://10.0.0.1": "eu"}}, "away": {},
	}}
	for _, c := range []struct {
		target appset.Target
		want   string
	}{
		{appset.Target{Cluster: "in-cluster"}, "eu"},
		{appset.Target{Server: "https://kubernetes.default.svc/"}, "eu"},
		{appset.Target{Server: "https://10.0.0.1/", ArgoCD: "edge"}, "eu"},
		{appset.Target{Cluster: "main", Server: "https://10.0.0.1", ArgoCD: "edge"}, "eu"},
		{appset.Target{Cluster: "in-cluster", ArgoCD: "edge"}, "edge/in-cluster"},
		{appset.Target{Server: "https://10.0.0.1/", ArgoCD: "away"}, "https://10.0.0.1"},
		{appset.Target{Cluster: "prod-eu"}, "prod"},
		{appset.Target{Server: "https://10.0.0.2"}, "prod"},
		{appset.Target{Cluster: "prod-eu", ArgoCD: "away"}, "prod-eu"},
		{appset.Target{ArgoCD: "away"}, ""},
	} {
		if got := aliased.ClusterOf(&c.target); got != c.want {
			t.Errorf("%+v is on %s, want %s", c.target, got, c.want)
		}
	}
	at := &branch.ResolvedEnv{Targets: []appset.Target{{Namespace: "argocd", Name: "web-prod"}, {Namespace: "argocd", Name: "web-prod", ArgoCD: "edge"}, {Namespace: "argocd", Name: "web-test"}}}
	for i, want := range []string{"hub/argocd/web-prod", "edge/argocd/web-prod", "web-test"} {
		if got := two.TargetLabel(at, &at.Targets[i]); got != want {
			t.Errorf("a target is called %s, want %s", got, want)
		}
	}
	list := []promotion.ClusterIncident{{ID: "hub/argocd/web-prod", Cluster: "one", Target: "web-prod"}}
	if got := WithEarlier(list, []promotion.ClusterIncident{{ID: "edge/argocd/web-prod", Cluster: "one", Target: "web-prod"}}, time.Now()); len(got) != 2 {
		t.Errorf("one hides the other: %v", got)
	}
}

// TestVerificationLimits has the switches of verify in what a verdict goes by.
func TestVerificationLimits(t *testing.T) {
	var e pipeline.Environment
	e.SetDefaults()
	o, target := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub"}}, &appset.Target{Name: "web"}
	if l := o.verificationLimits(e.Verify, target); l.RequireHealthChecks || l.SuspendedFails || l.Trigger {
		t.Errorf("by default: %+v", l)
	}
	e.Verify.IgnoreMissingHealth, e.Verify.Suspended, e.Verify.Sync = false, pipeline.SuspendedFail, pipeline.SyncTrigger
	if l := o.verificationLimits(e.Verify, target); !l.RequireHealthChecks || !l.SuspendedFails || !l.Trigger {
		t.Errorf("with all switched: %+v", l)
	}
}
