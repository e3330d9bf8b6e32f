package facts

import (
	"cmp"
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// ForgetClosedPulls drops the records of a repository's pull requests that serve their merges
// alone, for those that aren't open any more: refused merges, and turns to be brought up to date.
func ForgetClosedPulls(ctx context.Context, tx *store.Tx, repo string, open []forge.PullRequest) error {
	isOpen := func(number int) bool {
		return slices.ContainsFunc(open, func(p forge.PullRequest) bool { return p.Number == number })
	}
	refused, err := refusedMerges.List(ctx, tx, record.Within{Repo: repo})
	if err != nil {
		return err
	}
	turns, err := updateTurns.List(ctx, tx, record.Within{Repo: repo})
	if err != nil {
		return err
	}
	for i := range refused {
		if !isOpen(refused[i].About.Number) {
			err = cmp.Or(err, refusedMerges.Drop(ctx, tx, refused[i].About))
		}
	}
	for i := range turns {
		if !isOpen(turns[i].Value.Pull) {
			err = cmp.Or(err, updateTurns.Drop(ctx, tx, turns[i].About))
		}
	}
	return err
}

// ForgetSettled forgets what is on record of a pull request until it is merged or closed, and what
// endpoints said of it.
func ForgetSettled(ctx context.Context, tx *store.Tx, repo string, pull int) error {
	if err := record.DropSettled(ctx, tx, record.OfPull(repo, pull)); err != nil {
		return err
	}
	return ForgetEndpoints(ctx, tx, repo, pull)
}
