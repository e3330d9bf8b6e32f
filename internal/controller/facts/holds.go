package facts

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Holds reads the holds that concern a unit.
func (o *gitGatherer) Holds(ctx context.Context, r *Repository, u promotion.Unit) ([]promotion.Hold, error) {
	head, ok, err := r.Mirror.Head(ctx, history.StateBranch)
	if err != nil || !ok {
		return nil, err
	}
	return history.Holds(r.Mirror.Tree(head), u.Pipeline, u.Component)
}
