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
)

// ArchivedRepositories are the repositories that rest because they are archived, and since when
// that is known.
func (co *Controller) ArchivedRepositories() map[string]time.Time {
	return co.archived.all()
}

// runUnlessArchived runs a key; those of a repository that is archived rest. A run that was refused
// because of it is no failure.
func (co *Controller) runUnlessArchived(ctx context.Context, r *Repository, k wake.Key) (time.Time, error) {
	if co.archived.rests(r.ID) {
		if !slices.Contains([]wake.Kind{wake.Repository, wake.Sweep}, k.Kind) {
			return co.opts.Clock.Now().Add(restingDelay), nil
		}
		if archived, err := co.readArchived(ctx, r); err != nil || archived {
			return co.opts.Clock.Now().Add(restingDelay), err
		}
	}
	next, err := co.runOf(ctx, r, k)
	if errors.Is(err, forge.ErrForbidden) || errors.Is(err, git.ErrAuth) {
		if archived, unknown := co.findArchived(ctx, r); archived {
			return co.opts.Clock.Now().Add(restingDelay), nil
		} else if unknown != nil {
			return next, errors.Join(err, unknown)
		}
	}
	return next, err
}

// findArchived says whether something may have been refused because a repository is archived.
func (co *Controller) findArchived(ctx context.Context, r *Repository) (bool, error) {
	if err := co.readRest(ctx, r); err != nil || co.archived.rests(r.ID) {
		return co.archived.rests(r.ID), err // another run has met it meanwhile
	}
	if !co.archived.mayCheck(r.ID, co.opts.Clock.Now()) {
		return false, nil
	}
	return co.readArchived(ctx, r)
}

// readArchived reads whether a repository is archived. Where that can't be read now it is as it
// was.
func (co *Controller) readArchived(ctx context.Context, r *Repository) (bool, error) {
	archived := false // where nobody can say
	if inspector, ok := r.Forge.(forge.Inspector); ok {
		settings, err := inspector.InspectRepository(ctx, r.Name)
		if err != nil {
			return co.archived.rests(r.ID), nil
		}
		archived = settings.Archived
	}
	if archived == co.archived.rests(r.ID) {
		return archived, nil
	}
	changed, err := co.setRest(ctx, r, archivedSince, archived)
	switch {
	case err != nil || !changed:
	case archived:
		co.opts.Log.Warn("a repository is archived: nothing can be written, and it rests; unarchive it, or remove it from the server's "+
			"file", zap.String("repository", r.ID))
	default:
		co.opts.Log.Info("a repository is no longer archived", zap.String("repository", r.ID))
	}
	return archived, err
}
