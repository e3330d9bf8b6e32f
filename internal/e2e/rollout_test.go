//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

var rollouts = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}

// A release is a canary that pauses in qa for a person. It isn't verified, goes no further and
// isn't reverted, and goes on when the canary does.
func TestPausedRolloutIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	s := newScenario(t, normalCluster, "rollout", f)
	s.pushEdits(dev, "A canary", map[string]edit{
		"apps/web/base/kustomization.yaml": func(string) string { return "resources:\n  - rollout.yaml\n" },
		"apps/web/base/rollout.yaml":       func(string) string { return rolloutYAML },
	})
	s.applySets(f, nil)
	for _, env := range []string{"dev", "qa", "prod"} {
		s.setRollout(env, firstTag, "Healthy")
	}
	s.awaitSettled()
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	s.setRollout("dev", "1.1.0", "Healthy")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.setRollout("qa", "1.1.0", "Paused")
	s.awaitWhy("web", "qa", "is suspended", func(e *api.EnvironmentWhy) error {
		for _, target := range e.Targets {
			if target.State == "suspended" {
				return nil
			}
		}
		return fmt.Errorf("the targets are %+v", e.Targets)
	})
	s.record("rollout-paused", "web", "qa", nil)
	s.checkNoPull(promotionBranch("web", "prod"))

	s.setRollout("qa", "1.1.0", "Healthy")
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitOpen("web", "prod", "1.1.0", 0)
	s.checkNoPull(revertPrefix("web", "qa"))
}

// setRollout waits for web's Rollout in an environment to be of the tag, and is its
// controller then.
func (s *scenario) setRollout(env, tag, phase string) {
	s.Helper()
	in := s.cluster.kube.Resource(rollouts).Namespace(s.prefix + "-" + env)
	eventually(s, "the Rollout of "+tag+" in "+env+" is "+phase, func() (bool, error) {
		u, err := in.Get(s.ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			return false, fmt.Errorf("its containers are %v: %w", containers, err)
		}
		if image := containers[0].(map[string]any)["image"]; image != "registry.example/web:"+tag {
			return false, fmt.Errorf("it runs %v", image)
		}
		status := fmt.Sprintf(`{"status": {"observedGeneration": "%d", "phase": %q}}`, u.GetGeneration(), phase)
		_, err = in.Patch(s.ctx, "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		return err == nil, err
	})
}

const rolloutYAML = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: web
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  strategy:
    canary: {steps: [{setWeight: 50}, {pause: {}}]}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: registry.example/web
`
