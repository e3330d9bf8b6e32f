package controller

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

const (
	// restingDelay is how long a key waits whose repository rests, where nothing wakes it.
	restingDelay = 10 * time.Minute
	// restCheckInterval is how often it is read at the most whether a repository in which
	// something was refused is to rest.
	restCheckInterval = time.Minute
)

// restingRepos are the repositories in which nothing is done for one reason, as this process has
// read it last. Every run reads it in the store, where the process that finds it records it.
type restingRepos struct {
	mu      sync.Mutex
	since   map[string]time.Time // by repository
	checked map[string]time.Time // when it was last read of one that doesn't rest
}

func newRestingRepos() *restingRepos {
	return &restingRepos{since: map[string]time.Time{}, checked: map[string]time.Time{}}
}

func (r *restingRepos) rests(repo string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.since[repo].IsZero()
}

// all are the repositories that rest, and since when that is known.
func (r *restingRepos) all() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.since)
}

// mayCheck says whether it is time to read of a repository whether it is to rest, and counts
// that as done.
func (r *restingRepos) mayCheck(repo string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.checked[repo]) < restCheckInterval {
		return false
	}
	r.checked[repo] = now
	return true
}

// learn remembers since when a repository rests; zero: it doesn't.
func (r *restingRepos) learn(repo string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since.IsZero() {
		delete(r.since, repo)
	} else {
		r.since[repo] = since
	}
}

// restReasons are why nothing is done in a repository, each with since when that is known. Zero:
// it is no reason.
type restReasons struct {
	Archived time.Time `json:"archived,omitzero"`
	Replaced time.Time `json:"replaced,omitzero"` // another repository has its name
}

func archivedSince(w *restReasons) *time.Time { return &w.Archived }
func replacedSince(w *restReasons) *time.Time { return &w.Replaced }

// restingRepositories is where the processes on one database find whether a repository rests.
var restingRepositories = record.Declare[record.Repository, restReasons](record.Declaration{
	Name: "rests", Owner: "controller", Lifetime: record.Lasting, Strict: true,
	Doc: "Why nothing is done in the repository, each reason with since when.",
})

// readRest reads whether a repository rests.
func (co *Controller) readRest(ctx context.Context, r *Repository) error {
	why, _, err := restingRepositories.Get(ctx, co.opts.Store, record.Repository(r.ID))
	co.learnRest(r, why)
	return err
}

func (co *Controller) learnRest(r *Repository, why restReasons) {
	co.archived.learn(r.ID, why.Archived)
	co.replaced.learn(r.ID, why.Replaced)
}

// setRest writes down whether a repository rests for a reason, and says whether that is news.
// When it no longer does, all of its units are woken with that.
func (co *Controller) setRest(ctx context.Context, r *Repository,
	reason func(*restReasons) *time.Time, rests bool) (changed bool, err error) {
	var units []string
	if !rests {
		if units, err = co.namesOfUnits(ctx, r); err != nil {
			return false, err
		}
	}
	var why restReasons
	err = co.opts.Store.Tx(ctx, "setRest", func(tx *store.Tx) (err error) {
		if why, _, err = restingRepositories.Get(ctx, tx, record.Repository(r.ID)); err != nil {
			return err
		}
		since := reason(&why)
		if changed = since.IsZero() == rests; !changed {
			return nil
		}
		if *since = (time.Time{}); rests {
			*since = co.opts.Clock.Now()
		}
		return errors.Join(restingRepositories.Put(ctx, tx, record.Repository(r.ID), why), tx.WakeAs(ctx, store.Normal, units...))
	})
	if err != nil {
		return false, err
	}
	co.learnRest(r, why)
	return changed, nil
}

// namesOfUnits are the keys of all units of a repository that rested.
func (co *Controller) namesOfUnits(ctx context.Context, r *Repository) ([]string, error) {
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return nil, err
	}
	keys, err := co.keysOfAll(ctx, r, s)
	return wake.Strings(keys...), err
}
