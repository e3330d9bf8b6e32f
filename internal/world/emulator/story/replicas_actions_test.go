package story_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

const (
	// actEvery is how often people, and who builds releases, look at what there is.
	actEvery = 250 * time.Millisecond
	// heldFor is how long a hold lasts at least.
	heldFor = time.Second
)

// actUntil lets people act until done is closed: they release, approve, merge, hold and
// lift holds.
func (r *replicaRun) actUntil(done <-chan struct{}, random *rand.Rand) {
	tick := time.NewTicker(actEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for _, f := range r.repositories {
			if err := r.actIn(f, random); err != nil {
				r.t.Errorf("acting in %s: %v", f.name, err)
				return
			}
		}
	}
}

func (r *replicaRun) isEnding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

func (r *replicaRun) actIn(f *replicatedRepository, random *rand.Rand) error {
	pulls := r.listPulls(f.name, "")
	for _, c := range f.components {
		// The commented repository's one release waits in prod to the end.
		if waits := r.isEnding() || f.name == commentedRepository && c.released > 0; waits || !isSettled(pulls, c) {
			continue
		}
		c.released++
		if _, err := r.forge.LandAs(f.name, story.Author, story.Branch, "Release "+c.name,
			map[string]string{replicatedOverlay(c.name, "dev"): replicatedKustomization(c.name, releaseTag(c.released))}); err != nil {
			return err
		}
	}
	for _, p := range pulls {
		if ref, _ := promotion.ParseBranch(p.Branch); p.Open && ref.Environment == "prod" {
			if err := r.actOn(f, p, random); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSettled says that a component's last release is in prod, or was taken back from qa.
func isSettled(pulls []emulator.PullRequest, c *releasedComponent) bool {
	if c.released == 0 {
		return true
	}
	tag := releaseTag(c.released)
	return slices.ContainsFunc(pulls, func(p emulator.PullRequest) bool {
		ref, _ := promotion.ParseBranch(p.Branch)
		return p.Merged && ref.Component == c.name && (ref.Environment == "prod" || ref.Revert) && releaseTags.FindString(p.Title) == tag
	})
}

// actOn is what people do about a pull request into prod.
func (r *replicaRun) actOn(f *replicatedRepository, p emulator.PullRequest, random *rand.Rand) error {
	if f.name == commentedRepository && !r.isEnding() {
		return nil
	}
	held := slices.Contains(p.Labels, promotion.LabelHold)
	r.mu.Lock()
	at, known := r.heldAt[p.URL]
	r.mu.Unlock()
	switch {
	case known && time.Since(at) < heldFor:
		return nil
	case known || held:
		// A hold whose delivery was lost comes late: it is lifted again then.
		r.mu.Lock()
		delete(r.heldAt, p.URL)
		if held {
			r.heldAt[p.URL] = time.Now()
		}
		r.mu.Unlock()
		_, err := r.comment(f.name, p.Number, "/liftlock unhold")
		return err
	case !r.isEnding() && random.IntN(30) == 0:
		r.mu.Lock()
		r.heldAt[p.URL] = time.Now()
		r.mu.Unlock()
		_, err := r.comment(f.name, p.Number, pick(random, "/liftlock hold not now", "/liftlock hold"))
		return err
	case strings.HasPrefix(f.prod, "merge: manual"):
		if checkGatesPassed(&p) != nil || !r.isEnding() && random.IntN(4) > 0 {
			return nil
		}
		if _, err := r.forge.MergePull(f.name, p.Number, story.SecondApprover, "merge"); err != nil {
			r.t.Logf("%s can't merge %s#%d now: %v", story.SecondApprover, f.name, p.Number, err)
		}
		return nil
	case f.prod != "merge: auto" && !slices.ContainsFunc(p.Reviews, func(v emulator.Review) bool { return v.Commit == p.Head && v.State == "APPROVED" }):
		if err := r.forge.Approve(f.name, p.Number, story.FirstApprover); err != nil {
			return fmt.Errorf("approve #%d: %w", p.Number, err)
		}
	}
	return nil
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// comment gives a command, which is remembered to be checked at the end.
func (r *replicaRun) comment(repository string, pull int, text string) (id int64, err error) {
	if id, err = r.forge.Comment(repository, pull, story.FirstApprover, text); err != nil {
		return 0, fmt.Errorf("comment on #%d: %w", pull, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.comments = append(r.comments, &personalComment{repository: repository, pull: pull, id: id, text: text})
	return id, nil
}
