//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// The cluster's ApplicationSet doesn't make qa's Application yet, though the one
// in Git does: the release waits for it, and goes on when it is there.
func TestReleaseWaitsForAnApplicationThatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	s := startScenario(t, normalCluster, "missing", f, func(set string) string {
		return strings.Replace(set, "          - path: apps/*/overlays/*\n", "          - path: apps/*/overlays/dev\n          - path: apps/*/overlays/prod\n", 1)
	})
	qa := s.prefix + "-web-qa"

	s.pushRelease("web", "dev", "1.1.0")
	s.checkOneEnvironment(s.awaitMerged("web", "qa", "1.1.0", 0), "web", "qa", 1)
	s.awaitWhy("web", "qa", "waits for its Application", func(e *api.EnvironmentWhy) error {
		if e.State != promotion.Verifying {
			return fmt.Errorf("it is %s", e.State)
		}
		for _, target := range e.Targets {
			if target.Name == qa && target.State == "absent" {
				return nil
			}
		}
		return fmt.Errorf("the targets are %+v", e.Targets)
	})
	if a, err := s.cluster.getApplication(s.ctx, qa); err != nil || a.isThere {
		t.Fatalf("the Application should not exist: %s, %v", a, err)
	}
	s.checkNoPull(promotionBranch("web", "prod"))

	s.applySets(f, nil)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitOpen("web", "prod", "1.1.0", 0)
}
