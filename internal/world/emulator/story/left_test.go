package story_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// TestWorkIsLeft holds that the demo leaves a promotion that waits for approvals, that it breaks once it is approved, and
// that its revert is a person's to merge and says so.
func TestWorkIsLeft(t *testing.T) {
	t.Parallel()
	r := startRun(t, runOptions{})
	if err := r.runStory(); err != nil {
		t.Fatal(err)
	}
	s := &story.Story{Fixture: r.fixture, Narrate: func(string, string) {}, State: story.StateReader(r.fixture.URL)}
	left, err := s.LeaveWork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revert, err := s.ApproveWork(t.Context(), left)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(revert.Body, "**prod is down since ") || !strings.Contains(revert.Body, "Merge this to bring "+story.GoodTag+" back.**") {
		t.Errorf("the revert says\n%s", revert.Body)
	}
	if err := s.MergeWork(t.Context(), revert); err != nil {
		t.Fatal(err)
	}
}
