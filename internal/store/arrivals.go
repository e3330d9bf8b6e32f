package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// RecentArrivals is how many arrivals of one unit in one environment Arrivals gives; the older ones are
// asked for by their release.
const RecentArrivals = 50

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
	WithdrawnAt time.Time // zero: not taken back
	Data        json.RawMessage
}

// PutArrival writes an arrival down, or all of it anew, and returns its Seq.
func (t *Tx) PutArrival(ctx context.Context, a Arrival) (seq int64, err error) {
	if err := cmp.Or(checkKey("its unit", a.Unit),
		checkNames("its environment", a.Environment, "its commit", a.Commit, "its release", a.Release), checkJSON(a.Data)); err != nil {
		return 0, wrapError(err, "store an arrival of %.80q", a.Unit)
	}
	seq, err = t.writeArrival(ctx, a)
	return seq, wrapError(err, "store the arrival of %s in %s of %s", a.Release, a.Environment, a.Unit)
}

func (t *Tx) writeArrival(ctx context.Context, a Arrival) (seq int64, err error) {
	// Numbers are never given twice: the newest of a unit is never pruned.
	seq, _, err = queryOne(ctx, t.db, oneColumn[int64], `INSERT INTO arrivals
			(unit, environment, commit_id, release_id, seq, at, verified_at, degraded_at, withdrawn_at, data)
		VALUES ($1, $2, $3, $4, (SELECT coalesce(max(seq), 0) + 1 FROM arrivals WHERE unit = $1), $5, $6, $7, $8, $9)
		ON CONFLICT (unit, environment, commit_id, release_id) DO UPDATE SET at = excluded.at, verified_at = excluded.verified_at,
			degraded_at = excluded.degraded_at, withdrawn_at = excluded.withdrawn_at, data = excluded.data
		RETURNING seq`,
		a.Unit, a.Environment, a.Commit, a.Release, toMicros(a.At), toMicros(a.VerifiedAt), toMicros(a.DegradedAt), toMicros(a.WithdrawnAt),
		string(a.Data))
	if err == nil {
		_, err = t.db.exec(ctx, `UPDATE arrivals SET recent = 0 WHERE unit = $1 AND environment = $2 AND recent = 1 AND seq <=
			(SELECT seq FROM arrivals WHERE unit = $1 AND environment = $2 AND recent = 1 ORDER BY seq DESC LIMIT 1 OFFSET $3)`,
			a.Unit, a.Environment, RecentArrivals)
	}
	if err == nil {
		err = t.raiseVersion(ctx, arrivalsScope(a.Unit))
	}
	return seq, err
}

// WithdrawArrivals records that arrivals in an environment, whose number is between two others, are
// withdrawn since then. Arrivals that were withdrawn before stay as they are.
func (t *Tx) WithdrawArrivals(ctx context.Context, unit, environment string, above, below int64, at time.Time) error {
	err := cmp.Or(checkKey("its unit", unit), checkNames("its environment", environment))
	if err == nil {
		err = t.changeArrivals(ctx, unit, `UPDATE arrivals SET withdrawn_at = $5
			WHERE unit = $1 AND environment = $2 AND seq > $3 AND seq < $4 AND withdrawn_at = 0`,
			unit, environment, above, below, toMicros(at))
	}
	return wrapError(err, "take back what arrived in %s of %.80q", environment, unit)
}

// UpdateArrivalData writes only the Data of an arrival anew, so that what another process
// wrote down of its verification meanwhile stays. An arrival that isn't there stays absent.
func (t *Tx) UpdateArrivalData(ctx context.Context, a Arrival) error {
	if err := cmp.Or(checkKey("its unit", a.Unit), checkJSON(a.Data)); err != nil {
		return wrapError(err, "store the data of an arrival of %.80q", a.Unit)
	}
	err := t.changeArrivals(ctx, a.Unit,
		`UPDATE arrivals SET data = $5 WHERE unit = $1 AND environment = $2 AND commit_id = $3 AND release_id = $4`,
		a.Unit, a.Environment, a.Commit, a.Release, string(a.Data))
	return wrapError(err, "store the data of the arrival of %s in %s of %s", a.Release, a.Environment, a.Unit)
}

// changeArrivals updates arrivals of a unit, and raises their version where any was changed.
func (t *Tx) changeArrivals(ctx context.Context, unit, update string, args ...any) error {
	changed, err := t.db.exec(ctx, update, args...)
	if err != nil || changed == 0 {
		return err
	}
	return t.raiseVersion(ctx, arrivalsScope(unit))
}

func (a *Arrival) columns() []any {
	return []any{&a.Unit, &a.Environment, &a.Release, &a.Seq, &a.Commit, timeColumn{&a.At}, timeColumn{&a.VerifiedAt},
		timeColumn{&a.DegradedAt},
		timeColumn{&a.WithdrawnAt}, payloadColumn{&a.Data}}
}

const arrivalColumns = `unit, environment, release_id, seq, commit_id, at, verified_at, degraded_at, withdrawn_at, data`

// Arrivals is the unit's history in all its environments, newest first: the newest 50 in each.
func (q queries) Arrivals(ctx context.Context, unit string) ([]Arrival, error) {
	all, err := queryAll(ctx, q.db, (*Arrival).columns, `SELECT `+arrivalColumns+
		` FROM arrivals WHERE unit = $1 AND recent = 1 ORDER BY seq DESC`, unit)
	return all, wrapError(err, "read the arrivals of %s", unit)
}

// OlderArrivals are, in each environment, the newest arrival of each of the releases, where that is
// none of the unit's Arrivals, newest first.
func (q queries) OlderArrivals(ctx context.Context, unit string, releases ...string) ([]Arrival, error) {
	if len(releases) == 0 {
		return nil, nil
	}
	var w whereClause
	w.addCondition("a.unit = $%d AND a.recent = 0", unit)
	addIn(&w, "a.release_id", releases)
	all, err := queryAll(ctx, q.db, (*Arrival).columns, `SELECT `+arrivalColumns+` FROM arrivals a`+w.String()+
		` AND NOT EXISTS (SELECT 1 FROM arrivals n
		WHERE n.unit = a.unit AND n.release_id = a.release_id AND n.environment = a.environment AND n.seq > a.seq) ORDER BY seq DESC`, w.args...)
	return all, wrapError(err, "read where releases of %s arrived long ago", unit)
}

// MaxUnitsArrivedBy bounds UnitsArrivedBy.
const MaxUnitsArrivedBy = maxLimit

// UnitsArrivedBy are the units of which a release arrived somewhere by a commit, sorted;
// limit 0: 100, at most MaxUnitsArrivedBy.
func (q queries) UnitsArrivedBy(ctx context.Context, commit string, limit int) ([]string, error) {
	units, err := queryAll(ctx, q.db, oneColumn[string], `SELECT DISTINCT unit FROM arrivals WHERE commit_id = $1 ORDER BY unit`+
		limitTo("$2"), commit, clampLimit(limit))
	return units, wrapError(err, "read whose releases arrived by %s", commit)
}
