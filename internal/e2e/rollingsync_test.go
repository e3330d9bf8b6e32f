//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// rollingSet is a set that syncs one component after the other, and no others; limit is
// what else each step says.
func rollingSet(limit string, components ...string) string {
	steps := ""
	for _, c := range components {
		steps += "        - {matchExpressions: [{key: component, operator: In, values: [" + c + "]}]" + limit + "}\n"
	}
	return strings.NewReplacer(
		"  generators:\n", "  strategy:\n    type: RollingSync\n    rollingSync:\n      steps:\n"+steps+"  generators:\n",
		"    spec:\n", "      labels: {component: '{{ index .path.segments 1 }}'}\n    spec:\n",
	).Replace(byDirectory)
}

// Three components share an ApplicationSet that syncs one after the other. While an earlier
// one is broken the later ones wait their turn, and say for whom; none of them has failed.
func TestRollingSyncStepIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"api": {"api"}, "web": {"web"}, "worker": {"worker"}}, environments: threeSteps}
	f.sets = map[string]string{"shop.yaml": rollingSet("", "api", "web", "worker")}
	s := startScenario(t, normalCluster, "rolling", f, nil)

	s.pushRelease("api", "dev", "1.1.0-broken-in-dev")
	s.awaitState("api", "dev", "1.1.0-broken-in-dev", promotion.Degraded)
	s.pushRelease("web", "dev", "1.1.0-broken-in-dev")
	s.pushRelease("worker", "dev", "1.1.0")
	for _, component := range []string{"web", "worker"} {
		s.awaitQueued(component, "dev", "waits for step 1: "+s.prefix+"-api-dev")
	}
	s.record("rolling", "web", "dev", nil)
	s.checkNoPull(promotionBranch("worker", "qa"))

	s.pushRelease("api", "dev", "1.1.1")
	s.awaitState("web", "dev", "1.1.0-broken-in-dev", promotion.Degraded)
	s.awaitQueued("worker", "dev", "waits for step 2: "+s.prefix+"-web-dev")
	s.record("rolling-third", "worker", "dev", nil)
	if image, err := s.cluster.deployedImage(s.ctx, s.prefix+"-dev", "worker"); err != nil || !strings.HasSuffix(image, ":"+firstTag) {
		t.Errorf("dev runs %s (%v) before its step", image, err)
	}

	s.pushRelease("web", "dev", "1.1.1")
	for component, tag := range map[string]string{"web": "1.1.1", "worker": "1.1.0"} {
		s.awaitState(component, "dev", tag, promotion.Verified)
		s.awaitRunning(component, "dev", tag)
		s.awaitMerged(component, "qa", tag, 0)
		s.awaitState(component, "qa", tag, promotion.Verified)
	}
}

// One component is in a step that updates nothing by itself, another in none. Neither waits
// for a turn, or has failed: each says that a person syncs it, and goes on once one did.
func TestRollingSyncNeverSyncs(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"api": {"api"}, "web": {"web"}}, environments: threeSteps}
	f.sets = map[string]string{"shop.yaml": rollingSet(", maxUpdate: 0", "web")}
	s := newScenario(t, normalCluster, "leftout", f)
	s.applySets(f, nil)
	for _, component := range []string{"api", "web"} {
		for _, env := range []string{"dev", "qa", "prod"} {
			s.awaitApplication(component, env)
			s.syncByHand(component, env, "Succeeded", `"syncOptions": ["CreateNamespace=true"]`)
		}
	}
	s.awaitSettled()
	s.startServer()

	for component, left := range map[string]struct{ recorded, why string }{"api": {"rolling-no-step", "it is in no step"}, "web": {"rolling-no-update", "its step's maxUpdate is 0"}} {
		s.pushRelease(component, "dev", "1.1.0")
		s.awaitWhy(component, "dev", "waits for a person's sync", func(e *api.EnvironmentWhy) error {
			for _, target := range e.Targets {
				if target.State == "syncing" && strings.Contains(target.Reason, "RollingSync never syncs it ("+left.why+")") {
					return nil
				}
			}
			return fmt.Errorf("the targets are %+v, not left to people", e.Targets)
		})
		s.record(left.recorded, component, "dev", nil)
		s.checkNoPull(promotionBranch(component, "qa"))
		s.syncByHand(component, "dev", "Succeeded", "")
		s.awaitState(component, "dev", "1.1.0", promotion.Verified)
		s.awaitMerged(component, "qa", "1.1.0", 0)
	}
}
