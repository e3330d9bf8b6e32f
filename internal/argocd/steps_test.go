package argocd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestRollingSyncBlocker names whom a waiting Application waits for.
func TestRollingSyncBlocker(t *testing.T) {
	s := newAppStore("hub", nil, nil, &versionCounter{onChange: func() {}})
	_, steps, err := decodeSet([]byte(`{"metadata":{"name":"shop","namespace":"argocd"},
		"spec":{"strategy":{"type":"RollingSync","rollingSync":{"steps":[{},{"maxUpdate":"50%"},{"maxUpdate":0},{"maxUpdate":"0%"}]}}},
		"status":{"applicationStatus":[
			{"application":"web-a","step":"1","status":"Healthy"},
			{"application":"web-b","step":"1","status":"Progressing","lastTransitionTime":"2025-03-04T10:02:00Z"},
			{"application":"web-c","step":"1","status":"Waiting"},
			{"application":"web-d","step":"2","status":"Waiting"},
			{"application":"web-e","step":"3","status":"Pending"},
			{"application":"web-f","step":"4","status":"Waiting"},
			{"application":"web-g","step":"-1","status":"Waiting"},
			{"application":"web-h","step":"","status":"Waiting"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	s.setSteps("argocd/shop", steps)
	for name, step := range steps {
		s.apps["argocd/"+name] = &verification.App{Namespace: "argocd", Name: name, OwnedBySet: "shop", SetStep: step, Health: "Degraded"}
	}
	b := verification.StepMember{Application: "web-b", Step: "1", Status: "Progressing", Health: "Degraded", Since: steps["web-b"].Since}
	for name, want := range map[string]*verification.StepMember{"web-a": nil, "web-b": nil, "web-c": &b, "web-d": &b, "web-e": &b, "web-g": nil, "web-h": nil} {
		app, _ := s.getApplication("argocd", name)
		if diff := cmp.Diff(want, app.SetStep.WaitsFor); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if never := name == "web-e" || name == "web-f"; app.SetStep.NoUpdate != never {
			t.Errorf("%s: NoUpdate is %v", name, app.SetStep.NoUpdate)
		}
	}
	if b.Since.IsZero() {
		t.Error("since when isn't read")
	}
	// A strategy of a form that isn't known hides nothing else.
	if _, steps, err := decodeSet([]byte(`{"metadata":{"name":"x"},"spec":{"strategy":["new"]},"status":{"applicationStatus":[{"application":"a","status":"Waiting"}]}}`)); err != nil || steps["a"].Status != "Waiting" {
		t.Errorf("%v, %v", steps, err)
	}
}
