package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// commentEditedAtOnce has somebody comment, and somebody else edit that before the forge's clock shows it.
func (ha *harness) commentEditedAtOnce(number int, author, editor, body string) int64 {
	ha.t.Helper()
	var id int64
	ha.waitFor("an edit that the comment's times don't show", func() (bool, string) {
		id = ha.addComment(number, author, "looks good")
		ha.must("edit a comment", ha.Forge.EditComment(repoName, editor, id, body))
		p := ha.readPull(number)
		i := slices.IndexFunc(p.Comments, func(c emulator.Comment) bool { return c.ID == id })
		return ha.Forge.Face() == emulator.GitLab || p.Comments[i].Updated.Equal(p.Comments[i].Created), "the second was over"
	})
	return id
}

// TestACommentEditedByAnother holds on each face that an approver's comment that the release's
// author edits, in the second in which it was written, lifts no hold. GitHub tells who edited it,
// and GitLab's times show it.
func TestACommentEditedByAnother(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		timings := argoemulator.FastTimings()
		timings.WholeSeconds = face != emulator.GitLab // whose notes have milliseconds
		s := startHarness(t, harnessOptions{face: face, timings: timings})
		p := s.releaseToProd("1.1.0")
		s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock hold pr the database is moving"), "+1")
		id := s.commentEditedAtOnce(p.Number, "grace", "linus", "/liftlock unhold")
		if face == emulator.GitLab {
			s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock status"), "+1")
		} else if a := s.awaitReaction(p.Number, id, "confused"); !strings.Contains(a, "linus edited the comment") {
			t.Errorf("it is answered by %q", a)
		}
		s.awaitIdle()
		if now := s.readPull(p.Number); !slices.Contains(now.Labels, promotion.LabelHold) {
			t.Errorf("the hold is lifted: %q", now.Labels)
		}
		s.awaitReaction(p.Number, s.addComment(p.Number, "grace", "/liftlock unhold"), "+1")
		s.awaitPull(p.Number, "isn't held", func(p *emulator.PullRequest) bool { return !slices.Contains(p.Labels, promotion.LabelHold) })
	})
}
