package story_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator/story"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Newer is the release that lands in dev while the database is gone.
const Newer = "1.3.0"

// forget deletes the database and, where asked, the mirrors with it.
func forget(w *story.World, mirrors bool) error {
	gone := []string{"liftlock.db", "liftlock.db-wal", "liftlock.db-shm"}
	if mirrors {
		gone = append(gone, "mirrors")
	}
	for _, f := range gone {
		if err := os.RemoveAll(filepath.Join(w.Dir, "data", f)); err != nil {
			return fmt.Errorf("delete the database: %w", err)
		}
	}
	return nil
}

// notable leaves out the commits of the queue and of what was read from the forge:
// with the store gone, what the next process finds is the same as after the write
// to the outside before them.
func notable(all []string) []string {
	quiet := regexp.MustCompile(`^store (accept|claim|finish|freeSlot|prune|putPulls|putState|takeSlot|wake)#`)
	return slices.DeleteFunc(slices.Clone(all), quiet.MatchString)
}

// TestForgotten deletes the database when the server dies at a point: the same
// end, or, where the evidence from before a merge is gone with it, a hold that
// says what a person must decide.
func TestForgotten(t *testing.T) {
	for i, point := range chosen(notable(survey(t)), 5) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			at(t, point, how{onDeath: func(w *story.World) {
				if err := forget(w, i%2 == 1); err != nil {
					t.Error(err)
				}
			}}, func(t *testing.T, r *telling) {
				held, err := r.storyUntilHeld()
				switch {
				case held:
					r.restrained()
				case err != nil:
					t.Fatal(err)
				default:
					r.forgetful = true
					r.check()
				}
			})
		})
	}
}

// storyUntilHeld tells the story, and gives up when the server, after it died,
// waits in qa for a person who must decide: the story has nobody who would.
func (r *telling) storyUntilHeld() (held bool, err error) {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- r.tell(ctx) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-told:
			return false, err
		case <-tick.C:
		}
		if r.howOftenDied() > 0 && r.holds("qa", promotion.Degraded) {
			cancel()
			<-told
			return true, nil
		}
	}
}

// TestForgottenWhileDevMovedOn deletes the database when the server dies at a
// point, and a newer release lands in dev before it is back. Then that one goes
// its way to prod, or the server holds and says what a person must decide.
func TestForgottenWhileDevMovedOn(t *testing.T) {
	for i, point := range chosen(notable(survey(t)), 5) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			at(t, point, how{onDeath: func(w *story.World) {
				if err := errors.Join(forget(w, i%2 == 1), release(w, Newer)); err != nil {
					t.Error(err)
				}
			}}, func(t *testing.T, r *telling) {
				told := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { told <- r.tell(ctx) }()
				select {
				case <-r.died:
					cancel()
					<-told
				case err := <-told:
					if err != nil {
						t.Fatal(err)
					}
					return // the point was not passed this time
				}
				r.newerOrHeld()
				r.restrained()
			})
		})
	}
}

// release is a build job's commit into dev.
func release(w *story.World, tag string) error {
	text, _, err := w.Forge.File(story.Repo, story.Branch, story.Kustomization("dev"))
	if err != nil {
		return err
	}
	before, rest, _ := strings.Cut(text, "newTag: ")
	_, after, _ := strings.Cut(rest, " ")
	_, err = w.Forge.CommitAs(story.Repo, story.Author, story.Branch, "Release web "+tag+" to dev",
		map[string]string{story.Kustomization("dev"): before + "newTag: " + tag + " " + after})
	return err
}

// patience is how long a hold must last to be one: a newer release may still
// come in the place of what is held.
const patience = 5 * time.Second

// newerOrHeld approves what is open in prod, as people do, until prod is
// verified with the newer release, or the server has long been waiting for a
// person in qa or prod.
func (r *telling) newerOrHeld() {
	var heldSince time.Time
	r.settled(func() error {
		if err := r.approveAll(); err != nil {
			return err
		}
		prod, err := r.state("prod")
		if err != nil {
			return err
		}
		if prod.State == promotion.Verified && strings.Contains(prod.Name, Newer) {
			return nil
		}
		if !r.holds("qa", "") && !r.holds("prod", "") {
			heldSince = time.Time{}
		} else if heldSince.IsZero() {
			heldSince = time.Now()
		} else if time.Since(heldSince) > patience {
			r.t.Log("a person has to decide")
			return nil
		}
		qa, err := r.state("qa")
		return errors.Join(err, fmt.Errorf("prod is neither verified with %s nor held\nprod %s\nqa   %s", Newer, show(prod), show(qa)))
	})
}

// approveAll approves what is open in prod and isn't approved as it is.
func (r *telling) approveAll() error {
	all, err := r.world.Forge.Pulls(story.Repo)
	if err != nil {
		return err
	}
	for _, p := range all {
		ref, _ := promotion.ParseBranch(p.Branch)
		done := len(p.Reviews) > 0 && p.Reviews[len(p.Reviews)-1].Commit == p.Head
		if !p.Open || ref.Environment != "prod" || done {
			continue
		}
		for _, who := range []string{story.First, story.Second} {
			if err := r.world.Forge.Approve(story.Repo, p.Number, who); err != nil {
				return err
			}
		}
	}
	return nil
}

// answerWithin bounds one question to the API.
const answerWithin = 5 * time.Second

func show(e *api.Environment) string {
	raw, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// holds says whether the server waits in an environment for a person and says
// for what; an empty state means any.
func (r *telling) holds(env, state string) bool {
	st, err := r.state(env)
	if err != nil || state != "" && st.State != state {
		return false
	}
	raw, err := json.Marshal(st.Why)
	return err == nil && strings.Contains(string(raw), "a person has to decide")
}
