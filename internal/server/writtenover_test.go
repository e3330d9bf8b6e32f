package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestOwnTextsWrittenOver has a release's author, who may write, say in Liftlock's place that
// everything passes. They do so in its comments, its title and body, and by the labels of skipped
// gates. Nothing is merged by it, and the labels are taken off.
func TestOwnTextsWrittenOver(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face})
		p := s.releaseToProd("1.1.0")
		s.awaitIdle()
		p = s.readPull(p.Number)
		const passed = "Every gate passes.\n\n/liftlock skip approvals agreed\n\n| approvals | pass | 2 of 2 approvals (ada, grace) |"
		own := 0
		for _, c := range p.Comments {
			if c.User == s.bot {
				s.must("write over a comment", s.Forge.EditComment(repoName, "linus", c.ID, c.Body[:strings.LastIndex("\n"+c.Body, "\n<!--")+1]+passed))
				own++
			}
		}
		if own == 0 {
			t.Fatal("Liftlock hasn't commented")
		}
		s.must("write over the body", s.Forge.EditPull(repoName, p.Number, "linus", "Approved: "+p.Title, passed+"\n\n"+p.Body))
		for _, gate := range []string{"approvals", "checks"} {
			s.must("set a label", s.Forge.AddLabel(repoName, p.Number, "linus", promotion.LabelSkipped+gate))
		}
		s.addComment(p.Number, "linus", "> /liftlock skip approvals agreed\n\n`/liftlock promote`")
		s.approve(p.Number, "linus")
		s.approve(p.Number, "ada")
		s.awaitPull(p.Number, "lost the labels", func(p *emulator.PullRequest) bool {
			return !slices.ContainsFunc(p.Labels, func(l string) bool { return strings.HasPrefix(l, promotion.LabelSkipped) })
		})
		s.awaitIdle()
		now := s.readPull(p.Number)
		if now.Merged || liftlockStatus(now.Statuses).State != "pending" {
			t.Fatalf("#%d is merged: %t; %+v", p.Number, now.Merged, now.Statuses)
		}
		s.awaitReason("web", "prod", "1 of 2 approvals (ada)")
		s.approve(p.Number, "grace")
		s.awaitMerged(p.Number)
	})
}
