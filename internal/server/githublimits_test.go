package server_test

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// githubHourly is what GitHub publishes of calls in an hour, of a user and of a small installation.
const githubHourly = 5000

// TestPromotionsAtOnceOnGitHub has 500 releases promoted at once on a GitHub that enforces the
// limits that github.com publishes, and a tenth of them. At the published ones it refuses no call.
// At a tenth, which only its refusals tell of, all end as well, and open pull requests merge soon
// although comments wait. The short form has a few, and half of the cases.
func TestPromotionsAtOnceOnGitHub(t *testing.T) {
	t.Parallel()
	promotions, step := 8, 5*time.Second
	if *runLong {
		promotions, step = 500, time.Minute
	}
	for _, c := range []struct {
		name  string
		share int
		face  emulator.Face
	}{
		{"as published with a token", 1, emulator.GitHub}, {"as published as an App", 1, emulator.GitHubApp},
		{"a tenth with a token", 10, emulator.GitHub}, {"a tenth as an App", 10, emulator.GitHubApp},
	} {
		if !*runLong && (c.face == emulator.GitHubApp) == (c.share == 1) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := startAtOnce(t, promotions, harnessOptions{face: c.face, rateLimit: githubHourly / c.share, secondaryShare: c.share, forgeLines: "    publicLimits: true\n"})
			s.promoteAtOnce(step, s.awaitNothingDue)
			if refused := s.Forge.Limited(); c.share == 1 && refused > 0 {
				t.Errorf("%d calls were refused", refused)
			} else if c.share > 1 && refused == 0 {
				t.Error("no call was refused: the limits aren't a tenth")
			}
			all, err := s.ownPulls()
			s.must("list the pull requests", err)
			longest := time.Duration(0)
			for _, p := range all {
				longest = max(longest, p.MergedAt.Sub(p.Created))
			}
			t.Logf("the longest between a pull request and its merge: %s", longest)
			if longest > 15*time.Minute && !*runLong { // for which refusals alone close it, at most
				t.Errorf("a merge waited for %s, as for what is only said", longest)
			}
		})
	}
}
