//go:build e2e

package e2e

import (
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Somebody fixes prod by hand: Liftlock leaves it alone until a person who may
// says promote.
func TestProdFixedByHandIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := begin(t, normal, "hotfix", oneWeb(), nil)

	s.release("web", "prod", "1.0.1-hotfix")
	s.state("web", "prod", "1.0.1-hotfix", promotion.Diverged)
	s.release("web", "dev", "1.1.0")
	qa := s.merged("web", "qa", "1.1.0", 0)
	s.oneEnvironment(qa, "web", "qa", 1)
	s.state("web", "qa", "1.1.0", promotion.Verified)
	s.says("web", "prod", "diverged")
	s.never(branch("web", "prod"))
	s.never(revertPrefix("web", "prod"))
	s.runs("web", "prod", "1.0.1-hotfix")
	if got := s.tag("web", "prod"); got != "1.0.1-hotfix" {
		t.Fatalf("prod has %s", got)
	}

	s.say(ada, qa.Index, "/liftlock promote prod")
	p := s.opened("web", "prod", "1.1.0", 0)
	s.approve(ada, p)
	s.approve(grace, p)
	s.oneEnvironment(s.merged("web", "prod", "1.1.0", 0), "web", "prod", 1)
	s.state("web", "prod", "1.1.0", promotion.Verified)
}
