package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestReleaseThatDoesNotRun keeps a release from being verified, and later environments shut, while
// something in the cluster runs another image in its place. Argo CD calls it Synced and Healthy. It
// goes on by itself when that is removed.
func TestReleaseThatDoesNotRun(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, prod)})
	s.awaitJudged()
	s.must("override web-qa", s.ArgoCD.SetFault("argocd", "web-qa", argoemulator.AppFault{Images: []string{"registry.example/web:1.0.0"}}))
	s.editTag("linus", "web", "dev", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitPull(p.Number, "is merged", func(now *emulator.PullRequest) bool { return now.Merged })
	const reason = "registry.example/web:1.1.0 isn't among the images that run (registry.example/web:1.0.0 is)"
	s.awaitEnvironment("web", "qa", "isn't verified, and says what runs", func(e *api.EnvironmentWhy) bool {
		return e.State == promotion.Verifying && strings.Contains(e.Reason, reason)
	})
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	for _, pr := range all {
		if pr.Number > p.Number {
			t.Errorf("#%d is opened: %s", pr.Number, pr.Title)
		}
	}
	s.must("take the override away", s.ArgoCD.SetFault("argocd", "web-qa", argoemulator.AppFault{}))
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitEnvironment("web", "qa", "says what ran", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, "web-qa ran registry.example/web:1.1.0 (digest isn't reported), seen ")
	})
	s.awaitPromotion("web", "prod", "1.1.0")
}
