//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// approvedQA merges into qa by itself once ada or grace approved.
const approvedQA = `    - name: dev
      verify: ` + verify + `
    - name: qa
      after: [dev]
      merge: auto
      gates:
        - approvals: {count: 1, from: {users: [ada, grace]}}
      verify: ` + verify + `
`

// A person pushes to the overlay that an open pull request edits. After a push to a line that isn't
// carried it is composed anew, keeps its approval and merges. After one to the carried field it is
// left alone until a person says promote.
func TestPushToTheSameOverlay(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.environments = approvedQA
	s := startScenario(t, normalCluster, "overlay", f, nil)
	file := overlayFile("web", "qa")

	s.pushRelease("web", "dev", "1.1.0")
	p := s.awaitOpen("web", "qa", "1.1.0", 0)
	s.addComment(ada, p.Index, "/liftlock hold look at the overlay first")
	s.approve(ada, p)
	s.awaitGate("web", "qa", "approvals", "pass")
	s.pushEdits(dev, "Say what qa is short for", map[string]edit{file: func(old string) string {
		return strings.Replace(old, "# web in qa\n", "# web in quality assurance\n", 1)
	}})
	s.addComment(ada, p.Index, "/liftlock unhold")
	merged := s.awaitMerged("web", "qa", "1.1.0", 0)
	if merged.Index != p.Index {
		t.Errorf("#%d was merged instead of #%d", merged.Index, p.Index)
	}
	s.checkOneEnvironment(merged, "web", "qa", 1)
	now, err := s.clone.readFile(s.ctx, s.cluster.accounts[dev], "origin/main", file)
	s.must(err)
	if !strings.Contains(now, "# web in quality assurance") || tagIn(now, "web") != "1.1.0" {
		t.Errorf("the overlay should have both changes:\n%s", now)
	}
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)

	s.pushRelease("web", "dev", "1.2.0")
	p = s.awaitOpen("web", "qa", "1.2.0", p.Index)
	s.pushRelease("web", "qa", "1.1.7")
	s.awaitState("web", "qa", "1.1.7", promotion.Diverged)
	s.approve(ada, s.getPull(p.Index))
	s.awaitGate("web", "qa", "approvals", "pass")
	s.awaitState("web", "qa", "1.1.7", promotion.Diverged)
	if got := s.getPull(p.Index); got.HasMerged {
		t.Fatalf("#%d was merged over a person's change", p.Index)
	}

	s.addComment(ada, p.Index, "/liftlock promote")
	s.approve(grace, s.awaitComposedOver(p.Index, "web", "qa", "1.1.7"))
	merged = s.awaitMerged("web", "qa", "1.2.0", merged.Index)
	s.checkOneEnvironment(merged, "web", "qa", 1)
	s.awaitState("web", "qa", "1.2.0", promotion.Verified)
}
