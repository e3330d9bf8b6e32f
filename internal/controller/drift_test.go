package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestDriftEvents tells once that a target was changed in the cluster, when that is first seen.
func TestDriftEvents(t *testing.T) {
	start := time.Date(2026, 3, 2, 9, 10, 0, 0, time.UTC)
	look := func(now, since time.Time) []string {
		drifted := verification.Verdict{Drift: &verification.Drift{Since: since, Total: 1, Resources: []verification.Difference{{Kind: "Deployment", Name: "web", How: verification.IsMissing}}}}
		c := &facts.ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: promotion.Unit{Repo: testRepo, Pipeline: "shop", Component: "web"}, Now: now, Envs: []promotion.Env{
			{Name: "qa", Targets: []promotion.Target{{Name: "web-qa-eu", ID: "hub/argocd/web-qa-eu"}, {Name: "web-qa-us", ID: "hub/argocd/web-qa-us", Verdict: drifted}}},
		}}}}
		var keys []string
		for _, e := range driftEvents(c) {
			if e.Kind != "drifted" || e.Environment != "qa" || e.Message != "web-qa-us was changed in the cluster: it differs from Git in 1 resource: Deployment web (missing)" ||
				!strings.Contains(string(e.Data), `"how":"missing"`) || !e.At.Equal(since) {
				t.Errorf("%+v", e)
			}
			keys = append(keys, e.IdempotencyKey)
		}
		return keys
	}
	first := look(start, start)
	if len(first) != 1 || len(look(start.Add(time.Minute), start)) != 0 {
		t.Fatalf("told as %v", first)
	}
	soon, later := start.Add(20*time.Minute), start.Add(2*time.Hour)
	if again := look(soon, soon); again[0] != first[0] {
		t.Errorf("what comes and goes is told again: %v, %v", again, first)
	}
	if again := look(later, later); again[0] == first[0] {
		t.Errorf("what begins later isn't told: %v", again)
	}
}
