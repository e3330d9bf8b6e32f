package prtext

import (
	"slices"
	"strings"
	"testing"
)

// TestRenderedNotes holds that what Argo CD ignores and how its rendering parts from ours is said beside what changes.
func TestRenderedNotes(t *testing.T) {
	const ignored, differs = "spec.replicas of Deployment web", "only Argo CD's has Service web added"
	list := []Rendered{{Target: "a", Summary: "1 changed"}, {Target: "b", Summary: "1 changed", Ignored: ignored}, {Target: "c", Summary: "1 changed", Ignored: ignored, Disagreement: differs}}
	var got []string
	for _, g := range groupByChange(list) {
		got = append(got, g.describe())
	}
	want := []string{"- `a`: 1 changed", "- `b`: 1 changed; Argo CD ignores " + ignored + " and says Synced whether that arrives or not",
		"- `c`: 1 changed; Argo CD ignores " + ignored + " and says Synced whether that arrives or not; Liftlock renders it otherwise: " + differs}
	if !slices.Equal(got, want) {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
