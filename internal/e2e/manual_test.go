//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Nothing is synced by itself. Liftlock asks for the syncs of its promotions, which also remove
// resources that Git no longer has, where the pipeline says so and only there.
func TestManualTargetsAreSyncedAndPruned(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": strings.Replace(byDirectory, "automated: {prune: true}, ", "", 1)}
	f.environments = strings.ReplaceAll(threeSteps, "debounce: 3s}", "debounce: 3s, sync: trigger}")
	f.environments = strings.Replace(f.environments, "sync: trigger}", "sync: trigger, prune: always}", 1) // dev's
	s := newScenario(t, normalCluster, "manual", f)
	s.pushEdits(dev, "Settings", map[string]edit{
		"apps/web/base/kustomization.yaml": func(string) string { return "resources:\n  - deployment.yaml\n  - settings.yaml\n" },
		"apps/web/base/settings.yaml": func(string) string {
			return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n"
		},
	})
	s.applySets(f, nil)
	for _, env := range []string{"dev", "qa", "prod"} {
		s.awaitApplication("web", env)
		s.syncByHand("web", env, "Succeeded", `"syncOptions": ["CreateNamespace=true"]`)
	}
	s.awaitSettled()
	s.startServer()

	s.pushEdits(dev, "No settings any more", map[string]edit{
		"apps/web/base/kustomization.yaml":         func(string) string { return "resources:\n  - deployment.yaml\n" },
		"apps/web/overlays/dev/kustomization.yaml": setTag("web", "1.1.0"),
	})
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitRunning("web", "dev", "1.1.0")
	eventually(s, "the settings are gone in dev", func() (bool, error) {
		_, err := s.cluster.kube.Resource(configMaps).Namespace(s.prefix+"-dev").Get(s.ctx, "settings", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, errors.Join(err, errors.New("they are still there"))
	})
	s.awaitRunning("web", "qa", "1.1.0")
	_, err := s.cluster.kube.Resource(configMaps).Namespace(s.prefix+"-qa").Get(s.ctx, "settings", metav1.GetOptions{})
	s.must(err)
	if got := s.readTag("web", "prod"); got != firstTag {
		t.Errorf("prod has %s", got)
	}
	s.checkNoPull(revertPrefix("web", "qa"))
}
