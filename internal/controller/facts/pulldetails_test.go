package facts

import (
	"context"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// undecidedForge is one that is computing for ever whether a pull request can be merged.
type undecidedForge struct {
	forge.Forge
	reads int
}

func (f *undecidedForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	f.reads++
	pr, err := f.Forge.PullRequest(ctx, r, number)
	if err == nil {
		pr.Mergeable = forge.MergeableUnknown
	}
	return pr, err
}

// TestReviewsAndChecksOfOneReading holds that a look has the reviews and the checks of a pull
// request, and reads it once, also while the forge can't say whether it can be merged.
func TestReviewsAndChecksOfOneReading(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev], merge: auto, gates: [{approvals: {count: 1}}, {checks: {require: [build]}}]}
`, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	f := &undecidedForge{Forge: w.repo.Forge}
	w.repo.Forge = f
	for look := 1; look <= 3; look++ {
		ev, _ = w.evaluate("web", false)
		p := ev.OpenPulls[n]
		if !p.Review.ChecksRead || p.Review.ApprovalsErr != "" || !p.UncomputedSince.Equal(w.now) {
			t.Fatalf("look %d: %+v", look, p.Review)
		}
		if f.reads != look {
			t.Errorf("look %d read it %d times", look, f.reads)
		}
	}
}
