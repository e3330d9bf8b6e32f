package store

import (
	"context"
	"database/sql"
	"time"
)

// Ask is a person's command that waits to take effect.
type Ask struct {
	ID          int64 // given by the store
	Unit        string
	Environment string
	Verb        string
	Release     string
	By          string // login
	Reason      string
	Source      string // where it was said (a comment, a request), unique in the world; empty: none
	At          time.Time
	DoneAt      time.Time // zero: open
	Outcome     string
}

// PutAsk writes a command down once: when its Source is known already, nothing
// changes and the first one's ID is returned.
func (s *Store) PutAsk(ctx context.Context, a Ask) (id int64, err error) {
	return get(ctx, s, "putAsk", func(tx *Tx) (int64, error) { return tx.PutAsk(ctx, a) })
}

// FinishAsk says that the command has taken effect, or why it won't. The first
// outcome stays.
func (s *Store) FinishAsk(ctx context.Context, id int64, outcome string) error {
	return s.Tx(ctx, "finishAsk", func(tx *Tx) error { return tx.FinishAsk(ctx, id, outcome) })
}

// PutAsk is Store.PutAsk.
func (t *Tx) PutAsk(ctx context.Context, a Ask) (id int64, err error) {
	if err := checkNames("its unit", a.Unit, "its environment", a.Environment, "its verb", a.Verb,
		"its release", a.Release, "its author", a.By, "its source", a.Source); err != nil {
		return 0, wrap(err, "store the command %.80q", a.Verb)
	}
	if a.At.IsZero() {
		a.At = t.now()
	}
	id, fresh, err := one(ctx, t.db, column[int64], `INSERT INTO asks
			(unit, environment, verb, release_id, by_login, reason, source, at, done_at, outcome)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING id`,
		a.Unit, a.Environment, a.Verb, a.Release, a.By, text(a.Reason), a.Source, micros(a.At), micros(a.DoneAt), text(a.Outcome))
	if err == nil && !fresh {
		id, _, err = one(ctx, t.db, column[int64], `SELECT id FROM asks WHERE source = $1`, a.Source)
	}
	return id, wrap(err, "store the command %s for %s", a.Verb, a.Unit)
}

// FinishAsk is Store.FinishAsk.
func (t *Tx) FinishAsk(ctx context.Context, id int64, outcome string) error {
	_, err := t.db.exec(ctx, `UPDATE asks SET done_at = $1, outcome = $2 WHERE id = $3 AND done_at = 0`,
		micros(t.now()), text(outcome), id)
	return wrap(err, "store the outcome of the command %d", id)
}

// BindAsk says which release the command has become about: it stays open, and in
// force for that release, until FinishAsk.
func (t *Tx) BindAsk(ctx context.Context, id int64, release string) error {
	if err := checkNames("its release", release); err != nil {
		return wrap(err, "bind the command %d", id)
	}
	_, err := t.db.exec(ctx, `UPDATE asks SET release_id = $1 WHERE id = $2 AND done_at = 0`, release, id)
	return wrap(err, "bind the command %d to a release", id)
}

const askColumns = `id, unit, environment, verb, release_id, by_login, reason, source, at, done_at, outcome`

func scanAsk(rows *sql.Rows) (a Ask, err error) {
	var at, done int64
	err = rows.Scan(&a.ID, &a.Unit, &a.Environment, &a.Verb, &a.Release, &a.By, &a.Reason, &a.Source, &at, &done, &a.Outcome)
	a.At, a.DoneAt = fromMicros(at), fromMicros(done)
	return a, err
}

// OpenAsks are the unit's commands that wait, in the order they were given.
func (r reads) OpenAsks(ctx context.Context, unit string) ([]Ask, error) {
	all, err := list(ctx, r.db, scanAsk, `SELECT `+askColumns+` FROM asks WHERE unit = $1 AND done_at = 0 ORDER BY id`, unit)
	return all, wrap(err, "read the commands that wait for %s", unit)
}

// AskBySource is the command that was given there; false when none was recorded.
func (r reads) AskBySource(ctx context.Context, source string) (Ask, bool, error) {
	a, ok, err := one(ctx, r.db, scanAsk, `SELECT `+askColumns+` FROM asks WHERE source = $1 AND source <> ''`, source)
	return a, ok, wrap(err, "read the command of %s", source)
}
