package controller

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Difference compares the manifests of an environment of a unit without and with
// one of our pull requests. *facts.NoDifferenceError says why that can't be done.
func (co *Controller) Difference(ctx context.Context, u promotion.Unit, env string, pull int) (*effects.Difference, error) {
	r, awaited := co.repository(u.Repo)
	if awaited {
		return nil, &effects.NoDifferenceError{Why: fmt.Sprintf("the repository %s has not been reached yet", u.Repo)}
	}
	if r == nil {
		return nil, &effects.NoDifferenceError{Why: fmt.Sprintf("the repository %s is no longer in the server's file", u.Repo)}
	}
	return co.opts.Gatherer.Effects.Difference(ctx, r.Repository, u, env, pull)
}
