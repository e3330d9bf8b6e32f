//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Two Argo CDs, each with a cluster of its own that it calls in-cluster, have Applications of one
// name. One is web in qa, the other web in prod. Each is verified by its own, and what breaks in
// prod is taken back there, though the other of its name and cluster is well.
func TestTwoArgoCDsWithApplicationsOfOneName(t *testing.T) {
	if slowCluster == normalCluster {
		t.Skip("there is one world only")
	}
	t.Parallel()
	one := singleComponent()
	one.sets, one.environments = nil, strings.Replace(threeSteps, "      merge: auto\n      gates:\n        - approvals: {count: 2, from: {users: [ada, grace]}}\n", "      merge: auto\n      onDegraded: revert-and-merge\n", 1)
	f := repoFixture{plain: one.renderFiles("", ""), sets: map[string]string{"shop.yaml": allButProd}}
	f.plain[".liftlock.yaml"] = strings.Replace(f.plain[".liftlock.yaml"], "    - path: argocd/*.yaml\n", "    - path: argocd/*.yaml\n    - {path: edge/*.yaml, argocd: edge}\n", 1)
	s := newScenario(t, normalCluster, "two", f)
	edge := fillPlaceholders(strings.NewReplacer("apps/*/overlays/*", "apps/*/overlays/prod", "-{{ .path.basename }}'\n    spec:", "-qa'\n    spec:").Replace(byDirectory), s.prefix, s.clone.url)
	s.pushEdits(dev, "Prod, by another Argo CD", map[string]edit{"edge/prod.yaml": func(string) string { return edge }})
	s.must(slowCluster.applySet(s.ctx, edge))
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := slowCluster.deleteSet(ctx, s.prefix); err != nil {
			t.Errorf("remove the other Argo CD's ApplicationSet: %v", err)
		}
	})
	s.applySets(f, nil)
	s.awaitSettled()
	awaitProd := func(tag string) {
		s.Helper()
		eventually(s, "the other cluster runs web "+tag, func() (bool, error) {
			image, err := slowCluster.deployedImage(s.ctx, s.prefix+"-prod", "web")
			if err == nil && image != "registry.example/web:"+tag {
				err = errors.New("it runs " + image)
			}
			return err == nil, err
		})
	}
	awaitProd(firstTag)
	s.server.edge = slowCluster
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	good := s.awaitMerged("web", "prod", "1.1.0", 0)
	awaitProd("1.1.0")
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)
	s.pushRelease("web", "dev", "1.2.0-broken-in-prod")
	s.awaitMerged("web", "prod", "1.2.0-broken-in-prod", good.Index)
	s.recordIn(slowCluster, "namesake-degraded", "web", "qa", isDegraded)
	s.recordIn(normalCluster, "namesake", "web", "qa", nil)
	s.awaitPull(revertPrefix("web", "prod"), "the revert in prod is merged", 0, isMerged)
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)
	awaitProd("1.1.0")
	s.awaitState("web", "qa", "1.2.0-broken-in-prod", promotion.Verified)
	s.checkNoPull(revertPrefix("web", "qa"))
	if a, err := slowCluster.getApplication(s.ctx, s.prefix+"-web-qa"); err != nil || a.health != "Healthy" {
		t.Errorf("the other Argo CD's Application: %v", fmt.Sprint(a, err))
	}
}
