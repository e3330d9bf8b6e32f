package story

import (
	"maps"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/forge/github"
)

// TestAppIsLiftlocks: the App of the story asks for what Liftlock's manifest does.
func TestAppIsLiftlocks(t *testing.T) {
	m := github.NewManifest("x", "https://x.example", "hub", "", false)
	if !maps.Equal(m.Permissions, appPermissions) || !slices.Equal(m.Events, appEvents) {
		t.Errorf("%v %v, and the manifest has %v %v", appPermissions, appEvents, m.Permissions, m.Events)
	}
}
