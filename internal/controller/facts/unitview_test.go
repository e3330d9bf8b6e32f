package facts

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// The console draws the pipeline and finds Argo CD's pages by what is kept with a unit.
func TestViewHasThePipelinesShape(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	lasting := promotion.Hold{Scope: "component", By: "ada", At: now.Add(-time.Hour)}
	c := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Now: now, Unit: promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"},
		Holds: promotion.Sure([]promotion.Hold{{Scope: "component", By: "grace", Until: now}, lasting}),
		Envs: []promotion.Env{
			{Name: "dev", Spec: pipeline.Environment{Name: "dev", Branch: "env/dev"}},
			{Name: "qa", Spec: pipeline.Environment{Name: "qa", After: []string{"dev"}}, Targets: []promotion.Target{{Name: "web-qa", ID: "hub/argocd/web-qa", Cluster: "eu-1"}, {Name: "plain", ID: "hub/argocd/plain"}}},
		}}, Unit: &branch.ResolvedUnit{Envs: map[string]*branch.ResolvedEnv{"qa": {Targets: []appset.Target{{Name: "web-qa", Namespace: "argocd", ApplicationSet: "shop"}}}}}}, TargetLabels: map[string]map[string]string{"hub/argocd/web-qa": {"team": "shop"}}}
	row, err := PackView(c, &promotion.ComponentDecision{})
	if err != nil {
		t.Fatal(err)
	}
	var got stored.Unit
	if err := json.Unmarshal(row.Data, &got); err != nil {
		t.Fatal(err)
	}
	want := []stored.Environment{{Name: "dev", Branch: "env/dev"}, {Name: "qa", After: []string{"dev"}, Targets: map[string]stored.Target{"web-qa": {ID: "hub/argocd/web-qa", Cluster: "eu-1", ApplicationSet: "shop", Labels: map[string]string{"team": "shop"}}, "plain": {ID: "hub/argocd/plain"}}}}
	if diff := cmp.Diff(want, got.Environments); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]promotion.Hold{lasting}, got.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	c.Facts.Holds = promotion.Sure([]promotion.Hold{})
	if lifted, err := PackView(c, &promotion.ComponentDecision{}); err != nil || lifted.Digest == row.Digest {
		t.Errorf("the same digest without the hold: %v", err)
	}
}

// The console finds components by their Applications' labels, as long as these were seen once.
func TestViewHasLabels(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
`, []string{"dev", "qa"}, "web")
	w.apps["web-qa"] = func(a *verification.App) { a.Labels = map[string]string{"team": "shop"} }
	for _, away := range []error{nil, errors.New("the Argo CD is away")} {
		w.argocdErr = away
		ev, d := w.evaluate("web", true)
		row, err := PackView(ev.Components[0], &d.Components[0])
		w.must(err)
		var view stored.Unit
		w.must(json.Unmarshal(row.Data, &view))
		if dev, qa := view.Environments[0].Targets["web-dev"].Labels, view.Environments[1].Targets["web-qa"].Labels; dev != nil || qa["team"] != "shop" {
			t.Errorf("with %v the labels are %v and %v", away, dev, qa)
		}
	}
}
