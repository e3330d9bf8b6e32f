package facts

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/appset/history"
)

// SeenHeadsKey is the store's key of the heads that the branches of a repository had when a
// process looked at them last.
func SeenHeadsKey(repo string) string { return "heads|" + repo }

// SeenHeads are the heads of a repository's branches that matter, as a process saw them last;
// nil where nobody looked, or an older version did.
func (o *Gatherer) SeenHeads(ctx context.Context, r *Repository) (map[string]string, error) {
	seen, _, err := readState[map[string]string](ctx, o.opts.Store, SeenHeadsKey(r.ID))
	return seen, err
}

// FindHolds finds the state branch's head and the commit with the holds, both empty where there
// are none. Where somebody deleted the branch it has no head, and the holds are those that were
// there when it was seen last: only a command lifts them.
func (o *Gatherer) FindHolds(ctx context.Context, r *Repository) (head, commit string, err error) {
	head, ok, err := r.Mirror.Head(ctx, history.StateBranch)
	if err != nil {
		return "", "", fmt.Errorf("read where the holds are: %w", err)
	}
	if ok {
		return head, head, nil
	}
	seen, err := o.SeenHeads(ctx, r)
	return "", seen[history.StateBranch], err
}
