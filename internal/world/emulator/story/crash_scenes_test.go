package story_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// beforeAndAfter are the two points of each write.
func beforeAndAfter(places ...string) []string {
	var out []string
	for _, p := range places {
		out = append(out, p+" before", p+" after")
	}
	return out
}

// everyThird takes every third point in the short run.
func everyThird(t *testing.T, points []string) []string {
	t.Helper()
	if *runLong {
		return points
	}
	var out []string
	for i := int(*seed % 3); i < len(points); i += 3 {
		out = append(out, points[i])
	}
	return out
}

// TestKilledWhileReplacing kills the server while a newer release takes the place
// of an open one, and lets it forget everything every other time.
func TestKilledWhileReplacing(t *testing.T) {
	for i, point := range everyThird(t, beforeAndAfter("push refs/heads/liftlock/shop/prod/web#2", "forge update "+prodPull()+"2", "store replaced#1")) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := runOptions{}
			if i%2 == 1 {
				h.onDeath = func(w *story.Fixture) {
					if err := deleteStore(w, false); err != nil {
						t.Error(err)
					}
				}
			}
			runWithCrash(t, point, h, replaceRelease)
		})
	}
}

func replaceRelease(t *testing.T, r *storyRun) {
	p := r.awaitOpenInProd()
	if err := commitRelease(r.fixture, NewerTag); err != nil {
		t.Fatal(err)
	}
	r.awaitReason("prod", NewerTag)
	r.eventually(func() error {
		now, err := r.fixture.Forge.Pull(story.Repo, p.Number)
		if err == nil && (!strings.Contains(now.Title, NewerTag) || !strings.Contains(now.Body, NewerTag)) {
			err = fmt.Errorf("#%d doesn't say that it carries %s: %s", p.Number, NewerTag, now.Title)
		}
		return err
	})
	r.awaitNewerOrHeld()
	if all := r.pullsOf("prod"); len(all) != 1 || !all[0].Merged {
		t.Errorf("prod's pull requests: %+v", all)
	}
	r.eventually(r.checkForgeTidy)
	r.checkInvariants()
}

// prodPull is how the points name prod's first pull request, without which call it is.
func prodPull() string {
	if forgeFace() == emulator.GitLab {
		return "#3#" // the release came by one, too
	}
	return "#2#"
}

// TestKilledWhileAnswering kills the server while it takes commands: each takes
// effect, is acknowledged, and is answered once.
func TestKilledWhileAnswering(t *testing.T) {
	pull := prodPull()
	for _, point := range everyThird(t, beforeAndAfter("forge comment "+pull+"2", "forge react "+pull+"1", "forge react "+pull+"2", "forge react "+pull+"3", "forge react "+pull+"4",
		"forge label "+pull+"1", "forge unlabel "+pull+"1", "forge label "+pull+"2", "store addAudit#1", "store addAudit#4", "store command#1", "store finishPendingCommand#1")) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			runWithCrash(t, point, runOptions{}, giveCommands)
		})
	}
}

func giveCommands(t *testing.T, r *storyRun) {
	p := r.awaitOpenInProd()
	question := r.giveCommand(p.Number, "/liftlock status")
	r.giveCommand(p.Number, "/liftlock hold no hurry")
	if now, err := r.fixture.Forge.Pull(story.Repo, p.Number); err != nil || !slices.Contains(now.Labels, promotion.LabelHold) {
		t.Errorf("the hold is not set: %v (%v)", now.Labels, err)
	}
	r.giveCommand(p.Number, "/liftlock unhold")
	if now, err := r.fixture.Forge.Pull(story.Repo, p.Number); err != nil || slices.Contains(now.Labels, promotion.LabelHold) {
		t.Errorf("the hold is not lifted: %v (%v)", now.Labels, err)
	}
	if err := r.fixture.Forge.ClosePull(story.Repo, p.Number, story.FirstApprover); err != nil {
		t.Fatal(err)
	}
	r.giveCommand(p.Number, "/liftlock retry")
	r.eventually(func() error {
		if err := r.approveAll(); err != nil {
			return err
		}
		all := r.pullsOf("prod")
		if !slices.ContainsFunc(all, func(p emulator.PullRequest) bool { return p.Merged }) {
			return fmt.Errorf("prod's pull request did not come again: %+v", all)
		}
		return nil
	})
	r.eventually(func() error {
		all := r.pullsOf("prod")
		if len(all) != 2 {
			return fmt.Errorf("%d pull requests in prod, wanted the closed one and its retry", len(all))
		}
		return r.checkAnswered(&all[0], question)
	})
	r.checkInvariants()
}

// checkAnswered holds that a comment has one answer and every command one reaction.
func (sr *storyRun) checkAnswered(p *emulator.PullRequest, question int64) error {
	answers := 0
	var wrong []error
	for _, c := range p.Comments {
		switch {
		case prtext.IsReplyTo(c.Body, question):
			answers++
		case c.User == story.FirstApprover && !slices.Equal(c.Reactions, []string{sr.fixture.Server.Login + " +1"}):
			wrong = append(wrong, fmt.Errorf("%q has the reactions %q", c.Body, c.Reactions))
		}
	}
	if answers != 1 {
		wrong = append(wrong, fmt.Errorf("/liftlock status was answered %d times", answers))
	}
	return errors.Join(wrong...)
}
