package controller

import (
	"context"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
)

// runRules forgets the forge's rules for merges into a repository's branches, and has all open pull
// requests read again. The forge says anew of each whether it can be merged.
func (co *Controller) runRules(ctx context.Context, r *Repository) error {
	open, err := co.opts.Gatherer.PullCache.OpenPulls(ctx, r.Repository)
	if err != nil {
		return err
	}
	return co.opts.Store.Tx(ctx, "rulesChanged", func(tx *store.Tx) error {
		if err := facts.ForgetBranchRules(ctx, tx, r.ID); err != nil {
			return err
		}
		var keys []wake.Key
		for _, pr := range open {
			keys = append(keys, wake.ForPull(r.ID, pr.Number))
		}
		return tx.WakeAs(ctx, store.Urgent, wake.Strings(keys...)...)
	})
}
