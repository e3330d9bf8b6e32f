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

// Argo CD calls qa Synced and Healthy with a release that doesn't run there. It isn't verified, the
// reason names both images, and prod stays shut until it runs. The reason that hides it is known
// before the merge too; these environments say that a promotion needn't have an effect.
func TestReleaseThatIsHidden(t *testing.T) {
	t.Parallel()
	t.Run("LiveOverride", runReleaseBehindLiveOverride)
	t.Run("IgnoredDifference", runReleaseBehindIgnoredDifference)
}

// unheeded is singleComponent's fleet, whose environments don't ask what comes of a promotion before its merge.
func unheeded(set string) repoFixture {
	f := singleComponent()
	f.environments = strings.ReplaceAll(f.environments, "      after:", "      effect: optional\n      after:")
	f.sets = map[string]string{"shop.yaml": set}
	return f
}

// Somebody pins the image in the live Application, which its ApplicationSet leaves alone there.
func runReleaseBehindLiveOverride(t *testing.T) {
	t.Parallel()
	s := startScenario(t, normalCluster, "pinned", unheeded(strings.Replace(byDirectory, "spec:\n", "spec:\n  ignoreApplicationDifferences: [{jsonPointers: [/spec/source/kustomize]}]\n", 1)), nil)
	s.patchApplication("web", "qa", `{"spec":{"source":{"kustomize":{"images":["registry.example/web:`+firstTag+`"]}}}}`)
	s.pushRelease("web", "dev", "1.1.0")
	s.awaitOtherImage("1.1.0", firstTag)
	s.patchApplication("web", "qa", `{"spec":{"source":{"kustomize":null}}}`)
	s.awaitOnItsWayToProd("1.1.0")
}

// The set has Argo CD ignore what image qa's Deployment has, and sync nothing that it ignores.
func runReleaseBehindIgnoredDifference(t *testing.T) {
	t.Parallel()
	ignoring := byDirectory + `  templatePatch: |
    {{- if eq .path.basename "qa" }}
    spec:
      syncPolicy: {syncOptions: [CreateNamespace=true, RespectIgnoreDifferences=true]}
      ignoreDifferences: [{group: apps, kind: Deployment, jqPathExpressions: ['.spec.template.spec.containers[].image']}]
    {{- end }}
`
	s := newScenario(t, normalCluster, "ignored", unheeded(ignoring))
	s.applySets(unheeded(byDirectory), nil) // what is ignored can't be deployed for the first time either
	s.awaitSettled()
	s.applySets(unheeded(ignoring), nil)
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	s.awaitOtherImage("1.1.0", firstTag)
	s.applySets(unheeded(byDirectory), nil)
	s.awaitOnItsWayToProd("1.1.0")
}

func (s *scenario) patchApplication(component, env, patch string) {
	s.Helper()
	_, err := s.cluster.kube.Resource(applications).Namespace("argocd").Patch(s.ctx, s.prefix+"-"+component+"-"+env, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

// awaitOtherImage waits until web isn't verified in qa for running another image, and looks that prod is shut.
func (s *scenario) awaitOtherImage(landed, runs string) {
	s.Helper()
	want := fmt.Sprintf("registry.example/web:%s isn't among the images that run (registry.example/web:%s is)", landed, runs)
	e := s.awaitWhy("web", "qa", "it runs "+runs+" in place of "+landed, func(e *api.EnvironmentWhy) error {
		if !strings.Contains(e.Text, want) {
			return fmt.Errorf("it doesn't say that %s", want)
		}
		return nil
	})
	if e.State != promotion.Verifying && e.State != promotion.Failed {
		s.Errorf("with another image qa is %s", e.State)
	}
	s.Logf("qa says: %s", e.Text)
	pulls, err := s.liftlockPulls(promotionBranch("web", "prod"))
	s.must(err)
	for _, p := range pulls {
		if strings.Contains(p.Title, landed) {
			s.Errorf("what qa doesn't run is offered to prod: #%d %s", p.Index, p.Title)
		}
	}
}

// awaitOnItsWayToProd waits until web is verified in qa, and offered to prod.
func (s *scenario) awaitOnItsWayToProd(tag string) {
	s.Helper()
	s.awaitState("web", "qa", tag, promotion.Verified)
	s.awaitRunning("web", "qa", tag)
	s.awaitOpen("web", "prod", tag, 0)
}
