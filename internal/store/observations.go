package store

import (
	"cmp"
	"context"
	"encoding/json"
)

// Observation is what a verification remembers of one target between two looks.
type Observation struct {
	Unit        string
	Environment string
	Target      string
	Data        json.RawMessage
}

// PutObservations writes down those that have changed.
func (t *Tx) PutObservations(ctx context.Context, all ...Observation) error {
	for _, o := range all {
		err := cmp.Or(checkNames("its unit", o.Unit, "its environment", o.Environment, "its target", o.Target), checkJSON(o.Data))
		if err == nil {
			_, err = t.db.exec(ctx, `INSERT INTO observations (unit, environment, target, data) VALUES ($1, $2, $3, $4)
				ON CONFLICT (unit, environment, target) DO UPDATE SET data = excluded.data WHERE excluded.data <> observations.data`,
				o.Unit, o.Environment, o.Target, string(o.Data))
		}
		if err != nil {
			return wrapError(err, "store what was observed of %.80q in %.80q", o.Target, o.Environment)
		}
	}
	return nil
}

// DeleteObservation forgets one target, because it doesn't exist any more. One
// that isn't known is success.
func (t *Tx) DeleteObservation(ctx context.Context, unit, environment, target string) error {
	_, err := t.db.exec(ctx, `DELETE FROM observations WHERE unit = $1 AND environment = $2 AND target = $3`, unit, environment, target)
	return wrapError(err, "forget what was observed of %s in %s", target, environment)
}

// Observations are the unit's, sorted by environment and target.
func (q queries) Observations(ctx context.Context, unit string) ([]Observation, error) {
	all, err := queryAll(ctx, q.db, func(o *Observation) []any {
		return []any{&o.Unit, &o.Environment, &o.Target, payloadColumn{&o.Data}}
	}, `SELECT unit, environment, target, data FROM observations WHERE unit = $1 ORDER BY environment, target`, unit)
	return all, wrapError(err, "read what was observed of %s", unit)
}
