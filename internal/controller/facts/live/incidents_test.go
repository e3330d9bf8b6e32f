package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestIncidentsOutliveTheirProcess holds that what an evaluation saw unhealthy is known to
// the next one, also to another process's after it is over, and not for ever.
func TestIncidentsOutliveTheirProcess(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	incident := func(target string, since, until time.Time) promotion.ClusterIncident {
		return promotion.ClusterIncident{Cluster: "one", Target: target, Since: since, Until: until}
	}
	got := WithEarlier([]promotion.ClusterIncident{incident("still", at(-5), time.Time{})}, []promotion.ClusterIncident{
		incident("still", at(-5), time.Time{}), incident("over", at(-5), time.Time{}), incident("was over", at(-9), at(-3)), incident("long ago", at(-90), at(-31)),
	}, now)
	want := []promotion.ClusterIncident{incident("still", at(-5), time.Time{}), incident("over", at(-5), now), incident("was over", at(-9), at(-3))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unsettled := incident("going on", at(-1), time.Time{})
	unsettled.Unsettled = true
	got = WithEarlier([]promotion.ClusterIncident{unsettled}, []promotion.ClusterIncident{incident("going on", at(-4), time.Time{})}, now)
	if diff := cmp.Diff([]promotion.ClusterIncident{incident("going on", at(-4), time.Time{})}, got); diff != "" {
		t.Errorf("what goes on is as bad as it was (-want +got):\n%s", diff)
	}
	got = WithEarlier([]promotion.ClusterIncident{unsettled}, []promotion.ClusterIncident{incident("going on", at(-9), at(-4))}, now)
	if diff := cmp.Diff([]promotion.ClusterIncident{unsettled, incident("going on", at(-9), at(-4))}, got); diff != "" {
		t.Errorf("what was over was over (-want +got):\n%s", diff)
	}
	c := &branch.ComponentBasis{Basis: &branch.Basis{Pipeline: &branch.ResolvedPipeline{TargetSet: &appset.TargetSet{}}},
		Facts: promotion.ComponentFacts{Envs: []promotion.Env{{Targets: []promotion.Target{{Name: "web-qa"}}}}}}
	g := &Gatherer{} // while all is well nothing is asked
	if list, err := g.GatherIncidents(t.Context(), c, nil); err != nil || list != nil {
		t.Errorf("while all is well: %v, %v", list, err)
	}
	app := &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "db", Health: "Degraded", Destination: verification.Destination{Name: "one"}}
	health := NewHealthClock(func() time.Time { return now })
	health.RecordApp(*app, false)
	g = &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: &knownApps{apps: map[string]*verification.App{"argocd/db": app}}}}}, Health: health}
	c.Facts.Envs[0].Targets[0].Unhealthy = promotion.Sure([]verification.Resource{{Kind: "Deployment", Name: "web", Health: "Degraded"}})
	kept, err := g.GatherIncidents(t.Context(), c, nil)
	if diff := cmp.Diff([]promotion.ClusterIncident{{ID: "hub/argocd/db", Cluster: "one", Target: "db", Health: "Degraded", Since: now}}, kept); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
