//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// A newer release takes an open pull request's place in it; once that is approved,
// the newer one waits its turn.
func TestNewerReleaseReplacesAndWaitsBehindAnApprovedOne(t *testing.T) {
	t.Parallel()
	f := oneWeb()
	f.environments = manualQA
	s := begin(t, normal, "turn", f, nil)

	s.release("web", "dev", "1.1.0")
	p := s.opened("web", "qa", "1.1.0", 0)
	s.release("web", "dev", "1.2.0")
	replaced := s.opened("web", "qa", "1.2.0", 0)
	if replaced.Index != p.Index {
		t.Fatalf("the newer release has #%d; it should have replaced the one in #%d", replaced.Index, p.Index)
	}
	titled := s.titled(p.Index, "1.2.0")
	if strings.Contains(titled.Title+titled.Body, "1.1.0") {
		t.Errorf("#%d still speaks of 1.1.0: %s\n%s", p.Index, titled.Title, titled.Body)
	}

	s.approve(ada, titled)
	s.release("web", "dev", "1.3.0")
	s.says("web", "qa", "newer-waits")
	s.must(s.brings(s.get(p.Index), "web", "qa", "1.2.0"))
	s.mergeBy(ada, p.Index)
	s.oneEnvironment(s.merged("web", "qa", "1.2.0", 0), "web", "qa", 1)
	next := s.opened("web", "qa", "1.3.0", p.Index)
	s.state("web", "qa", "1.2.0", promotion.Verified)
	s.mergeBy(ada, next.Index)
	s.oneEnvironment(s.merged("web", "qa", "1.3.0", p.Index), "web", "qa", 1)
}
