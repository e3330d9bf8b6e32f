package facts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/liftlock/liftlock/internal/appset/history"
)

// SeenHeadsKey is the store's key of the heads that the branches of a repository had when a
// process looked at them last.
func SeenHeadsKey(repo string) string { return "heads|" + repo }

// SeenHeads are the heads of a repository's branches that matter, as a process saw them last;
// nil where nobody looked, or an older version did.
func (o *Gatherer) SeenHeads(ctx context.Context, r *Repository) (map[string]string, error) {
	stored, _, err := o.opts.Store.State(ctx, SeenHeadsKey(r.ID))
	if err != nil {
		return nil, err
	}
	var seen map[string]string
	if json.Unmarshal(stored, &seen) != nil {
		return nil, nil
	}
	return seen, nil
}

// findHolds finds the commit with the holds; "" where there are none. deleted says that there were
// some, and that the branch is gone: which of them stand can't be told then.
func (o *Gatherer) findHolds(ctx context.Context, r *Repository) (commit, deleted string, err error) {
	commit, ok, err := r.Mirror.Head(ctx, history.StateBranch)
	if err != nil {
		return "", "", fmt.Errorf("read where the holds are: %w", err)
	}
	if ok {
		return commit, "", nil
	}
	seen, err := o.SeenHeads(ctx, r)
	if was := seen[history.StateBranch]; was != "" {
		deleted = fmt.Sprintf("the branch %s, which has them, was deleted; Liftlock puts it back, or push %s there", history.StateBranch, was)
	}
	return "", deleted, err
}
