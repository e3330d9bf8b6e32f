package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// arrivedKept is how many arrivals are kept of one unit in one environment.
const arrivedKept = 50

// Arrived is a release that came into an environment of a unit with a commit.
// Unit, Environment, Commit and Release are its identity.
type Arrived struct {
	Unit        string
	Environment string
	Release     string
	Seq         int64 // given by the store at the first PutArrived, rising within the unit
	Commit      string
	At          time.Time
	VerifiedAt  time.Time // zero: not verified
	DegradedAt  time.Time // zero: not degraded
	Data        json.RawMessage
}

// PutArrived writes an arrival down, or all of it anew, and returns its Seq.
// Only the newest 50 of an environment are kept.
func (s *Store) PutArrived(ctx context.Context, a Arrived) (seq int64, err error) {
	return get(ctx, s, "putArrived", func(tx *Tx) (int64, error) { return tx.PutArrived(ctx, a) })
}

// PutArrived is Store.PutArrived.
func (t *Tx) PutArrived(ctx context.Context, a Arrived) (seq int64, err error) {
	if err := a.check(); err != nil {
		return 0, wrap(err, "store an arrival of %.80q", a.Unit)
	}
	// Numbers are never given twice: the newest of a unit is never pruned.
	seq, _, err = one(ctx, t.db, column[int64], `INSERT INTO arrived
			(unit, environment, commit_id, release_id, seq, at, verified_at, degraded_at, data)
		VALUES ($1, $2, $3, $4, (SELECT coalesce(max(seq), 0) + 1 FROM arrived WHERE unit = $1), $5, $6, $7, $8)
		ON CONFLICT (unit, environment, commit_id, release_id) DO UPDATE SET at = excluded.at,
			verified_at = excluded.verified_at, degraded_at = excluded.degraded_at, data = excluded.data
		RETURNING seq`,
		a.Unit, a.Environment, a.Commit, a.Release, micros(a.At), micros(a.VerifiedAt), micros(a.DegradedAt), string(a.Data))
	if err == nil {
		_, err = t.db.exec(ctx, `DELETE FROM arrived WHERE unit = $1 AND environment = $2 AND seq <=
			(SELECT seq FROM arrived WHERE unit = $1 AND environment = $2 ORDER BY seq DESC LIMIT 1 OFFSET $3)`,
			a.Unit, a.Environment, arrivedKept)
	}
	return seq, wrap(err, "store the arrival of %s in %s of %s", a.Release, a.Environment, a.Unit)
}

func (a Arrived) check() error {
	if err := checkKey("its unit", a.Unit); err != nil {
		return err
	}
	if err := checkNames("its environment", a.Environment, "its commit", a.Commit, "its release", a.Release); err != nil {
		return err
	}
	return checkJSON(a.Data)
}

// ArrivedBy is the unit's history in all its environments, newest first.
func (r reads) ArrivedBy(ctx context.Context, unit string) ([]Arrived, error) {
	all, err := list(ctx, r.db, func(rows *sql.Rows) (a Arrived, err error) {
		var at, verified, degraded int64
		var data string
		err = rows.Scan(&a.Unit, &a.Environment, &a.Release, &a.Seq, &a.Commit, &at, &verified, &degraded, &data)
		a.At, a.VerifiedAt, a.DegradedAt, a.Data = fromMicros(at), fromMicros(verified), fromMicros(degraded), payload(data)
		return a, err
	}, `SELECT unit, environment, release_id, seq, commit_id, at, verified_at, degraded_at, data
		FROM arrived WHERE unit = $1 ORDER BY seq DESC`, unit)
	return all, wrap(err, "read the arrivals of %s", unit)
}
