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
func TestOldCommitIsNeverTakenForTheNewOne(t *testing.T) {
	t.Parallel()
	s := prepare(t, slow, "stale", oneWeb())
	s.applySets(oneWeb(), nil)
	s.settle()
	s.server.refresh = "off"
	s.startServer()
	name := s.prefix + "-web-dev"
	before, err := s.w.application(s.ctx, name)
	s.must(err)

	commit := s.release("web", "dev", "1.1.0")
	s.state("web", "dev", "1.1.0", promotion.Verifying)
	for _, nth := range []string{"first", "second"} {
		last := before
		before = eventually(s, "Argo CD says once more that all is well with the old commit, for the "+nth+" time", func() (app, error) {
			a, err := s.w.application(s.ctx, name)
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
	s.state("web", "dev", "1.1.0", promotion.Verifying)
	s.never(branch("web", "qa"))

	s.stopServer()
	s.server.refresh = "annotation"
	s.startServer()
	qa := s.merged("web", "qa", "1.1.0", 0)
	s.oneEnvironment(qa, "web", "qa", 1)
	a, err := s.w.application(s.ctx, name)
	s.must(err)
	if _, err := s.clone.git(s.ctx, s.w.people[dev], "merge-base", "--is-ancestor", commit, a.revision); err != nil {
		t.Errorf("qa's pull request was merged while dev's Application was at %s, which doesn't have %s: %v", a.revision, commit, err)
	}
	s.state("web", "qa", "1.1.0", promotion.Verified)
	qaApp, err := s.w.application(s.ctx, s.prefix+"-web-qa")
	s.must(err)
	if _, err := s.clone.git(s.ctx, s.w.people[dev], "merge-base", "--is-ancestor", *qa.MergedCommitID, qaApp.revision); err != nil {
		t.Errorf("qa is called verified, but its Application doesn't have the merge: %v", fmt.Errorf("%s: %w", qaApp, err))
	}
	s.runs("web", "qa", "1.1.0")
	s.opened("web", "prod", "1.1.0", 0)
}
