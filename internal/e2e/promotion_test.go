//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// A release of two images goes from dev through qa to prod's two regions; the next
// one is broken in qa, and comes back out.
func TestReleaseIsPromotedAndABrokenOneReverted(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"web": {"web", "worker"}}, environments: threeSteps, sets: map[string]string{"shop.yaml": allButProd, "prod.yaml": regions}}
	s := startScenario(t, normalCluster, "travel", f, nil)

	s.pushRelease("web", "dev", "1.1.0", "web", "worker")
	qa := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.checkOneEnvironment(qa, "web", "qa", 2)
	prod := s.awaitOpen("web", "prod", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")

	s.approve(ada, prod)
	s.awaitGate("web", "prod", "approvals", "wait")
	if got := s.getPull(prod.Index); got.HasMerged {
		t.Fatalf("#%d was merged with one approval of two", prod.Index)
	}
	s.approve(grace, prod)
	prod = s.awaitMerged("web", "prod", "1.1.0", 0)
	s.checkOneEnvironment(prod, "web", "prod", 2)
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "prod-eu", "1.1.0")
	s.awaitRunning("web", "prod-us", "1.1.0")

	s.pushRelease("web", "dev", "1.2.0-broken-in-qa", "web", "worker")
	broken := s.awaitMerged("web", "qa", "1.2.0-broken-in-qa", qa.Index)
	before, _ := s.checkOneEnvironment(broken, "web", "qa", 2)
	revert := s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	if !strings.Contains(revert.Body, "pods ready: ImagePullBackOff") || !strings.Contains(revert.Body, s.prefix+"-web-qa") {
		t.Errorf("the revert's body has no evidence about qa's Deployment:\n%s", revert.Body)
	}
	s.Logf("the revert says:\n%s", revert.Body)
	_, after := s.checkOneEnvironment(revert, "web", "qa", 2)
	s.checkRestored(before, after, "web", "qa")
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")

	pulls, err := s.liftlockPulls(promotionBranch("web", "prod"))
	s.must(err)
	if len(pulls) != 1 {
		t.Errorf("prod had %d pull requests; the release that broke qa should have had none there", len(pulls))
	}
	if got := s.readTag("web", "prod"); got != "1.1.0" {
		t.Errorf("prod has %s", got)
	}
}
