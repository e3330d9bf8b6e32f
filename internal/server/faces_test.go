package server_test

import (
	"testing"

	"github.com/liftlock/liftlock/internal/emulator"
)

// TestOnGitLab tells a few of the stories on GitLab's face too. make stories FORGE=gitlab tells
// all of them on it.
func TestOnGitLab(t *testing.T) {
	if forgeFace() == emulator.GitLab {
		t.Skip("all stories are told on it")
	}
	for name, run := range map[string]func(*testing.T, emulator.Face){
		"the main job and a lost database": testStory,
		"branches":                         testStoryOnBranches,
		"a batch":                          testBatch,
		"a revert by command":              testRevertByCommand,
		"a person's squash":                testSquashByPerson,
	} {
		t.Run(name, func(t *testing.T) { run(t, emulator.GitLab) })
	}
}
