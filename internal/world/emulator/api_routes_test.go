package emulator

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator/githubshape"
)

// TestRoutesAreGitHubs: every call that the emulator has is one of GitHub's, by its description.
func TestRoutesAreGitHubs(t *testing.T) {
	for _, release := range githubshape.Releases {
		described, err := githubshape.Describe(release)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range routes {
			if !described.Has(r.pattern) && !strings.HasSuffix(r.pattern, " /graphql") {
				t.Errorf("%s isn't %s's; if it is, add it to operations.txt and run regenerate.sh", r.pattern, release)
			}
		}
	}
}
