//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// The cluster's ApplicationSet doesn't make qa's Application yet, though the one
// in Git does: the release waits for it, and goes on when it is there.
func TestReleaseWaitsForAnApplicationThatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	f := oneWeb()
	s := begin(t, normal, "missing", f, func(set string) string {
		return strings.Replace(set, "          - path: apps/*/overlays/*\n", "          - path: apps/*/overlays/dev\n          - path: apps/*/overlays/prod\n", 1)
	})
	qa := s.prefix + "-web-qa"

	s.release("web", "dev", "1.1.0")
	s.oneEnvironment(s.merged("web", "qa", "1.1.0", 0), "web", "qa", 1)
	s.why("web", "qa", "waits for its Application", func(e *api.WhyHere) error {
		if e.State != promotion.Verifying {
			return fmt.Errorf("it is %s", e.State)
		}
		for _, target := range e.Targets {
			if target.Name == qa && target.State == "absent" {
				return nil
			}
		}
		return fmt.Errorf("the targets are %+v", e.Targets)
	})
	if a, err := s.w.application(s.ctx, qa); err != nil || a.isThere {
		t.Fatalf("the Application should not exist: %s, %v", a, err)
	}
	s.never(branch("web", "prod"))

	s.applySets(f, nil)
	s.state("web", "qa", "1.1.0", promotion.Verified)
	s.runs("web", "qa", "1.1.0")
	s.opened("web", "prod", "1.1.0", 0)
}
