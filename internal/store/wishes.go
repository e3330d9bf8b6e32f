package store

import "context"

// AddWish says that the unit wants to merge in the repository. One that waits
// already keeps its place.
func (s *Store) AddWish(ctx context.Context, repo, unit string) error {
	return s.Tx(ctx, "addWish", func(tx *Tx) error { return tx.AddWish(ctx, repo, unit) })
}

// DropWish takes the wish back; one that isn't there is success.
func (s *Store) DropWish(ctx context.Context, repo, unit string) error {
	return s.Tx(ctx, "dropWish", func(tx *Tx) error { return tx.DropWish(ctx, repo, unit) })
}

// AddWish is Store.AddWish.
func (t *Tx) AddWish(ctx context.Context, repo, unit string) error {
	err := checkKey("its repository", repo)
	if err == nil {
		err = checkKey("its unit", unit)
	}
	if err == nil {
		_, err = t.db.exec(ctx, `INSERT INTO wishes (repo, unit) VALUES ($1, $2) ON CONFLICT (repo, unit) DO NOTHING`, repo, unit)
	}
	return wrap(err, "store that %.80q wants to merge in %.80q", unit, repo)
}

// DropWish is Store.DropWish.
func (t *Tx) DropWish(ctx context.Context, repo, unit string) error {
	_, err := t.db.exec(ctx, `DELETE FROM wishes WHERE repo = $1 AND unit = $2`, repo, unit)
	return wrap(err, "store that %s doesn't want to merge in %s any more", unit, repo)
}

// Wishes are the units that want to merge in the repository, in the order in
// which they asked.
func (r reads) Wishes(ctx context.Context, repo string) ([]string, error) {
	units, err := list(ctx, r.db, column[string], `SELECT unit FROM wishes WHERE repo = $1 ORDER BY id`, repo)
	return units, wrap(err, "read who wants to merge in %s", repo)
}
