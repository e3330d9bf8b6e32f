//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Argo CD believes for ten minutes that the branch hasn't moved, and says Synced
// and Healthy about the old commit again and again. That is never taken for the
// new one; a refresh brings the answer.
func TestOldCommitIsNeverMistakenForNew(t *testing.T) {
	t.Parallel()
	s := newScenario(t, slowCluster, "stale", singleComponent())
	s.applySets(singleComponent(), nil)
	s.awaitSettled()
	s.server.refresh = "off"
	s.startServer()
	name := s.prefix + "-web-dev"
	before, err := s.cluster.getApplication(s.ctx, name)
	s.must(err)

	commit := s.pushRelease("web", "dev", "1.1.0")
	s.awaitState("web", "dev", "1.1.0", promotion.Verifying)
	for _, nth := range []string{"first", "second"} {
		last := before
		before = eventually(s, "Argo CD says once more that all is well with the old commit, for the "+nth+" time", func() (appState, error) {
			a, err := s.cluster.getApplication(s.ctx, name)
			switch {
			case err != nil:
				return a, err
			case a.revision != last.revision || a.sync != "Synced" || a.health != "Healthy":
				s.Fatalf("this world's Argo CD should not have noticed the push: %s", a)
			case a.reconciledAt == last.reconciledAt:
				return a, errors.New("not compared again: " + a.String())
			}
			return a, nil
		})
	}
	s.awaitState("web", "dev", "1.1.0", promotion.Verifying)
	s.checkNoPull(promotionBranch("web", "qa"))

	s.stopServer()
	s.server.refresh = "annotation"
	s.startServer()
	qa := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.checkOneEnvironment(qa, "web", "qa", 1)
	a, err := s.cluster.getApplication(s.ctx, name)
	s.must(err)
	if _, err := s.clone.runGit(s.ctx, s.cluster.accounts[dev], "merge-base", "--is-ancestor", commit, a.revision); err != nil {
		t.Errorf("qa's pull request was merged while dev's Application was at %s, which doesn't have %s: %v", a.revision, commit, err)
	}
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	qaApp, err := s.cluster.getApplication(s.ctx, s.prefix+"-web-qa")
	s.must(err)
	if _, err := s.clone.runGit(s.ctx, s.cluster.accounts[dev], "merge-base", "--is-ancestor", *qa.MergedCommitID, qaApp.revision); err != nil {
		t.Errorf("qa is called verified, but its Application doesn't have the merge: %v", fmt.Errorf("%s: %w", qaApp, err))
	}
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitOpen("web", "prod", "1.1.0", 0)
}
