package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// runStory follows one release from dev to prod. It returns prod's pull request.
func (ha *harness) runStory() emulator.PullRequest {
	ha.t.Helper()
	ha.awaitJudged()
	ha.commitRelease("web", "1.1.0")
	ha.awaitMerged(ha.awaitPromotion("web", "qa", "1.1.0").Number)
	ha.awaitVerified("web", "qa", "1.1.0")
	p := ha.awaitPromotion("web", "prod", "1.1.0")
	ha.approve(p.Number, "ada")
	ha.approve(p.Number, "grace")
	p = ha.awaitMerged(p.Number)
	ha.awaitVerified("web", "prod", "1.1.0")
	all, err := ha.ownPulls()
	ha.must("list the pull requests", err)
	if len(all) != 2 {
		ha.t.Errorf("the story made %d pull requests, want 2", len(all))
	}
	return p
}

// TestStory also holds that neither file of another environment changed, and
// that a restart without a database finds nothing to do.
func TestStory(t *testing.T) { testStory(t, forgeFace()) }

func testStory(t *testing.T, face emulator.Face) {
	s := startHarness(t, harnessOptions{face: face})
	s.runStory()
	for _, env := range []string{"dev", "qa", "prod"} {
		text, _, err := s.Forge.File(repoName, "main", overlayPath("web", env)+"/kustomization.yaml")
		s.must("read an overlay", err)
		if want := strings.NewReplacer("NAME", "web", "TAG", "1.1.0").Replace(kustomizationTemplate); text != want {
			t.Errorf("%s's overlay is\n%s", env, text)
		}
	}
	s.awaitIdle()
	s.deleteDatabase()
	s.start()
	s.awaitJudged()
	s.awaitIdle()
	if all, err := s.ownPulls(); err != nil || len(all) != 2 {
		t.Errorf("after the database was lost there are %d pull requests (%v), want 2", len(all), err)
	}
}
