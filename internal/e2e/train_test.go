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
func TestTrainOfComponentsTravelsAndComesBackTogether(t *testing.T) {
	t.Parallel()
	f := fleet{components: map[string][]string{"api": {"api"}, "web": {"web"}}, environments: trainSteps, spec: "  batch: environment\n",
		sets: map[string]string{"shop.yaml": byDirectory}}
	s := begin(t, normal, "train", f, nil)

	s.releases("dev", map[string]string{"api": "1.1.0", "web": "1.1.0"})
	qa := s.train("qa", 0, map[string]string{"api": "1.1.0", "web": "1.1.0"})
	s.mergeBy(grace, qa.Index)
	qa = s.get(qa.Index)
	landed := *qa.MergedCommitID
	s.changesOneLineIn(landed+"^1", landed, overlay("api", "qa"), overlay("web", "qa"))
	for _, component := range []string{"api", "web"} {
		s.state(component, "qa", "1.1.0", promotion.Verified)
		s.runs(component, "qa", "1.1.0")
	}

	prod := s.train("prod", 0, map[string]string{"api": "1.1.0", "web": "1.1.0"})
	s.approve(ada, prod)
	s.approve(grace, prod)
	s.pull(branch("batch", "prod"), "prod's train is merged", 0, isMerged)
	for _, component := range []string{"api", "web"} {
		s.state(component, "prod", "1.1.0", promotion.Verified)
	}

	next := map[string]string{"api": "1.2.0-broken-in-qa", "web": "1.2.0"}
	s.releases("dev", next)
	s.mergeBy(grace, s.train("qa", qa.Index, next).Index)
	undo := s.pull(revertPrefix("batch", "qa"), "the revert in qa is merged", 0, isMerged)
	for _, component := range []string{"api", "web"} {
		s.restores(landed, *undo.MergedCommitID, component, "qa")
		s.state(component, "qa", "1.1.0", promotion.Verified)
		s.runs(component, "qa", "1.1.0")
	}
	pulls, err := s.mine(branch("batch", "prod"))
	s.must(err)
	if len(pulls) != 1 {
		t.Errorf("prod had %d trains; the one that broke qa should have had none there", len(pulls))
	}
}

// trainSteps leaves qa's merge to a person: a train that left by itself would
// leave with whoever was ready first.
var trainSteps = strings.Replace(threeSteps, "      merge: auto\n      onDegraded: revert-and-merge\n", "      onDegraded: revert-and-merge\n", 1)

// releases pushes one commit with new tags of several components.
func (s *story) releases(env string, tags map[string]string) {
	s.Helper()
	edits := map[string]edit{}
	for c, tag := range tags {
		edits[overlay(c, env)] = setTag(c, tag)
	}
	commit := s.push(dev, "Release into "+env, edits)
	s.Logf("        %s releases %v into %s: %.10s", dev, tags, env, commit)
}

// train waits for an open pull request into an environment that brings all tags.
func (s *story) train(env string, after int64, tags map[string]string) *gitea.PullRequest {
	s.Helper()
	return s.pull(branch("batch", env), fmt.Sprintf("%s's train brings %v", env, tags), after, func(p *gitea.PullRequest) error {
		if p.State != gitea.StateOpen {
			return fmt.Errorf("#%d is %s", p.Index, p.State)
		}
		for c, tag := range tags {
			if err := s.brings(p, c, env, tag); err != nil {
				return err
			}
		}
		return nil
	})
}
