package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/store"
)

// ArchivedRepositories are the repositories that rest because they are archived, and since when
// that is known.
func (e *Controller) ArchivedRepositories() map[string]time.Time {
	return e.archived.all()
}

// runUnlessArchived runs a key; those of a repository that is archived rest. What a run was refused
// because of it is no failure.
func (e *Controller) runUnlessArchived(ctx context.Context, r *Repository, k wake.Key) (time.Time, error) {
	if e.archived.rests(r.ID) {
		if !slices.Contains([]wake.Kind{wake.Repository, wake.Sweep}, k.Kind) || e.readArchived(ctx, r) {
			return e.opts.Clock.Now().Add(restingDelay), nil
		}
		if err := e.wakeUnits(ctx, r); err != nil {
			e.archived.set(r.ID, true, e.opts.Clock.Now()) // until they are woken
			return time.Time{}, err
		}
	}
	next, err := e.runOf(ctx, r, k)
	if (errors.Is(err, forge.ErrForbidden) || errors.Is(err, git.ErrAuth)) && e.findArchived(ctx, r) {
		return e.opts.Clock.Now().Add(restingDelay), nil
	}
	return next, err
}

// findArchived says whether something may have been refused because a repository is archived.
func (e *Controller) findArchived(ctx context.Context, r *Repository) bool {
	if e.archived.rests(r.ID) {
		return true // another run has met it meanwhile
	}
	return e.archived.mayCheck(r.ID, e.opts.Clock.Now()) && e.readArchived(ctx, r)
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
		return e.archived.rests(r.ID)
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
