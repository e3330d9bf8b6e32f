package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// maxArrivals is how many arrivals are kept of one unit in one environment.
const maxArrivals = 50

// Arrival is a release that came into an environment of a unit with a commit.
// Unit, Environment, Commit and Release are its identity.
type Arrival struct {
	Unit        string
	Environment string
	Release     string
	Seq         int64 // given by the store at the first PutArrival, rising within the unit
	Commit      string
	At          time.Time
	VerifiedAt  time.Time // zero: not verified
	DegradedAt  time.Time // zero: not degraded
	Data        json.RawMessage
}

// PutArrival writes an arrival down, or all of it anew, and returns its Seq.
// Only the newest 50 of an environment are kept.
func (s *Store) PutArrival(ctx context.Context, a Arrival) (seq int64, err error) {
	return txWithResult(ctx, s, "putArrived", func(tx *Tx) (int64, error) { return tx.PutArrival(ctx, a) })
}

// PutArrival is Store.PutArrival.
func (t *Tx) PutArrival(ctx context.Context, a Arrival) (seq int64, err error) {
	if err := a.checkFields(); err != nil {
		return 0, wrapError(err, "store an arrival of %.80q", a.Unit)
	}
	// Numbers are never given twice: the newest of a unit is never pruned.
	seq, _, err = queryOne(ctx, t.db, scanColumn[int64], `INSERT INTO arrived
			(unit, environment, commit_id, release_id, seq, at, verified_at, degraded_at, data)
		VALUES ($1, $2, $3, $4, (SELECT coalesce(max(seq), 0) + 1 FROM arrived WHERE unit = $1), $5, $6, $7, $8)
		ON CONFLICT (unit, environment, commit_id, release_id) DO UPDATE SET at = excluded.at,
			verified_at = excluded.verified_at, degraded_at = excluded.degraded_at, data = excluded.data
		RETURNING seq`,
		a.Unit, a.Environment, a.Commit, a.Release, toMicros(a.At), toMicros(a.VerifiedAt), toMicros(a.DegradedAt), string(a.Data))
	if err == nil {
		_, err = t.db.exec(ctx, `DELETE FROM arrived WHERE unit = $1 AND environment = $2 AND seq <=
			(SELECT seq FROM arrived WHERE unit = $1 AND environment = $2 ORDER BY seq DESC LIMIT 1 OFFSET $3)`,
			a.Unit, a.Environment, maxArrivals)
	}
	return seq, wrapError(err, "store the arrival of %s in %s of %s", a.Release, a.Environment, a.Unit)
}

func (a Arrival) checkFields() error {
	if err := checkKey("its unit", a.Unit); err != nil {
		return err
	}
	if err := checkNames("its environment", a.Environment, "its commit", a.Commit, "its release", a.Release); err != nil {
		return err
	}
	return checkJSON(a.Data)
}

// Arrivals is the unit's history in all its environments, newest first.
func (r queries) Arrivals(ctx context.Context, unit string) ([]Arrival, error) {
	all, err := queryAll(ctx, r.db, func(rows *sql.Rows) (a Arrival, err error) {
		var at, verified, degraded int64
		var data string
		err = rows.Scan(&a.Unit, &a.Environment, &a.Release, &a.Seq, &a.Commit, &at, &verified, &degraded, &data)
		a.At, a.VerifiedAt, a.DegradedAt, a.Data = fromMicros(at), fromMicros(verified), fromMicros(degraded), toPayload(data)
		return a, err
	}, `SELECT unit, environment, release_id, seq, commit_id, at, verified_at, degraded_at, data
		FROM arrived WHERE unit = $1 ORDER BY seq DESC`, unit)
	return all, wrapError(err, "read the arrivals of %s", unit)
}
