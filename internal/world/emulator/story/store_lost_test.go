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
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// NewerTag is the release that lands in dev while the database is gone.
const NewerTag = "1.3.0"

// deleteStore deletes the database and, where asked, the mirrors with it.
func deleteStore(w *story.Fixture, mirrors bool) error {
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

// notablePoints leaves out the commits of the queue and of reads from the forge. With the store
// gone, the next process finds the same there as after the outside write before them.
func notablePoints(all []string) []string {
	quiet := regexp.MustCompile(`^store (accept|claim|finish|freeSlot|prune|putPulls|putState|takeSlot|wake)#`)
	return slices.DeleteFunc(slices.Clone(all), quiet.MatchString)
}

// TestStoreLost deletes the database when the server dies at a point. The story has the same end
// or, where the evidence from before a merge is gone with it, a hold that says what a person must
// decide.
func TestStoreLost(t *testing.T) {
	for i, point := range choosePoints(notablePoints(surveyPoints(t)), 5) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			runWithCrash(t, point, runOptions{onDeath: func(w *story.Fixture) {
				if err := deleteStore(w, i%2 == 1); err != nil {
					t.Error(err)
				}
			}}, func(t *testing.T, r *storyRun) {
				held, err := r.runStoryUntilHeld()
				switch {
				case held:
					r.checkInvariants()
				case err != nil:
					t.Fatal(err)
				default:
					r.storeLost = true
					r.checkEnd()
				}
			})
		})
	}
}

// runStoryUntilHeld tells the story, and gives up when the server, after it died,
// waits in qa for a person who must decide: the story has nobody who would.
func (sr *storyRun) runStoryUntilHeld() (held bool, err error) {
	ctx, cancel := context.WithCancel(sr.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- sr.runStoryWith(ctx) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return false, err
		case <-tick.C:
		}
		if sr.deathCount() > 0 && sr.isHeld("qa", promotion.Degraded) {
			cancel()
			<-done
			return true, nil
		}
	}
}

// TestStoreLostWhileDevMovedOn deletes the database when the server dies at a
// point, and a newer release lands in dev before it is back. Then that one goes
// its way to prod, or the server holds and says what a person must decide.
func TestStoreLostWhileDevMovedOn(t *testing.T) {
	for i, point := range choosePoints(notablePoints(surveyPoints(t)), 5) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			runWithCrash(t, point, runOptions{onDeath: func(w *story.Fixture) {
				if err := errors.Join(deleteStore(w, i%2 == 1), commitRelease(w, NewerTag)); err != nil {
					t.Error(err)
				}
			}}, func(t *testing.T, r *storyRun) {
				done := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { done <- r.runStoryWith(ctx) }()
				select {
				case <-r.died:
					cancel()
					<-done
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					return // the point was not passed this time
				}
				r.awaitNewerOrHeld()
				r.checkInvariants()
			})
		})
	}
}

// commitRelease is a build job's commit into dev.
func commitRelease(w *story.Fixture, tag string) error {
	text, _, err := w.Forge.File(story.Repo, story.Branch, story.Kustomization("dev"))
	if err != nil {
		return err
	}
	before, rest, _ := strings.Cut(text, "newTag: ")
	_, after, _ := strings.Cut(rest, " ")
	_, err = w.Forge.LandAs(story.Repo, story.Author, story.Branch, "Release web "+tag+" to dev",
		map[string]string{story.Kustomization("dev"): before + "newTag: " + tag + " " + after})
	return err
}

// holdPatience is how long a hold must last to be one: a newer release may still
// come in the place of what is held.
const holdPatience = 5 * time.Second

// awaitNewerOrHeld approves the open pull requests in prod, as people do. It ends when prod is
// verified with the newer release, or when the server has long been waiting for a person in qa or
// prod.
func (sr *storyRun) awaitNewerOrHeld() {
	var heldSince time.Time
	sr.eventually(func() error {
		if err := sr.approveAll(); err != nil {
			return err
		}
		prod, err := sr.readState("prod")
		if err != nil {
			return err
		}
		if prod.State == promotion.Verified && strings.Contains(prod.Name, NewerTag) {
			return nil
		}
		if !sr.isHeld("qa", "") && !sr.isHeld("prod", "") {
			heldSince = time.Time{}
		} else if heldSince.IsZero() {
			heldSince = time.Now()
		} else if time.Since(heldSince) > holdPatience {
			sr.t.Log("a person has to decide")
			return nil
		}
		qa, err := sr.readState("qa")
		return errors.Join(err, fmt.Errorf("prod is neither verified with %s nor held\nprod %s\nqa   %s", NewerTag, formatEnvironment(prod), formatEnvironment(qa)))
	})
}

// approveAll approves what is open in prod and isn't approved as it is.
func (sr *storyRun) approveAll() error {
	all, err := sr.fixture.Pulls()
	if err != nil {
		return err
	}
	for _, p := range all {
		ref, _ := promotion.ParseBranch(p.Branch)
		done := len(p.Reviews) > 0 && p.Reviews[len(p.Reviews)-1].Commit == p.Head
		if !p.Open || ref.Environment != "prod" || done {
			continue
		}
		for _, who := range []string{story.FirstApprover, story.SecondApprover} {
			if err := sr.fixture.Forge.Approve(story.Repo, p.Number, who); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestTimeout bounds one question to the API.
const requestTimeout = 5 * time.Second

func formatEnvironment(e *api.Environment) string {
	raw, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// isHeld says whether the server waits in an environment for a person and says
// for what; an empty state means any.
func (sr *storyRun) isHeld(env, state string) bool {
	st, err := sr.readState(env)
	if err != nil || state != "" && st.State != state {
		return false
	}
	raw, err := json.Marshal(st.Why)
	return err == nil && strings.Contains(string(raw), "a person has to decide")
}
