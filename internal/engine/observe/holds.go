package observe

import (
	"context"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/tracked"
)

// Holds reads the holds that concern a unit.
func (o *Observer) Holds(ctx context.Context, r *Repository, u promotion.Unit) ([]promotion.Hold, error) {
	head, ok, err := r.Mirror.Head(ctx, tracked.StateBranch)
	if err != nil || !ok {
		return nil, err
	}
	return tracked.Holds(r.Mirror.Tree(head), u.Pipeline, u.Component)
}
