package store

import (
	"cmp"
	"context"
)

// EnqueueMerge says that the unit wants to merge in the repository. One that waits
// already keeps its place.
func (t *Tx) EnqueueMerge(ctx context.Context, repo, unit string) error {
	err := cmp.Or(checkKey("its repository", repo), checkKey("its unit", unit))
	if err == nil {
		_, err = t.db.exec(ctx, `INSERT INTO merge_queue (repo, unit) VALUES ($1, $2) ON CONFLICT (repo, unit) DO NOTHING`, repo, unit)
	}
	return wrapError(err, "store that %.80q wants to merge in %.80q", unit, repo)
}

// DequeueMerge takes the entry out; one that isn't there is success.
func (t *Tx) DequeueMerge(ctx context.Context, repo, unit string) error {
	_, err := t.db.exec(ctx, `DELETE FROM merge_queue WHERE repo = $1 AND unit = $2`, repo, unit)
	return wrapError(err, "store that %s doesn't want to merge in %s any more", unit, repo)
}

// MergeQueue are the units that want to merge in the repository, in the order in
// which they asked.
func (q queries) MergeQueue(ctx context.Context, repo string) ([]string, error) {
	units, err := queryAll(ctx, q.db, oneColumn[string], `SELECT unit FROM merge_queue WHERE repo = $1 ORDER BY id`, repo)
	return units, wrapError(err, "read who wants to merge in %s", repo)
}
