//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// manualQA merges nothing by itself in qa.
const manualQA = `    - name: dev
      verify: ` + verify + `
    - name: qa
      after: [dev]
      verify: ` + verify + `
`

// A person closes a pull request: it stays closed, whatever happens elsewhere and
// after a restart, until somebody says retry.
func TestClosedByAPersonStaysClosedUntilRetry(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"web": {"web"}, "cart": {"cart"}}, environments: manualQA, sets: map[string]string{"shop.yaml": byDirectory}}
	s := startScenario(t, normalCluster, "veto", f, nil)

	s.pushRelease("web", "dev", "1.1.0")
	p := s.awaitOpen("web", "qa", "1.1.0", 0)
	closed := gitea.StateClosed
	_, _, err := s.cluster.accounts[ada].api.EditPullRequest(s.cluster.org, s.repo, p.Index, gitea.EditPullRequestOption{State: &closed})
	s.must(err)
	vetoed := func(e *api.EnvironmentWhy) error {
		if e.Incoming == nil || e.Incoming.State != promotion.Closed {
			return fmt.Errorf("what wants to come in is %+v", e.Incoming)
		}
		return nil
	}
	s.awaitWhy("web", "qa", "what was closed is a veto", vetoed)

	s.stopServer()
	s.startServer()
	s.pushRelease("cart", "dev", "1.1.0") // the same push, the same looks, another component
	s.awaitOpen("cart", "qa", "1.1.0", 0)
	s.awaitWhy("web", "qa", "it still is", vetoed)
	if pulls, err := s.liftlockPulls(promotionBranch("web", "qa")); err != nil || len(pulls) != 1 || pulls[0].State != gitea.StateClosed {
		t.Fatalf("there should be the one closed pull request: %d, %v", len(pulls), err)
	}

	s.addComment(ada, p.Index, "/liftlock retry")
	again := s.awaitOpen("web", "qa", "1.1.0", 0)
	s.mergeAs(ada, again.Index)
	s.checkOneEnvironment(s.awaitMerged("web", "qa", "1.1.0", 0), "web", "qa", 1)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
}
