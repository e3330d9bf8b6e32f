package facts

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
)

// TestUncomputedSince holds that the time counts for one head on one tip, and ends with an
// answer.
func TestUncomputedSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	g := newPullGatherer(nil, func() time.Time { return now }, time.Hour, nil)
	r := &branch.Repository{ID: "hub:acme/fleet"}
	began := now
	for _, c := range []struct {
		name, head, tip string
		mergeable       forge.Mergeable
		want            func() time.Time
	}{
		{"unknown", "h1", "t1", forge.MergeableUnknown, func() time.Time { return began }},
		{"still", "h1", "t1", "", func() time.Time { return began }},
		{"the tip moved", "h1", "t2", forge.MergeableUnknown, func() time.Time { return now }},
		{"the head moved", "h2", "t2", forge.MergeableUnknown, func() time.Time { return now }},
		{"known", "h2", "t2", forge.MergeableYes, func() time.Time { return time.Time{} }},
		{"unknown again", "h2", "t2", forge.MergeableUnknown, func() time.Time { return now }},
	} {
		now = now.Add(time.Minute)
		if c.name == "unknown" {
			began = now
		}
		if got, want := g.uncomputedSince(r, 1, c.head, c.mergeable, c.tip), c.want(); !got.Equal(want) {
			t.Errorf("%s: since %v, wanted %v", c.name, got, want)
		}
	}
}
