//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// approvedQA merges into qa by itself once ada approved.
const approvedQA = `    - name: dev
      verify: ` + verify + `
    - name: qa
      after: [dev]
      merge: auto
      gates:
        - approvals: {count: 1, from: {users: [ada]}}
      verify: ` + verify + `
`

// Somebody pushes to the overlay that an open pull request edits: to a line that
// isn't carried, and it is composed anew, keeps its approval and merges; to the
// carried field, and it is left alone until a person says promote.
func TestPushToTheSameOverlay(t *testing.T) {
	t.Parallel()
	f := oneWeb()
	f.environments = approvedQA
	s := begin(t, normal, "overlay", f, nil)
	file := overlay("web", "qa")

	s.release("web", "dev", "1.1.0")
	p := s.opened("web", "qa", "1.1.0", 0)
	s.say(ada, p.Index, "/liftlock hold look at the overlay first")
	s.approve(ada, p)
	s.gate("web", "qa", "approvals", "pass")
	s.push(dev, "Say what qa is short for", map[string]edit{file: func(old string) string {
		return strings.Replace(old, "# web in qa\n", "# web in quality assurance\n", 1)
	}})
	s.say(ada, p.Index, "/liftlock unhold")
	merged := s.merged("web", "qa", "1.1.0", 0)
	if merged.Index != p.Index {
		t.Errorf("#%d was merged instead of #%d", merged.Index, p.Index)
	}
	s.oneEnvironment(merged, "web", "qa", 1)
	now, err := s.clone.show(s.ctx, s.w.people[dev], "origin/main", file)
	s.must(err)
	if !strings.Contains(now, "# web in quality assurance") || tagIn(now, "web") != "1.1.0" {
		t.Errorf("the overlay should have both changes:\n%s", now)
	}
	s.state("web", "qa", "1.1.0", promotion.Verified)

	s.release("web", "dev", "1.2.0")
	p = s.opened("web", "qa", "1.2.0", p.Index)
	s.release("web", "qa", "1.1.7")
	s.state("web", "qa", "1.1.7", promotion.Diverged)
	s.approve(ada, s.get(p.Index))
	s.gate("web", "qa", "approvals", "pass")
	s.state("web", "qa", "1.1.7", promotion.Diverged)
	if got := s.get(p.Index); got.HasMerged {
		t.Fatalf("#%d was merged over a person's change", p.Index)
	}

	s.say(ada, p.Index, "/liftlock promote")
	s.approve(ada, s.composedOver(p.Index, "web", "qa", "1.1.7"))
	merged = s.merged("web", "qa", "1.2.0", merged.Index)
	s.oneEnvironment(merged, "web", "qa", 1)
	s.state("web", "qa", "1.2.0", promotion.Verified)
}
