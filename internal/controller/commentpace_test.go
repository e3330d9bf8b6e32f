package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestAnEditThatIsPutOffIsMade holds that a unit looks again when a comment's edit was put
// off, and makes it then.
func TestAnEditThatIsPutOffIsMade(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	shown := func() string { return w.pulls()[0].Comments[0].Body }
	w.settle("web", "a comment says what is asked", func() bool { return len(w.pulls()[0].Comments) == 1 && strings.Contains(shown(), "A person merges it") })
	look := func() (next time.Duration) {
		t.Helper()
		w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
		at, err := w.runKey(t.Context(), wake.ForUnit(w.unit("web")).String())
		w.must(err)
		return at.Sub(w.clock.Now())
	}
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	look()
	if !strings.Contains(shown(), "On hold") {
		t.Fatalf("a hold isn't told at once: %s", shown())
	}
	w.must(w.forge.RemoveLabel(repoName, p.Number, "linus", promotion.LabelHold))
	next := look()
	if !strings.Contains(shown(), "On hold") || next <= 0 || next > 30*time.Second {
		t.Fatalf("the next look is in %s, after %s", next, shown())
	}
	w.clock.Step(next)
	look()
	if !strings.Contains(shown(), "A person merges it") {
		t.Errorf("it says still: %s", shown())
	}
}
