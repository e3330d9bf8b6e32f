//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/promotion"
)

// A release is healthy in qa, is verified, and its pull request into prod is open.
// Then it fails: it is taken back within its watch, and prod's is closed.
func TestFailureAfterItWasHealthyIsReverted(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	// The pods fail 45 s after they got ready; Argo CD then says Progressing, for
	// ever. Longer than timeout counts as degraded.
	f.environments = strings.ReplaceAll(threeSteps, "timeout: 90s", "timeout: 30s")
	s := startScenario(t, normalCluster, "late", f, nil)

	s.pushRelease("web", "dev", "1.1.0-late-in-qa")
	merged := s.awaitMerged("web", "qa", "1.1.0-late-in-qa", 0)
	before, _ := s.checkOneEnvironment(merged, "web", "qa", 1)
	s.awaitState("web", "qa", "1.1.0-late-in-qa", promotion.Verified)
	prod := s.awaitOpen("web", "prod", "1.1.0-late-in-qa", 0)

	revert := s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	_, after := s.checkOneEnvironment(revert, "web", "qa", 1)
	s.checkRestored(before, after, "web", "qa")
	s.awaitPull(promotionBranch("web", "prod"), "prod's pull request is closed", 0, func(p *gitea.PullRequest) error {
		if p.Index != prod.Index || p.State != gitea.StateClosed || p.HasMerged {
			return fmt.Errorf("#%d is %s (merged %t)", p.Index, p.State, p.HasMerged)
		}
		return nil
	})
	s.awaitState("web", "qa", firstTag, promotion.Verified)
	s.awaitRunning("web", "qa", firstTag)
	if got := s.readTag("web", "prod"); got != firstTag {
		t.Errorf("prod has %s", got)
	}
}
