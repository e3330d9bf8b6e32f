//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// A release of web is verified in qa. Then something that no release changed breaks in three
// components at once, web's too. That is the cluster's trouble, so a person is asked and nothing is
// reverted, and when it is over all is healthy.
func TestIncidentIsNotTheReleases(t *testing.T) {
	t.Parallel()
	all := repoFixture{components: map[string][]string{"api": {"api"}, "cart": {"cart"}, "web": {"web"}}, environments: threeSteps}
	f := repoFixture{plain: all.renderFiles("", ""), sets: map[string]string{"shop.yaml": strings.Replace(byDirectory, "      syncPolicy:", `      ignoreDifferences: # or the next commit would have Argo CD mend the caches
        - {group: apps, kind: Deployment, name: '{{ index .path.segments 1 }}-cache', jsonPointers: [/spec/template/spec/containers/0/image]}
      syncPolicy:`, 1)}}
	for c := range all.components {
		base := "apps/" + c + "/base/"
		f.plain[base+"kustomization.yaml"] = "resources:\n  - deployment.yaml\n  - cache.yaml\n"
		f.plain[base+"cache.yaml"] = strings.ReplaceAll(deploymentYAML(c+"-cache", []string{"cache"}), "registry.example/cache", goodCache)
	}
	s := startScenario(t, normalCluster, "incident", f, nil)
	s.pushRelease("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.record("incident-before", "web", "qa", nil)

	for _, c := range []string{"api", "cart", "web"} {
		s.setCache(c, "qa", goodCache+"-broken-in-qa")
	}
	s.awaitWhy("web", "qa", "is left to a person", func(e *api.EnvironmentWhy) error {
		if e.State == promotion.Degraded && strings.Contains(e.Text, "(Deployment web-cache) is nothing that the promotion changed: an incident is likely") {
			return nil
		}
		return fmt.Errorf("it is %s: %s", e.State, e.Text)
	})
	s.record("incident", "web", "qa", nil)
	for _, c := range []string{"api", "cart", "web"} {
		s.setCache(c, "qa", goodCache)
	}
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.checkNoPull(revertPrefix("web", "qa"))
}

// goodCache is an image that no release carries.
const goodCache = "docker.example/cache:1"

// setCache changes what a component's cache runs in the cluster, behind Git's back.
func (s *scenario) setCache(component, env, image string) {
	s.Helper()
	patch := `{"spec": {"template": {"spec": {"containers": [{"name": "cache", "image": "` + image + `"}]}}}}`
	_, err := s.cluster.kube.Resource(deployments).Namespace(s.prefix+"-"+env).Patch(s.ctx, component+"-cache", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}
