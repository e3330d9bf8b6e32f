package story_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/emulator/story"
	"github.com/liftlock/liftlock/internal/promotion"
)

// beforeAndAfter are the two points of each write.
func beforeAndAfter(places ...string) []string {
	var out []string
	for _, p := range places {
		out = append(out, p+" before", p+" after")
	}
	return out
}

// few takes every third point in the short run.
func few(t *testing.T, points []string) []string {
	t.Helper()
	if *long {
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
	for i, point := range few(t, beforeAndAfter("push refs/heads/liftlock/shop/prod/web#2", "forge update #2#2", "store replaced#1")) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := how{}
			if i%2 == 1 {
				h.onDeath = func(w *story.World) {
					if err := forget(w, false); err != nil {
						t.Error(err)
					}
				}
			}
			at(t, point, h, replacing)
		})
	}
}

func replacing(t *testing.T, r *telling) {
	p := r.openInProd()
	if err := release(r.world, Newer); err != nil {
		t.Fatal(err)
	}
	r.waits("prod", Newer)
	r.settled(func() error {
		now, err := r.world.Forge.Pull(story.Repo, p.Number)
		if err == nil && (!strings.Contains(now.Title, Newer) || !strings.Contains(now.Body, Newer)) {
			err = fmt.Errorf("#%d doesn't say that it carries %s: %s", p.Number, Newer, now.Title)
		}
		return err
	})
	r.newerOrHeld()
	if all := r.pullsOf("prod"); len(all) != 1 || !all[0].Merged {
		t.Errorf("prod's pull requests: %+v", all)
	}
	r.settled(r.tidy)
	r.restrained()
}

// TestKilledWhileAnswering kills the server while it takes commands: each takes
// effect, is acknowledged, and is answered once.
func TestKilledWhileAnswering(t *testing.T) {
	for _, point := range few(t, beforeAndAfter("forge comment #2#2", "forge react #2#1", "forge react #2#2", "forge react #2#3", "forge react #2#4",
		"forge label #2#1", "forge unlabel #2#1", "forge label #2#2", "store addAudit#1", "store addAudit#4", "store ask#1", "store finishAsk#1")) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			at(t, point, how{}, conversing)
		})
	}
}

func conversing(t *testing.T, r *telling) {
	p := r.openInProd()
	asked := r.says(p.Number, "/liftlock status")
	r.says(p.Number, "/liftlock hold no hurry")
	if now, err := r.world.Forge.Pull(story.Repo, p.Number); err != nil || !slices.Contains(now.Labels, promotion.LabelHold) {
		t.Errorf("the hold is not set: %v (%v)", now.Labels, err)
	}
	r.says(p.Number, "/liftlock unhold")
	if now, err := r.world.Forge.Pull(story.Repo, p.Number); err != nil || slices.Contains(now.Labels, promotion.LabelHold) {
		t.Errorf("the hold is not lifted: %v (%v)", now.Labels, err)
	}
	if err := r.world.Forge.ClosePull(story.Repo, p.Number, story.First); err != nil {
		t.Fatal(err)
	}
	r.says(p.Number, "/liftlock retry")
	r.settled(func() error {
		if err := r.approveAll(); err != nil {
			return err
		}
		all := r.pullsOf("prod")
		if !slices.ContainsFunc(all, func(p emulator.PullRequest) bool { return p.Merged }) {
			return fmt.Errorf("prod's pull request did not come again: %+v", all)
		}
		return nil
	})
	r.settled(func() error {
		all := r.pullsOf("prod")
		if len(all) != 2 {
			return fmt.Errorf("%d pull requests in prod, wanted the closed one and its retry", len(all))
		}
		return answered(&all[0], asked)
	})
	r.restrained()
}

// answered holds that a comment has one answer and every command one reaction.
func answered(p *emulator.PullRequest, asked int64) error {
	answers := 0
	var wrong []error
	for _, c := range p.Comments {
		switch {
		case prtext.HasAnswer(c.Body, asked):
			answers++
		case c.User == story.First && !slices.Equal(c.Reactions, []string{story.Bot + " +1"}):
			wrong = append(wrong, fmt.Errorf("%q has the reactions %q", c.Body, c.Reactions))
		}
	}
	if answers != 1 {
		wrong = append(wrong, fmt.Errorf("/liftlock status was answered %d times", answers))
	}
	return errors.Join(wrong...)
}
