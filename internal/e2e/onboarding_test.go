//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/console/api"
)

// onboardingBranch is that of the pull request that proposes a pipeline file.
const onboardingBranch = "liftlock/onboarding"

// awaitProposal waits until the one pull request that proposes a pipeline file is in a state and says something.
func (s *scenario) awaitProposal(state gitea.StateType, text string) *gitea.PullRequest {
	s.Helper()
	return s.awaitPull(onboardingBranch, fmt.Sprintf("the proposal is %s and says %q", state, text), 0, func(p *gitea.PullRequest) error {
		all, err := s.liftlockPulls(onboardingBranch)
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("there are %d", len(all))
		}
		if err == nil && (p.State != state || !strings.Contains(p.Body, text)) {
			err = fmt.Errorf("#%d is %s: %s", p.Index, p.State, p.Body)
		}
		return err
	})
}

// A repository without a pipeline file is proposed one by a pull request, which follows the branch. Closed, it stays
// closed after a restart; opened again and merged, the repository is observed.
func TestOnboarding(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.plain = map[string]string{} // no pipeline file
	s := newScenario(t, normalCluster, "onboard", f)
	s.applySets(f, nil)
	s.awaitSettled()
	s.server.onboard = true
	s.must(s.server.start(s.ctx))

	p := s.awaitProposal(gitea.StateOpen, "The order is a guess")
	s.pushRelease("web", "dev", "1.1.0")
	s.awaitProposal(gitea.StateOpen, "dev carries 1.1.0 since before the pipeline")

	setState := func(state gitea.StateType) {
		_, _, err := s.cluster.accounts[ada].api.EditPullRequest(s.cluster.org, s.repo, p.Index, gitea.EditPullRequestOption{State: &state})
		s.must(err)
	}
	setState(gitea.StateClosed)
	s.awaitProposal(gitea.StateClosed, "")
	s.stopServer()
	s.must(s.server.start(s.ctx))
	s.pushRelease("web", "dev", "1.2.0")
	s.awaitProposal(gitea.StateClosed, "dev carries 1.1.0")

	setState(gitea.StateOpen)
	s.awaitProposal(gitea.StateOpen, "dev carries 1.2.0")
	s.mergeAs(ada, p.Index)
	const observed = "mode is observe; otherwise: open a promotion of 1.3.0"
	for _, text := range []string{"was there before the pipeline came in", observed} {
		eventually(s, "qa says "+text, func() (bool, error) {
			var why api.Why
			err := s.server.getJSON(s.ctx, "/api/v1/why?component=web&environment=qa&pipeline="+s.prefix, &why)
			if err == nil && (len(why.Environments) != 1 || !strings.Contains(why.Environments[0].Text, text)) {
				err = fmt.Errorf("it says %+v", why.Environments)
			}
			return err == nil, err
		})
		if text != observed {
			s.pushRelease("web", "dev", "1.3.0")
		}
	}
	if pulls, err := s.liftlockPulls("liftlock/"); err != nil || len(pulls) != 1 {
		t.Errorf("there should be the one that proposed the file: %d, %v", len(pulls), err)
	}
}
