//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// Somebody fixes prod by hand: Liftlock leaves it alone until a person who may
// says promote.
func TestProdFixedByHandIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.environments = strings.Replace(f.environments, "count: 2", "count: 1", 1)
	s := startScenario(t, normalCluster, "hotfix", f, nil)

	s.pushRelease("web", "prod", "1.0.1-hotfix")
	s.awaitState("web", "prod", "1.0.1-hotfix", promotion.Diverged)
	s.pushRelease("web", "dev", "1.1.0")
	qa := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.checkOneEnvironment(qa, "web", "qa", 1)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitReason("web", "prod", cause.Diverged)
	s.checkNoPull(promotionBranch("web", "prod"))
	s.checkNoPull(revertPrefix("web", "prod"))
	s.awaitRunning("web", "prod", "1.0.1-hotfix")
	if got := s.readTag("web", "prod"); got != "1.0.1-hotfix" {
		t.Fatalf("prod has %s", got)
	}

	s.addComment(ada, qa.Index, "/liftlock promote prod")
	p := s.awaitOpen("web", "prod", "1.1.0", 0)
	s.approve(ada, p) // doesn't count: who promotes isn't who approves
	s.awaitGate("web", "prod", "approvals", "wait")
	s.approve(grace, p)
	s.checkOneEnvironment(s.awaitMerged("web", "prod", "1.1.0", 0), "web", "prod", 1)
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)
}
