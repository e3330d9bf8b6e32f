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
	f := oneWeb()
	// The pods fail 20 s after they got ready; Argo CD then says Progressing, for
	// ever. Longer than timeout counts as degraded.
	f.environments = strings.ReplaceAll(threeSteps, "timeout: 40s", "timeout: 15s")
	s := begin(t, normal, "late", f, nil)

	s.release("web", "dev", "1.1.0-late-in-qa")
	merged := s.merged("web", "qa", "1.1.0-late-in-qa", 0)
	before, _ := s.oneEnvironment(merged, "web", "qa", 1)
	s.state("web", "qa", "1.1.0-late-in-qa", promotion.Verified)
	prod := s.opened("web", "prod", "1.1.0-late-in-qa", 0)

	revert := s.pull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	_, after := s.oneEnvironment(revert, "web", "qa", 1)
	s.restores(before, after, "web", "qa")
	s.pull(branch("web", "prod"), "prod's pull request is closed", 0, func(p *gitea.PullRequest) error {
		if p.Index != prod.Index || p.State != gitea.StateClosed || p.HasMerged {
			return fmt.Errorf("#%d is %s (merged %t)", p.Index, p.State, p.HasMerged)
		}
		return nil
	})
	s.state("web", "qa", first, promotion.Verified)
	s.runs("web", "qa", first)
	if got := s.tag("web", "prod"); got != first {
		t.Errorf("prod has %s", got)
	}
}
