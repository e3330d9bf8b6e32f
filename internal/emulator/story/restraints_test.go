package story_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/emulator/story"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestRestraintsOutliveTheStore deletes the database and the mirrors while
// something restrains: it is found again.
func TestRestraintsOutliveTheStore(t *testing.T) {
	forgetting := how{onDeath: func(w *story.World) {
		if err := forget(w, true); err != nil {
			t.Error(err)
		}
	}}
	for _, c := range []struct {
		name string
		tell func(t *testing.T, r *telling)
	}{
		{"a veto", veto},
		{"a hold on an environment", hold},
		{"a quarantine", quarantine},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, forgetting)
			c.tell(t, r)
			r.restrained()
		})
	}
}

func veto(t *testing.T, r *telling) {
	p := r.openInProd()
	if err := r.world.Forge.ClosePull(story.Repo, p.Number, story.First); err != nil {
		t.Fatal(err)
	}
	r.dies()
	r.waits("prod", "closed by a person")
	if all := r.pullsOf("prod"); len(all) != 1 || all[0].Open {
		t.Errorf("prod's pull requests after the veto: %+v", all)
	}
	r.settled(func() error {
		var got api.Promotions
		err := r.ask("/api/v1/promotions?environment=prod", &got)
		if err == nil && (len(got.Promotions) != 1 || got.Promotions[0].State != promotion.Closed) {
			err = fmt.Errorf("the console's promotions into prod: %+v", got.Promotions)
		}
		return err
	})
}

func hold(t *testing.T, r *telling) {
	p := r.openInProd()
	r.says(p.Number, "/liftlock hold environment until Monday")
	r.dies()
	if err := r.approveAll(); err != nil {
		t.Fatal(err)
	}
	r.waits("prod", "until Monday")
	if now, err := r.world.Forge.Pull(story.Repo, p.Number); err != nil || !now.Open {
		t.Errorf("the held pull request is %+v (%v)", now, err)
	}
	r.says(p.Number, "/liftlock unhold environment")
	r.settled(func() error {
		now, err := r.world.Forge.Pull(story.Repo, p.Number)
		if err == nil && !now.Merged {
			err = errors.New("the pull request isn't merged when the hold is lifted")
		}
		return err
	})
}

func quarantine(t *testing.T, r *telling) {
	if err := r.story(); err != nil {
		t.Fatal(err)
	}
	r.check()
	r.dies()
	r.waits("qa", "was reverted from qa")
	if err := release(r.world, Newer); err != nil {
		t.Fatal(err)
	}
	r.newerOrHeld()
	if ways, err := r.ways(); err != nil || !slices.Contains(ways["prod"], Newer) {
		t.Errorf("a newer release is held up by the quarantine of another: %v (%v)", ways, err)
	}
}

// TestCommandWhileDown gives a command on a closed pull request while the server
// is down: its webhook is lost, and it is taken when the server is back.
func TestCommandWhileDown(t *testing.T) {
	t.Parallel()
	number := 0
	r := begin(t, how{onDeath: func(w *story.World) {
		if _, err := w.Forge.Comment(story.Repo, number, story.First, "/liftlock retry"); err != nil {
			t.Error(err)
		}
	}})
	number = r.openInProd().Number
	if err := r.world.Forge.ClosePull(story.Repo, number, story.First); err != nil {
		t.Fatal(err)
	}
	r.waits("prod", "closed by a person")
	r.dies()
	r.settled(func() error {
		if err := r.approveAll(); err != nil {
			return err
		}
		if all := r.pullsOf("prod"); len(all) != 2 || !all[1].Merged {
			return fmt.Errorf("the retry was not taken: %+v", all)
		}
		return nil
	})
}

// openInProd tells the story until prod's pull request is open.
func (r *telling) openInProd() *emulator.PullRequest {
	r.t.Helper()
	r.settled(func() error {
		if _, err := r.state("prod"); err != nil {
			return err
		}
		return nil
	})
	if err := release(r.world, story.Good); err != nil {
		r.t.Fatal(err)
	}
	var p *emulator.PullRequest
	r.settled(func() error {
		all := r.pullsOf("prod")
		if len(all) == 0 || len(all[0].Comments) == 0 {
			return errors.New("prod has no pull request")
		}
		p = &all[0]
		return nil
	})
	if p == nil {
		r.t.FailNow()
	}
	return p
}

func (r *telling) pullsOf(env string) []emulator.PullRequest {
	r.t.Helper()
	all, err := r.world.Forge.Pulls(story.Repo)
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		ref, _ := promotion.ParseBranch(p.Branch)
		return ref.Environment != env
	})
}

// dies kills the server and waits until it was found dead.
func (r *telling) dies() {
	r.kill()
	<-r.died
}

// says gives a command and waits until it was taken.
func (r *telling) says(pull int, text string) (comment int64) {
	r.t.Helper()
	id, err := r.world.Forge.Comment(story.Repo, pull, story.First, text)
	if err != nil {
		r.t.Fatal(err)
	}
	r.settled(func() error {
		p, err := r.world.Forge.Pull(story.Repo, pull)
		if err != nil {
			return err
		}
		for _, c := range p.Comments {
			if c.ID == id && slices.Contains(c.Reactions, story.Bot+" +1") {
				return nil
			}
		}
		return fmt.Errorf("%q was not taken: %+v", text, p.Comments)
	})
	return id
}

// waits waits until the server says in an environment why nothing happens.
func (r *telling) waits(env, why string) {
	r.t.Helper()
	r.settled(func() error {
		st, err := r.state(env)
		if err == nil && !strings.Contains(show(st), why) {
			err = fmt.Errorf("%s doesn't say %q: %s", env, why, show(st))
		}
		return err
	})
}

func (r *telling) state(env string) (*api.Environment, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), answerWithin)
	defer cancel()
	return story.StateOver(r.world.URL)(ctx, env)
}
