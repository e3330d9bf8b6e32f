package server_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
)

// TestIncidentAcrossArgoCDs has two Argo CDs with an Application of one name each, and the other's
// turns unhealthy before the release's own does. That is an incident if they are on one cluster,
// which only the server's file can tell. Two clusters that their Argo CDs call in-cluster aren't
// one, and a common cluster has another name or address in each Argo CD.
func TestIncidentAcrossArgoCDs(t *testing.T) {
	t.Parallel()
	const address = "https://10.0.0.1"
	for name, c := range map[string]struct {
		cluster, of string // of the target, and of the other Argo CD's Application
		aliases     [2]string
		incident    string // the cluster that it is on; empty: there is none
		revert      string // the cluster that the revert names
	}{
		"in-cluster of each":             {inCluster, "in-cluster", [2]string{}, "", "hub/in-cluster"},
		"in-cluster of each that is one": {inCluster, "in-cluster", [2]string{"{eu: [in-cluster]}", "{eu: [in-cluster]}"}, "eu", ""},
		"an address and a name of one":   {address, "prod-eu", [2]string{"{prod-eu: [\"" + address + "/\"]}", ""}, "prod-eu", ""},
	} {
		t.Run(name, func(t *testing.T) {
			// Two worlds in a test that is to be parallel once: the first doesn't see that it is a T.
			edge := newHarness(struct{ testing.TB }{t}, harnessOptions{pipeline: pipelineYAML(nil, dev, qa), cluster: func(string, string) string { return c.of }})
			aliasLine := func(aliases string) string {
				if aliases == "" {
					return ""
				}
				return "    clusters: {alias: " + aliases + "}\n"
			}
			lines := aliasLine(c.aliases[0]) + fmt.Sprintf("  - name: edge\n    kubernetes: {kubeconfig: %s, namespaces: [argocd]}\n", filepath.Join(edge.dir, "kubeconfig")) + aliasLine(c.aliases[1])
			s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa), cluster: func(string, string) string { return c.cluster }, destination: c.cluster, argocdLines: lines})
			s.awaitJudged()
			s.commitRelease("web", "1.1.0")
			s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
			s.awaitVerified("web", "qa", "1.1.0")
			for _, w := range []*harness{edge, s} {
				s.must("degrade web-qa", w.ArgoCD.SetFault("argocd", "web-qa", argoemulator.AppFault{Health: "Degraded", Message: "node not ready"}))
			}
			if c.incident != "" {
				s.awaitReason("web", "qa", "web-qa on the same cluster ("+c.incident+"), which this promotion didn't touch, became unwell too")
				s.awaitIdle()
				if n := len(s.listReverts("web", "qa")); n != 0 {
					t.Errorf("%d reverts were opened because of an incident", n)
				}
				return
			}
			s.waitFor("the revert is open", func() (bool, string) {
				_, why := s.readEnvironment("web", "qa")
				return len(s.listReverts("web", "qa")) == 1, why
			})
			if body := s.listReverts("web", "qa")[0].Body; !strings.Contains(body, "`web-qa` in qa on `"+c.revert+"`") {
				t.Errorf("the revert doesn't say where:\n%s", body)
			}
		})
	}
}
