package facts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// What people find Applications by stays known while their Argo CD is away.
func TestLabelsOutliveTheConnection(t *testing.T) {
	web := &verification.App{Name: "web", Labels: map[string]string{"team": "shop"}}
	a := &argoCDs{main: "hub", byName: map[string]ArgoCD{"hub": {Apps: &knownApps{apps: map[string]*verification.App{"argocd/web": web}, ready: errors.New("away")}}}}
	if got := a.labelsOf(&appset.Target{Namespace: "argocd", Name: "web"}); got["team"] != "shop" {
		t.Errorf("the labels are %v", got)
	}
	for _, none := range []appset.Target{{Namespace: "argocd", Name: "other"}, {Namespace: "argocd", Name: "web", ArgoCD: "none"}} {
		if got := a.labelsOf(&none); got != nil {
			t.Errorf("%+v has the labels %v", none, got)
		}
	}
}

// knownApps are Applications by namespace and name.
type knownApps struct {
	apps  map[string]*verification.App
	ready error
}

func (k *knownApps) Get(namespace, name string) (*verification.App, bool) {
	a, ok := k.apps[namespace+"/"+name]
	return a, ok
}

func (k *knownApps) Ready() error { return k.ready }

// TestFindApp says why a target's state can't be trusted, and takes the main Argo CD
// for targets that name none.
func TestFindApp(t *testing.T) {
	web := &verification.App{Name: "web"}
	argocds := &argoCDs{main: "hub", byName: map[string]ArgoCD{
		"hub":  {Apps: &knownApps{apps: map[string]*verification.App{"argocd/web": web}}},
		"away": {Apps: &knownApps{ready: errors.New("away is not connected")}}}}
	for name, c := range map[string]struct {
		target appset.Target
		want   *verification.App
		wrong  string
	}{
		"of the main one": {appset.Target{Namespace: "argocd", Name: "web"}, web, ""},
		"by name":         {appset.Target{Namespace: "argocd", Name: "web", ArgoCD: "hub"}, web, ""},
		"not there":       {appset.Target{Namespace: "other", Name: "web"}, nil, ""},
		"out of date":     {appset.Target{Namespace: "argocd", Name: "web", ArgoCD: "away"}, nil, "away is not connected"},
		"no such Argo CD": {appset.Target{Namespace: "argocd", Name: "web", ArgoCD: "none"}, nil, "no Argo CD named none, which web belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := argocds.findApp(&c.target)
			if got != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	if got := argocds.TargetName(&appset.Target{Namespace: "argocd", Name: "web"}); got != "hub/argocd/web" {
		t.Errorf("a target is called %s", got)
	}
}

// TestHealthClock remembers since when an Application is unhealthy for as long as it is,
// also when its health only changes from bad to worse, and never later than Argo CD says.
func TestHealthClock(t *testing.T) {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	now := start
	h := newHealthClock(func() time.Time { return now })
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
	health := newHealthClock(func() time.Time { return now })
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
	g := &argocdGatherer{argocds: &argoCDs{main: "hub", byName: map[string]ArgoCD{"hub": {Apps: &knownApps{apps: apps}}}}, health: health}
	p := &ResolvedPipeline{TargetSet: &appset.TargetSet{Targets: []appset.Target{target("web"), target("api")}}}
	apps["argocd/api-dev"] = &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "api-dev", Health: "Progressing", Destination: verification.Destination{Name: "c1"}}
	health.RecordApp(*apps["argocd/api-dev"], false)
	want := []promotion.ClusterIncident{{ID: "hub/argocd/api-dev", Component: "api", Environment: "dev", Cluster: "c1", Target: "api-dev", Health: "Progressing", Since: now, Until: now},
		{ID: "hub/argocd/web-dev", Component: "web", Environment: "dev", Cluster: "c1", Target: "web-dev", Health: "Degraded", Since: now}, {ID: "hub/argocd/zoo", Cluster: "c2", Target: "zoo", Health: "Degraded", Since: now}}
	if diff := cmp.Diff(want, g.clusterIncidents(p, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamesOfArgoCDs(t *testing.T) {
	a := &argoCDs{main: "hub"}
	var p pipeline.Pipeline
	p.Spec.Applications = []pipeline.ApplicationSource{{Live: &pipeline.LiveApplications{ArgoCD: "spoke"}}, {Live: &pipeline.LiveApplications{}}, {}}
	if got := a.NamesOf(&p); !slices.Equal(got, []string{"hub", "spoke"}) {
		t.Errorf("the pipeline's Argo CDs are %v", got)
	}
}

// TestApplicationsAreListedOnce asks again when the Argo CD's Applications have another
// version, remembers no failure, and keeps no status.
func TestApplicationsAreListedOnce(t *testing.T) {
	c := newApplicationCache(nil)
	calls := 0
	away := errors.New("away")
	listed := `[{"metadata":{"name":"web"}},[]]`
	for i, step := range []struct {
		version uint64
		err     error // of the Argo CD
		want    string
		calls   int
	}{
		{1, away, "null", 1},
		{1, nil, listed, 2},
		{1, away, listed, 2}, // it isn't asked
		{2, nil, listed, 3},
		{3, away, "null", 4},
		{2, away, listed, 4},
	} {
		objects, err := c.listOnce("owned argocd set", step.version, func() ([]json.RawMessage, error) {
			calls++
			return []json.RawMessage{json.RawMessage(`{"metadata":{"name":"web"},"status":{"sync":{}}}`), json.RawMessage(`[]`)}, step.err
		})
		text, _ := json.Marshal(objects)
		if string(text) != step.want || (err != nil) != (step.want == "null") || calls != step.calls {
			t.Errorf("step %d: %s, %v after %d calls", i, text, err, calls)
		}
	}
	if s := c.Stats(); s.Bytes == 0 || s.Entries != 1 {
		t.Errorf("it holds %d bytes in %d entries", s.Bytes, s.Entries)
	}
}

// TestUnsettledOtherTargets counts as unhealthy what turned Progressing or Unknown without
// having changed itself, and says so; what was deployed or made just before doesn't count.
func TestUnsettledOtherTargets(t *testing.T) {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	now := start
	h := newHealthClock(func() time.Time { return now })
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
	one := &argoCDs{main: "hub", byName: map[string]ArgoCD{"hub": {}}}
	two := &argoCDs{main: "hub", byName: map[string]ArgoCD{"hub": {}, "edge": {}}}
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
	aliased := &argoCDs{main: "hub", byName: map[string]ArgoCD{
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
	at := &ResolvedEnv{Targets: []appset.Target{{Namespace: "argocd", Name: "web-prod"}, {Namespace: "argocd", Name: "web-prod", ArgoCD: "edge"}, {Namespace: "argocd", Name: "web-test"}}}
	for i, want := range []string{"hub/argocd/web-prod", "edge/argocd/web-prod", "web-test"} {
		if got := two.TargetLabel(at, &at.Targets[i]); got != want {
			t.Errorf("a target is called %s, want %s", got, want)
		}
	}
	list := []promotion.ClusterIncident{{ID: "hub/argocd/web-prod", Cluster: "one", Target: "web-prod"}}
	if got := withEarlier(list, []promotion.ClusterIncident{{ID: "edge/argocd/web-prod", Cluster: "one", Target: "web-prod"}}, time.Now()); len(got) != 2 {
		t.Errorf("one hides the other: %v", got)
	}
}

// TestVerificationLimits has the switches of verify in what a verdict goes by.
func TestVerificationLimits(t *testing.T) {
	var e pipeline.Environment
	e.SetDefaults()
	o, target := &argocdGatherer{argocds: &argoCDs{main: "hub"}}, &appset.Target{Name: "web"}
	if l := o.verificationLimits(e.Verify, target); l.RequireHealthChecks || l.SuspendedFails || l.Trigger {
		t.Errorf("by default: %+v", l)
	}
	e.Verify.IgnoreMissingHealth, e.Verify.Suspended, e.Verify.Sync = false, pipeline.SuspendedFail, pipeline.SyncTrigger
	if l := o.verificationLimits(e.Verify, target); !l.RequireHealthChecks || !l.SuspendedFails || !l.Trigger {
		t.Errorf("with all switched: %+v", l)
	}
}
