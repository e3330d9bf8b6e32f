package server_test

import (
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestMovedProject holds that the webhook of a project that was moved to another group wakes the
// repository at once. It does so although it carries the new path, and polls and sweeps are an hour
// apart.
func TestMovedProject(t *testing.T) {
	s := startHarness(t, harnessOptions{face: emulator.GitLab, manageHook: true, pipeline: pipelineYAML(nil, dev, manualQA)})
	p := s.openManually()
	const moved = "globex/platform/ships"
	s.must("move the project", s.Forge.MoveRepository(repoName, moved))
	id, err := s.Forge.Comment(moved, p.Number, "ada", "/liftlock status")
	s.must("comment", err)
	s.waitFor("the comment is acknowledged", func() (bool, string) {
		now, err := s.Forge.Pull(moved, p.Number)
		s.must("read the merge request", err)
		for _, c := range now.Comments {
			if c.ID == id && len(c.Reactions) > 0 {
				return true, ""
			}
		}
		return false, "nothing reacts to it"
	})
}
