//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// With a gate that goes by Argo CD's own sync windows nothing merges that couldn't be synced. qa's
// pull request is open as long as its window is closed, and is merged when it opens.
func TestMergeWaitsForArgoCDsSyncWindow(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": strings.Replace(byDirectory, "project: default", "project: PREFIX", 1)}
	f.environments = strings.Replace(threeSteps, "      after: [dev]\n", "      after: [dev]\n      gates: [{window: {argocd: true}}]\n", 1)
	s := newScenario(t, normalCluster, "gatewindow", f)
	s.closeWindow("qa", time.Now().UTC().Truncate(time.Minute).Add(-time.Minute), 2*time.Hour)
	s.applySets(f, nil)
	for _, env := range []string{"dev", "prod"} {
		s.awaitApplication("web", env)
		s.awaitRunning("web", env, firstTag)
	}
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	s.awaitOpen("web", "qa", "1.1.0", 0)
	s.awaitGate("web", "qa", "window", string(policies.Wait))
	s.awaitState("web", "dev", "1.1.0", promotion.Verified)
	if got := s.readTag("web", "qa"); got != firstTag {
		t.Errorf("qa has %s", got)
	}
	s.createProject(nil)
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
}
