package store

import (
	"cmp"
	"context"
)

// PutState keeps a small thing under a key.
func (s *Store) PutState(ctx context.Context, key string, data []byte) error {
	return s.Tx(ctx, "putState", func(tx *Tx) error { return tx.PutState(ctx, key, data) })
}

// DeleteState forgets it; a key that isn't there is success.
func (s *Store) DeleteState(ctx context.Context, key string) error {
	return s.Tx(ctx, "deleteState", func(tx *Tx) error { return tx.DeleteState(ctx, key) })
}

// PutState is Store.PutState.
func (t *Tx) PutState(ctx context.Context, key string, data []byte) error {
	err := cmp.Or(checkKey("its key", key), checkData(data))
	if err == nil {
		err = t.db.putState(ctx, key, data)
	}
	return wrapError(err, "store the state %.80q", key)
}

// DeleteState is Store.DeleteState.
func (t *Tx) DeleteState(ctx context.Context, key string) error {
	return wrapError(t.db.deleteState(ctx, key), "forget the state %s", key)
}

func (t sqlTx) putState(ctx context.Context, key string, data []byte) error {
	if data == nil {
		data = []byte{} // nil is NULL to a database
	}
	_, err := t.db.exec(ctx, `INSERT INTO state (key, data) VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET data = excluded.data WHERE excluded.data <> state.data`, key, data)
	return err
}

func (t sqlTx) deleteState(ctx context.Context, key string) error {
	_, err := t.db.exec(ctx, `DELETE FROM state WHERE key = $1`, key)
	return err
}

func (r queries) State(ctx context.Context, key string) ([]byte, bool, error) {
	data, ok, err := queryOne(ctx, r.db, oneColumn[[]byte], `SELECT data FROM state WHERE key = $1`, key)
	return data, ok, wrapError(err, "read the state %s", key)
}

func (r queries) StateByPrefix(ctx context.Context, prefix string) (map[string][]byte, error) {
	type entry struct {
		key  string
		data []byte
	}
	var w whereClause
	w.addPrefix("key", prefix)
	all, err := queryAll(ctx, r.db, func(e *entry) []any { return []any{&e.key, &e.data} }, `SELECT key, data FROM state`+w.String(), w.args...)
	out := make(map[string][]byte, len(all))
	for _, e := range all {
		out[e.key] = e.data
	}
	return out, wrapError(err, "read the states under %s", prefix)
}
