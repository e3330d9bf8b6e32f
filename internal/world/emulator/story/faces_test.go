package story_test

import (
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestEitherForge tells the story on each face of the emulated forge: the same end.
func TestEitherForge(t *testing.T) {
	for _, face := range []emulator.Face{emulator.GitHub, emulator.GitHubApp, emulator.GitLab} {
		t.Run(string(face), func(t *testing.T) {
			t.Parallel()
			r := startRun(t, runOptions{face: face})
			if err := r.runStory(); err != nil {
				t.Fatal(err)
			}
			r.checkEnd()
		})
	}
}

// TestKilledOnOtherFaces kills the server at random moments on the other faces of the forge, once
// on each.
func TestKilledOnOtherFaces(t *testing.T) {
	for _, face := range []emulator.Face{emulator.GitHubApp, emulator.GitLab} {
		if forgeFace() == face {
			continue // TestKilledAtRandom does
		}
		t.Run(string(face), func(t *testing.T) {
			t.Parallel()
			runKilledAtRandom(t, *seed, runOptions{face: face})
		})
	}
}
