package controller

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
)

// ReplacedRepositories are the repositories that rest because another has their name by now, and
// since when that is known.
func (co *Controller) ReplacedRepositories() map[string]time.Time { return co.replaced.all() }

// runUnlessReplaced runs a key; those of a repository rest while another one has its name. A name
// that was given up may be anybody's: what is there has other rules, and other people. It is read at
// each sweep, which a webhook of the other one brings forward.
func (co *Controller) runUnlessReplaced(ctx context.Context, r *Repository, k wake.Key) (time.Time, error) {
	if err := co.readRest(ctx, r); err != nil {
		return time.Time{}, err
	}
	if k.Kind == wake.Sweep || co.replaced.rests(r.ID) && k.Kind == wake.Repository {
		if err := co.checkNumber(ctx, r); err != nil {
			return time.Time{}, err
		}
	}
	if co.replaced.rests(r.ID) {
		return co.opts.Clock.Now().Add(restingDelay), nil
	}
	return co.runUnlessArchived(ctx, r, k)
}

// checkNumber reads whether a repository's name is still its own. Where that can't be read now it
// is as it was.
func (co *Controller) checkNumber(ctx context.Context, r *Repository) error {
	replaced, number := false, int64(0) // where nobody can say
	if f, ok := r.Forge.(forge.RepositoryNumberer); ok && r.Number != 0 {
		var err error
		if number, err = f.RepositoryNumber(ctx, r.Name); err != nil {
			return ctx.Err()
		}
		replaced = number != r.Number
	}
	if replaced == co.replaced.rests(r.ID) {
		return nil
	}
	changed, err := co.setRest(ctx, r, replacedSince, replaced)
	switch {
	case err != nil || !changed:
		return err
	case replaced:
		co.opts.Log.Warn("another repository has this name by now: nothing is done there; write the name that the former one has now "+
			"into the server's file", zap.String("repository", r.ID), zap.Int64("number", number), zap.Int64("former", r.Number))
	default:
		co.opts.Log.Info("the repository has its name again", zap.String("repository", r.ID))
	}
	return nil
}
