//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// A release of two images goes from dev through qa to prod's two regions; the next
// one is broken in qa, and comes back out.
func TestReleaseTravelsAndABrokenOneComesBack(t *testing.T) {
	t.Parallel()
	f := fleet{components: map[string][]string{"web": {"web", "worker"}}, environments: threeSteps, sets: map[string]string{"shop.yaml": butProd, "prod.yaml": regions}}
	s := begin(t, normal, "travel", f, nil)

	s.release("web", "dev", "1.1.0", "web", "worker")
	qa := s.merged("web", "qa", "1.1.0", 0)
	s.oneEnvironment(qa, "web", "qa", 2)
	prod := s.opened("web", "prod", "1.1.0", 0)
	s.state("web", "qa", "1.1.0", promotion.Verified)
	s.runs("web", "qa", "1.1.0")

	s.approve(ada, prod)
	s.gate("web", "prod", "approvals", "wait")
	if got := s.get(prod.Index); got.HasMerged {
		t.Fatalf("#%d was merged with one approval of two", prod.Index)
	}
	s.approve(grace, prod)
	prod = s.merged("web", "prod", "1.1.0", 0)
	s.oneEnvironment(prod, "web", "prod", 2)
	s.state("web", "prod", "1.1.0", promotion.Verified)
	s.runs("web", "prod-eu", "1.1.0")
	s.runs("web", "prod-us", "1.1.0")

	s.release("web", "dev", "1.2.0-broken-in-qa", "web", "worker")
	broken := s.merged("web", "qa", "1.2.0-broken-in-qa", qa.Index)
	before, _ := s.oneEnvironment(broken, "web", "qa", 2)
	revert := s.pull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	if !strings.Contains(revert.Body, "Deployment") || !strings.Contains(revert.Body, s.prefix+"-web-qa") {
		t.Errorf("the revert's body has no evidence about qa's Deployment:\n%s", revert.Body)
	}
	s.Logf("the revert says:\n%s", revert.Body)
	_, after := s.oneEnvironment(revert, "web", "qa", 2)
	s.restores(before, after, "web", "qa")
	s.state("web", "qa", "1.1.0", promotion.Verified)
	s.runs("web", "qa", "1.1.0")

	pulls, err := s.mine(branch("web", "prod"))
	s.must(err)
	if len(pulls) != 1 {
		t.Errorf("prod had %d pull requests; the release that broke qa should have had none there", len(pulls))
	}
	if got := s.tag("web", "prod"); got != "1.1.0" {
		t.Errorf("prod has %s", got)
	}
}
