package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// archivedDelay is how long a key waits whose repository is archived, where nothing wakes it.
	archivedDelay = 10 * time.Minute
	// archivedCheckInterval is how often it is read at the most whether a repository in which
	// something was refused is archived.
	archivedCheckInterval = time.Minute
)

// archivedRepos are the repositories in which nothing can be written, as far as this process has
// met that: whoever doesn't know it is refused its next write.
type archivedRepos struct {
	mu      sync.Mutex
	since   map[string]time.Time // by repository
	checked map[string]time.Time // when it was last read of one that isn't
}

func newArchivedRepos() *archivedRepos {
	return &archivedRepos{since: map[string]time.Time{}, checked: map[string]time.Time{}}
}

func (a *archivedRepos) isArchived(repo string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since[repo].IsZero()
}

// mayCheck says whether it is time to read of a repository whether it is archived, and counts
// that as done.
func (a *archivedRepos) mayCheck(repo string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.checked[repo]) < archivedCheckInterval {
		return false
	}
	a.checked[repo] = now
	return true
}

// set remembers whether a repository is archived, and says whether that is news.
func (a *archivedRepos) set(repo string, archived bool, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := !a.since[repo].IsZero()
	switch {
	case archived && !was:
		a.since[repo] = now
	case !archived:
		delete(a.since, repo)
	}
	return was != archived
}

// ArchivedRepositories are the repositories that rest because they are archived, and since when
// that is known.
func (e *Controller) ArchivedRepositories() map[string]time.Time {
	e.archived.mu.Lock()
	defer e.archived.mu.Unlock()
	return maps.Clone(e.archived.since)
}

// runUnlessArchived runs a key; those of a repository that is archived rest. What a run was refused
// because of it is no failure.
func (e *Controller) runUnlessArchived(ctx context.Context, r *Repository, k wake.Key) (time.Time, error) {
	if e.archived.isArchived(r.ID) {
		if !slices.Contains([]wake.Kind{wake.Repository, wake.Sweep}, k.Kind) || e.readArchived(ctx, r) {
			return e.opts.Clock.Now().Add(archivedDelay), nil
		}
		if err := e.wakeUnits(ctx, r); err != nil {
			return time.Time{}, err
		}
	}
	next, err := e.runOf(ctx, r, k)
	if refused := errors.Is(err, forge.ErrForbidden) || errors.Is(err, git.ErrAuth); refused && e.archived.mayCheck(r.ID, e.opts.Clock.Now()) && e.readArchived(ctx, r) {
		return e.opts.Clock.Now().Add(archivedDelay), nil
	}
	return next, err
}

// wakeUnits wakes all units of a repository that rested.
func (e *Controller) wakeUnits(ctx context.Context, r *Repository) error {
	s, err := e.opts.Gatherer.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	keys, err := e.keysOfAll(ctx, r, s)
	if err != nil {
		return err
	}
	return e.opts.Store.WakeAs(ctx, store.Normal, wake.Strings(keys...)...)
}

// readArchived reads whether a repository is archived. What can't be read now is as it was.
func (e *Controller) readArchived(ctx context.Context, r *Repository) bool {
	inspector, ok := r.Forge.(forge.Inspector)
	if !ok {
		return false
	}
	settings, err := inspector.InspectRepository(ctx, r.Name)
	if err != nil {
		return e.archived.isArchived(r.ID)
	}
	if e.archived.set(r.ID, settings.Archived, e.opts.Clock.Now()) {
		if settings.Archived {
			e.opts.Log.Warn("a repository is archived: nothing can be written, and it rests; unarchive it, or remove it from the server's file", zap.String("repository", r.ID))
		} else {
			e.opts.Log.Info("a repository is no longer archived", zap.String("repository", r.ID))
		}
	}
	return settings.Archived
}
