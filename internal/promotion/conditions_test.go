package promotion

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/policies"
)

// TestOwnGates holds that each of Liftlock's own conditions is declared once and has no name of a
// kind of the pipeline's.
func TestOwnGates(t *testing.T) {
	var seen []policies.GateName
	for _, g := range ownGates {
		if slices.Contains(seen, g.name) || slices.Contains(policies.Kinds(), g.name) {
			t.Errorf("%s is declared twice", g.name)
		}
		seen = append(seen, g.name)
	}
	for name, want := range map[policies.GateName]bool{GateHold: true, GateLimit: false, policies.GateSoak: true, "nothing": false} {
		if got := IsMergedPast(name); got != want {
			t.Errorf("a person who merges what waits at %s goes past it: %t, want %t", name, got, want)
		}
	}
}
