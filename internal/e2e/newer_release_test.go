//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// A newer release takes an open pull request's place in it; once that is approved,
// the newer one waits its turn.
func TestNewerReleaseReplacesAndWaitsBehindAnApprovedOne(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.environments = manualQA + "      gates: [approvals: {count: 1, from: {users: [ada]}}]\n"
	s := startScenario(t, normalCluster, "turn", f, nil)

	s.pushRelease("web", "dev", "1.1.0")
	p := s.awaitOpen("web", "qa", "1.1.0", 0)
	s.pushRelease("web", "dev", "1.2.0")
	replaced := s.awaitOpen("web", "qa", "1.2.0", 0)
	if replaced.Index != p.Index {
		t.Fatalf("the newer release has #%d; it should have replaced the one in #%d", replaced.Index, p.Index)
	}
	titled := s.awaitTitle(p.Index, "1.2.0")
	// The section on its authors tells of skipped releases too.
	_, body, moves := strings.Cut(titled.Body, "### What moves")
	body, _, _ = strings.Cut(body, "###")
	if !moves || strings.Contains(titled.Title+body, "1.1.0") {
		t.Errorf("#%d still speaks of 1.1.0: %s\n%s", p.Index, titled.Title, titled.Body)
	}

	s.approve(ada, titled)
	s.awaitGate("web", "qa", "approvals", "pass")
	s.pushRelease("web", "dev", "1.3.0")
	s.awaitReason("web", "qa", cause.NewerWaits)
	s.must(s.checkTag(s.getPull(p.Index), "web", "qa", "1.2.0"))
	s.mergeAs(ada, p.Index)
	s.checkOneEnvironment(s.awaitMerged("web", "qa", "1.2.0", 0), "web", "qa", 1)
	next := s.awaitOpen("web", "qa", "1.3.0", p.Index)
	s.awaitState("web", "qa", "1.2.0", promotion.Verified)
	s.approve(ada, next)
	s.mergeAs(ada, next.Index)
	s.checkOneEnvironment(s.awaitMerged("web", "qa", "1.3.0", p.Index), "web", "qa", 1)
}
