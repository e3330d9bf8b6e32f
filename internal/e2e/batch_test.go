//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Two components travel in one pull request an environment, which people let go;
// when one of them fails in qa, both come back in one revert.
func TestBatchIsPromotedAndReverted(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"api": {"api"}, "web": {"web"}}, environments: batchSteps, spec: "  batch: environment\n",
		sets: map[string]string{"shop.yaml": byDirectory}}
	s := startScenario(t, normalCluster, "train", f, nil)

	s.pushReleases("dev", map[string]string{"api": "1.1.0", "web": "1.1.0"})
	qa := s.awaitBatchPull("qa", 0, map[string]string{"api": "1.1.0", "web": "1.1.0"})
	s.mergeAs(grace, qa.Index)
	qa = s.getPull(qa.Index)
	landed := *qa.MergedCommitID
	s.checkOneLineIn(landed+"^1", landed, overlayFile("api", "qa"), overlayFile("web", "qa"))
	for _, component := range []string{"api", "web"} {
		s.awaitState(component, "qa", "1.1.0", promotion.Verified)
		s.awaitRunning(component, "qa", "1.1.0")
	}

	prod := s.awaitBatchPull("prod", 0, map[string]string{"api": "1.1.0", "web": "1.1.0"})
	s.approve(ada, prod)
	s.approve(grace, prod)
	s.awaitPull(promotionBranch("batch", "prod"), "prod's train is merged", 0, isMerged)
	for _, component := range []string{"api", "web"} {
		s.awaitState(component, "prod", "1.1.0", promotion.Verified)
	}

	next := map[string]string{"api": "1.2.0-broken-in-qa", "web": "1.2.0"}
	s.pushReleases("dev", next)
	s.mergeAs(grace, s.awaitBatchPull("qa", qa.Index, next).Index)
	revert := s.awaitPull(revertPrefix("batch", "qa"), "the revert in qa is merged", 0, isMerged)
	for _, component := range []string{"api", "web"} {
		s.checkRestored(landed, *revert.MergedCommitID, component, "qa")
		s.awaitState(component, "qa", "1.1.0", promotion.Verified)
		s.awaitRunning(component, "qa", "1.1.0")
	}
	pulls, err := s.liftlockPulls(promotionBranch("batch", "prod"))
	s.must(err)
	if len(pulls) != 1 {
		t.Errorf("prod had %d trains; the one that broke qa should have had none there", len(pulls))
	}
}

// batchSteps leaves qa's merge to a person: a batch that merged by itself would have only the
// members that were ready first.
var batchSteps = strings.Replace(threeSteps, "      merge: auto\n      onDegraded: revert-and-merge\n", "      onDegraded: revert-and-merge\n", 1)

// pushReleases pushes one commit with new tags of several components.
func (s *scenario) pushReleases(env string, tags map[string]string) {
	s.Helper()
	edits := map[string]edit{}
	for c, tag := range tags {
		edits[overlayFile(c, env)] = setTag(c, tag)
	}
	commit := s.pushEdits(dev, "Release into "+env, edits)
	s.Logf("        %s releases %v into %s: %.10s", dev, tags, env, commit)
}

// awaitBatchPull waits for an open pull request into an environment that brings all tags.
func (s *scenario) awaitBatchPull(env string, after int64, tags map[string]string) *gitea.PullRequest {
	s.Helper()
	return s.awaitPull(promotionBranch("batch", env), fmt.Sprintf("%s's train brings %v", env, tags), after, func(p *gitea.PullRequest) error {
		if p.State != gitea.StateOpen {
			return fmt.Errorf("#%d is %s", p.Index, p.State)
		}
		for c, tag := range tags {
			if err := s.checkTag(p, c, env, tag); err != nil {
				return err
			}
		}
		return nil
	})
}
