package controller

import (
	"context"

	"github.com/liftlock/liftlock/internal/controller/wake"
)

// runSource wakes the units of a repository with targets that have a source in a listed repository,
// after a push there. Their looks read the pushed commits, from the listed repository itself.
func (co *Controller) runSource(ctx context.Context, r *Repository, source string) error {
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	var keys []wake.Key
	for _, u := range co.opts.Gatherer.Targets.SourceReaders(ctx, s, []string{source}, false) {
		keys = append(keys, wake.ForUnit(s.RunsAs(u)))
	}
	return co.opts.Store.Wake(ctx, wake.Strings(keys...)...)
}

// keysOfReaders are the units of other repositories with targets that have a source in a tracked
// one. For a repository that this process hasn't resolved yet, the look that does so wakes all.
func (co *Controller) keysOfReaders(ctx context.Context, r *Repository) ([]wake.Key, error) {
	var keys []wake.Key
	for _, other := range co.repositories() {
		s := co.opts.Gatherer.Targets.LastSnapshot(other.ID)
		if other.ID == r.ID || s == nil {
			continue
		}
		for _, u := range co.opts.Gatherer.Targets.SourceReaders(ctx, s, r.URLs, true) {
			keys = append(keys, wake.ForUnit(s.RunsAs(u)))
		}
	}
	return keys, ctx.Err()
}
