//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Two components share an ApplicationSet that syncs one after the other. While the
// first one is broken the second one waits its turn, and says for whom; it hasn't failed.
func TestRollingSyncStepIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"api": {"api"}, "web": {"web"}}, environments: threeSteps}
	f.sets = map[string]string{"shop.yaml": strings.NewReplacer(
		"  generators:\n", `  strategy:
    type: RollingSync
    rollingSync:
      steps:
        - matchExpressions: [{key: component, operator: In, values: [api]}]
        - matchExpressions: [{key: component, operator: In, values: [web]}]
  generators:
`,
		"    spec:\n", "      labels: {component: '{{ index .path.segments 1 }}'}\n    spec:\n",
	).Replace(byDirectory)}
	s := startScenario(t, normalCluster, "rolling", f, nil)

	s.pushRelease("api", "dev", "1.1.0-broken-in-dev")
	s.awaitState("api", "dev", "1.1.0-broken-in-dev", promotion.Degraded)
	s.pushRelease("web", "dev", "1.1.0")
	s.awaitWhy("web", "dev", "waits for the step before", func(e *api.EnvironmentWhy) error {
		for _, target := range e.Targets {
			if target.State == "queued" && strings.Contains(target.Reason, s.prefix+"-api-dev") {
				return nil
			}
		}
		return fmt.Errorf("the targets are %+v, not queued behind api's", e.Targets)
	})
	s.record("rolling", "web", "dev", nil)
	s.checkNoPull(promotionBranch("web", "qa"))

	s.pushRelease("api", "dev", "1.1.1")
	s.awaitState("web", "dev", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
}
