package facts

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// ForgetClosedPulls drops what is kept of a repository's pull requests for their merges alone, of
// those that aren't open any more: refused merges, and turns to be brought up to date.
func ForgetClosedPulls(ctx context.Context, tx *store.Tx, repo string, open []forge.PullRequest) error {
	isOpen := func(number int) bool {
		return slices.ContainsFunc(open, func(p forge.PullRequest) bool { return p.Number == number })
	}
	refused, err := tx.StateByPrefix(ctx, refusedMergePrefix(repo))
	if err != nil {
		return err
	}
	var over []string
	for key := range refused {
		if number, err := strconv.Atoi(strings.TrimPrefix(key, refusedMergePrefix(repo))); err != nil || !isOpen(number) {
			over = append(over, key)
		}
	}
	turns, err := tx.StateByPrefix(ctx, UpdateTurnKey(repo, ""))
	if err != nil {
		return err
	}
	for key, raw := range turns {
		if turn := readUpdateTurn(raw); turn == nil || !isOpen(turn.Pull) {
			over = append(over, key)
		}
	}
	for _, key := range over {
		if err := tx.DeleteState(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
