package server_test

import (
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// teamQA takes releases from dev after an approval from a team.
const teamQA = "name: qa\nafter: [dev]\nmerge: auto\ngates:\n  - approvals: {count: 1, from: {teams: [acme/sre]}}\nverify: " + verifyFast

// TestRenamedTeam holds that the maker of a team under a name that another has given up can't
// approve by it, and that the gate says why. Where the name is given back, the former team's
// approval counts.
func TestRenamedTeam(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, teamQA)})
		s.must("make the team", s.Forge.SetTeam("acme/sre", "", "ada"))
		s.awaitJudged()
		s.commitRelease("web", "1.1.0")
		s.approve(s.awaitPromotion("web", "qa", "1.1.0").Number, "ada")
		s.awaitVerified("web", "qa", "1.1.0")

		s.must("rename it", s.Forge.RenameTeam("acme/sre", "platform"))
		s.must("make another", s.Forge.SetTeam("acme/sre", "", "grace"))
		s.commitRelease("web", "1.2.0")
		p := s.awaitPromotion("web", "qa", "1.2.0")
		s.approve(p.Number, "grace")
		s.awaitReason("web", "qa", "another team has this name by now")
		s.awaitIdle()
		if s.readPull(p.Number).Merged {
			t.Fatal("it was merged on the word of somebody who made a team")
		}
		s.must("rename the other", s.Forge.RenameTeam("acme/sre", "theirs"))
		s.must("give the name back", s.Forge.RenameTeam("acme/platform", "sre"))
		s.approve(p.Number, "ada")
		s.awaitVerified("web", "qa", "1.2.0")
	})
}
