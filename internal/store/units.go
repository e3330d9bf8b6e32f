package store

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Unit is what is shown of a unit (a component of a pipeline, or a batch): the
// facts and the decision of its last run.
type Unit struct {
	Key       string
	Repo      string
	Pipeline  string
	Component string
	Digest    string // of Data, without what changes at every run
	UpdatedAt time.Time
	Data      json.RawMessage
}

// UnitFilter chooses units; an empty field chooses all.
type UnitFilter struct {
	Repo, Pipeline string
	Contains       string // a piece of the data's text, without % and _
	WithoutData    bool   // the units come without their Data
}

// PutUnit writes the unit down, unless its Digest is what is there already.
func (t *Tx) PutUnit(ctx context.Context, u Unit) error {
	if err := u.checkFields(); err != nil {
		return wrapError(err, "store the unit %.80q", u.Key)
	}
	n, err := t.db.exec(ctx,
		`INSERT INTO units (key, repo, pipeline, component, digest, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (key) DO UPDATE SET repo = excluded.repo, pipeline = excluded.pipeline, component = excluded.component,
			digest = excluded.digest, updated_at = excluded.updated_at, data = excluded.data
		WHERE excluded.digest <> units.digest`,
		u.Key, u.Repo, u.Pipeline, u.Component, u.Digest, toMicros(u.UpdatedAt), string(u.Data))
	if n > 0 {
		t.subjects[subjectUnits] = true
	}
	return wrapError(err, "store the unit %s", u.Key)
}

func (u Unit) checkFields() error {
	return cmp.Or(checkKey("its key", u.Key), checkJSON(u.Data),
		checkNames("its repository", u.Repo, "its pipeline", u.Pipeline, "its component", u.Component, "its digest", u.Digest))
}

// DeleteUnit forgets the unit, what was observed of its targets, and its entry in the merge queue.
// Its history stays. A unit that isn't known is success.
func (t *Tx) DeleteUnit(ctx context.Context, key string) error {
	t.subjects[subjectUnits] = true
	for _, q := range []string{
		`DELETE FROM units WHERE key = $1`, `DELETE FROM observations WHERE unit = $1`, `DELETE FROM merge_queue WHERE unit = $1`,
	} {
		if _, err := t.db.exec(ctx, q, key); err != nil {
			return wrapError(err, "forget the unit %s", key)
		}
	}
	return nil
}

const unitColumns = `key, repo, pipeline, component, digest, updated_at, data`

func (u *Unit) columns() []any {
	return []any{&u.Key, &u.Repo, &u.Pipeline, &u.Component, &u.Digest, timeColumn{&u.UpdatedAt}, payloadColumn{&u.Data}}
}

// Units are the units that the filter chooses, sorted by pipeline, component and key.
func (q queries) Units(ctx context.Context, f UnitFilter) ([]Unit, error) {
	var w whereClause
	addEquals(&w, "repo", f.Repo)
	addEquals(&w, "pipeline", f.Pipeline)
	if f.Contains != "" {
		w.addCondition("data LIKE $%d", "%"+f.Contains+"%")
	}
	columns := unitColumns
	if f.WithoutData {
		columns = strings.Replace(columns, ", data", ", ''", 1)
	}
	units, err := queryAll(ctx, q.db, (*Unit).columns, `SELECT `+columns+` FROM units`+w.String()+
		` ORDER BY pipeline, component, key`, w.args...)
	return units, wrapError(err, "read the units")
}

// Unit is one unit; false when it isn't known.
func (q queries) Unit(ctx context.Context, key string) (Unit, bool, error) {
	u, ok, err := queryOne(ctx, q.db, (*Unit).columns, `SELECT `+unitColumns+` FROM units WHERE key = $1`, key)
	return u, ok, wrapError(err, "read the unit %s", key)
}
