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
	f := fleet{components: map[string][]string{"web": {"web"}, "cart": {"cart"}}, environments: manualQA, sets: map[string]string{"shop.yaml": byDirectory}}
	s := begin(t, normal, "veto", f, nil)

	s.release("web", "dev", "1.1.0")
	p := s.opened("web", "qa", "1.1.0", 0)
	closed := gitea.StateClosed
	_, _, err := s.w.people[ada].api.EditPullRequest(s.w.org, s.repo, p.Index, gitea.EditPullRequestOption{State: &closed})
	s.must(err)
	vetoed := func(e *api.WhyHere) error {
		if e.Incoming == nil || e.Incoming.State != promotion.Closed {
			return fmt.Errorf("what wants to come in is %+v", e.Incoming)
		}
		return nil
	}
	s.why("web", "qa", "what was closed is a veto", vetoed)

	s.stopServer()
	s.startServer()
	s.release("cart", "dev", "1.1.0") // the same push, the same looks, another component
	s.opened("cart", "qa", "1.1.0", 0)
	s.why("web", "qa", "it still is", vetoed)
	if pulls, err := s.mine(branch("web", "qa")); err != nil || len(pulls) != 1 || pulls[0].State != gitea.StateClosed {
		t.Fatalf("there should be the one closed pull request: %d, %v", len(pulls), err)
	}

	s.say(ada, p.Index, "/liftlock retry")
	again := s.opened("web", "qa", "1.1.0", 0)
	s.mergeBy(ada, again.Index)
	s.oneEnvironment(s.merged("web", "qa", "1.1.0", 0), "web", "qa", 1)
	s.state("web", "qa", "1.1.0", promotion.Verified)
}
