package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
)

// appOfApps makes a world in which qa's Application has another one among its resources.
func appOfApps(t *testing.T) *harness {
	patientQA := strings.Replace(qa, "timeout: 4s", "timeout: 10m", 1)
	s := newHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, patientQA, prod), files: map[string]string{"parts/cache/kustomization.yaml": "images: []\n"}})
	s.must("add a part", s.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "web-qa-cache", Repo: repoName, Path: "parts/cache", DestinationNamespace: "web-qa"}))
	s.must("make it a part", s.ArgoCD.SetChildren("argocd", "web-qa", "web-qa-cache"))
	s.start()
	s.awaitJudged()
	return s
}

// TestAppOfApps verifies a target whose resources are Applications by those too.
func TestAppOfApps(t *testing.T) {
	s := appOfApps(t)
	s.must("hold the part up", s.ArgoCD.SetFault("argocd", "web-qa-cache", argoemulator.AppFault{Health: "Progressing"}))
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.awaitReason("web", "qa", "web-qa-cache: health is Progressing")
	if n := len(s.listPulls("web", "prod")); n != 0 {
		t.Fatalf("%d promotions into prod while a part isn't ready", n)
	}
	s.must("let it be", s.ArgoCD.SetFault("argocd", "web-qa-cache", argoemulator.AppFault{}))
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestAppOfAppsDegrades takes a release back that a part of it became unwell with.
func TestAppOfAppsDegrades(t *testing.T) {
	s := appOfApps(t)
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.awaitVerified("web", "qa", "1.1.0")
	s.must("break the part", s.ArgoCD.SetFault("argocd", "web-qa-cache", argoemulator.AppFault{Health: "Degraded", Message: "out of memory"}))
	s.waitFor("the revert is open", func() (bool, string) {
		_, why := s.readEnvironment("web", "qa")
		return len(s.listReverts("web", "qa")) == 1, why
	})
	if body := s.listReverts("web", "qa")[0].Body; !strings.Contains(body, "web-qa-cache on in-cluster: health is Degraded") {
		t.Errorf("the revert doesn't name the part:\n%s", body)
	}
}
