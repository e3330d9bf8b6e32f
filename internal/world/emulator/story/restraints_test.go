package story_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// TestRestraintsOutliveTheStore deletes the database and the mirrors while
// something restrains: it is found again.
func TestRestraintsOutliveTheStore(t *testing.T) {
	options := runOptions{onDeath: func(w *story.Fixture) {
		if err := deleteStore(w, true); err != nil {
			t.Error(err)
		}
	}}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *storyRun)
	}{
		{"a veto", runVeto},
		{"a hold on an environment", runHold},
		{"a quarantine", runQuarantine},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, options)
			c.run(t, r)
			r.checkInvariants()
		})
	}
}

func runVeto(t *testing.T, r *storyRun) {
	p := r.awaitOpenInProd()
	if err := r.fixture.Forge.ClosePull(story.Repo, p.Number, story.FirstApprover); err != nil {
		t.Fatal(err)
	}
	r.crashServer()
	r.awaitReason("prod", "closed by a person")
	if all := r.pullsOf("prod"); len(all) != 1 || all[0].Open {
		t.Errorf("prod's pull requests after the veto: %+v", all)
	}
	r.eventually(func() error {
		var got api.Promotions
		err := r.getJSON("/api/v1/promotions?environment=prod", &got)
		if err == nil && (len(got.Promotions) != 1 || got.Promotions[0].State != promotion.Closed) {
			err = fmt.Errorf("the console's promotions into prod: %+v", got.Promotions)
		}
		return err
	})
}

func runHold(t *testing.T, r *storyRun) {
	p := r.awaitOpenInProd()
	r.giveCommand(p.Number, "/liftlock hold environment until Monday")
	r.crashServer()
	if err := r.approveAll(); err != nil {
		t.Fatal(err)
	}
	r.awaitReason("prod", "until Monday")
	if now, err := r.fixture.Forge.Pull(story.Repo, p.Number); err != nil || !now.Open {
		t.Errorf("the held pull request is %+v (%v)", now, err)
	}
	r.giveCommand(p.Number, "/liftlock unhold environment")
	r.eventually(func() error {
		now, err := r.fixture.Forge.Pull(story.Repo, p.Number)
		if err == nil && !now.Merged {
			err = errors.New("the pull request isn't merged when the hold is lifted")
		}
		return err
	})
}

func runQuarantine(t *testing.T, r *storyRun) {
	if err := r.runStory(); err != nil {
		t.Fatal(err)
	}
	r.checkEnd()
	r.crashServer()
	r.awaitReason("qa", "was reverted from qa")
	if err := commitRelease(r.fixture, NewerTag); err != nil {
		t.Fatal(err)
	}
	r.awaitNewerOrHeld()
	if ways, err := r.releaseHistory(); err != nil || !slices.Contains(ways["prod"], NewerTag) {
		t.Errorf("a newer release is held up by the quarantine of another: %v (%v)", ways, err)
	}
}

// TestCommandWhileDown gives a command on a closed pull request while the server
// is down: its webhook is lost, and it is taken when the server is back.
func TestCommandWhileDown(t *testing.T) {
	t.Parallel()
	number := 0
	r := startRun(t, runOptions{onDeath: func(w *story.Fixture) {
		if _, err := w.Forge.Comment(story.Repo, number, story.FirstApprover, "/liftlock retry"); err != nil {
			t.Error(err)
		}
	}})
	number = r.awaitOpenInProd().Number
	if err := r.fixture.Forge.ClosePull(story.Repo, number, story.FirstApprover); err != nil {
		t.Fatal(err)
	}
	r.awaitReason("prod", "closed by a person")
	r.crashServer()
	r.eventually(func() error {
		if err := r.approveAll(); err != nil {
			return err
		}
		if all := r.pullsOf("prod"); len(all) != 2 || !all[1].Merged {
			return fmt.Errorf("the retry was not taken: %+v", all)
		}
		return nil
	})
}

// awaitOpenInProd tells the story until prod's pull request is open.
func (sr *storyRun) awaitOpenInProd() *emulator.PullRequest {
	sr.t.Helper()
	sr.eventually(func() error {
		if _, err := sr.readState("prod"); err != nil {
			return err
		}
		return nil
	})
	if err := commitRelease(sr.fixture, story.GoodTag); err != nil {
		sr.t.Fatal(err)
	}
	var p *emulator.PullRequest
	sr.eventually(func() error {
		all := sr.pullsOf("prod")
		if len(all) == 0 || len(all[0].Comments) == 0 {
			return errors.New("prod has no pull request")
		}
		p = &all[0]
		return nil
	})
	if p == nil {
		sr.t.FailNow()
	}
	return p
}

func (sr *storyRun) pullsOf(env string) []emulator.PullRequest {
	sr.t.Helper()
	all, err := sr.fixture.Pulls()
	if err != nil {
		sr.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p emulator.PullRequest) bool {
		ref, _ := promotion.ParseBranch(p.Branch)
		return ref.Environment != env
	})
}

// crashServer kills the server and waits until it was found dead.
func (sr *storyRun) crashServer() {
	sr.killServer()
	<-sr.died
}

// giveCommand gives a command and waits until it was taken.
func (sr *storyRun) giveCommand(pull int, text string) (comment int64) {
	sr.t.Helper()
	id, err := sr.fixture.Forge.Comment(story.Repo, pull, story.FirstApprover, text)
	if err != nil {
		sr.t.Fatal(err)
	}
	sr.eventually(func() error {
		p, err := sr.fixture.Forge.Pull(story.Repo, pull)
		if err != nil {
			return err
		}
		for _, c := range p.Comments {
			if c.ID == id && slices.Contains(c.Reactions, sr.fixture.Server.Login+" +1") {
				return nil
			}
		}
		return fmt.Errorf("%q was not taken: %+v", text, p.Comments)
	})
	return id
}

// awaitReason waits until the server says in an environment why nothing happens.
func (sr *storyRun) awaitReason(env, why string) {
	sr.t.Helper()
	sr.eventually(func() error {
		st, err := sr.readState(env)
		if err == nil && !strings.Contains(formatEnvironment(st), why) {
			err = fmt.Errorf("%s doesn't say %q: %s", env, why, formatEnvironment(st))
		}
		return err
	})
}

func (sr *storyRun) readState(env string) (*api.Environment, error) {
	ctx, cancel := context.WithTimeout(sr.t.Context(), requestTimeout)
	defer cancel()
	return story.StateReader(sr.fixture.URL)(ctx, env)
}
