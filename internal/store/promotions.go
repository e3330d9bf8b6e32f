package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Promotion is one release moving into one environment, or back out of it.
type Promotion struct {
	ID          int64 // given by the store
	Unit        string
	Repo        string
	Pipeline    string
	Component   string
	Environment string
	Kind        string // promotion or revert
	Release     string
	Pull        int // the pull request's number; 0: none yet
	State       string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Data        json.RawMessage
}

// PromotionFilter chooses promotions; an empty field chooses all.
type PromotionFilter struct {
	Repo, Pipeline, Component, Environment, Unit, Kind string

	Release string // an identity, or the beginning of one
	States  []string
	Pull    int
	Pulls   []int // any of these
	Before  int64 // only those with a smaller ID: the next page of a list
	Limit   int   // 0: 100; at most 1000
}

// PutPromotion writes a promotion down and returns its ID. One with an ID, or
// with a pull request that is known as the unit's, is written anew, except
// for when it was created; any other is added. Times that are zero are now.
func (t *Tx) PutPromotion(ctx context.Context, p Promotion) (id int64, err error) {
	if err := p.checkFields(); err != nil {
		return 0, wrapError(err, "store a promotion of %.80q", p.Unit)
	}
	p.CreatedAt, p.UpdatedAt = cmp.Or(p.CreatedAt, t.now()), cmp.Or(p.UpdatedAt, t.now())
	if p.ID != 0 {
		known, err := t.updatePromotion(ctx, p)
		if err == nil && !known {
			err = fmt.Errorf("%w: there is no such record", ErrInvalid)
		}
		return p.ID, wrapError(err, "store the promotion %d", p.ID)
	}
	id, err = t.addPromotion(ctx, p)
	return id, wrapError(err, "store the promotion of %s to %s (%s#%d)", p.Unit, p.Environment, p.Repo, p.Pull)
}

// updatePromotion writes one with an ID anew.
func (t *Tx) updatePromotion(ctx context.Context, p Promotion) (known bool, err error) {
	n, err := t.db.exec(ctx, `UPDATE promotions SET unit = $1, repo = $2, pipeline = $3, component = $4, environment = $5,
				kind = $6, release_id = $7, pull = $8, state = $9, updated_at = $10, data = $11 WHERE id = $12`,
		p.Unit, p.Repo, p.Pipeline, p.Component, p.Environment, p.Kind, p.Release, p.Pull, p.State,
		toMicros(p.UpdatedAt), string(p.Data), p.ID)
	return n > 0, err
}

// addPromotion writes one without an ID, which is written anew where its unit's pull request is known.
func (t *Tx) addPromotion(ctx context.Context, p Promotion) (id int64, err error) {
	id, _, err = queryOne(ctx, t.db, oneColumn[int64], `INSERT INTO promotions
			(unit, repo, pipeline, component, environment, kind, release_id, pull, state, updated_at, data, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (repo, pull, unit) WHERE pull > 0 DO UPDATE SET pipeline = excluded.pipeline,
			component = excluded.component, environment = excluded.environment, kind = excluded.kind,
			release_id = excluded.release_id, state = excluded.state, updated_at = excluded.updated_at, data = excluded.data
		RETURNING id`,
		p.Unit, p.Repo, p.Pipeline, p.Component, p.Environment, p.Kind, p.Release, p.Pull, p.State,
		toMicros(p.UpdatedAt), string(p.Data), toMicros(p.CreatedAt))
	return id, err
}

func (p Promotion) checkFields() error {
	return cmp.Or(checkNames("its unit", p.Unit, "its repository", p.Repo, "its pipeline", p.Pipeline, "its component", p.Component,
		"its environment", p.Environment, "its kind", p.Kind, "its release", p.Release, "its state", p.State), checkJSON(p.Data))
}

const promotionColumns = `id, unit, repo, pipeline, component, environment, kind, release_id, pull, state, created_at, updated_at, data`

func (p *Promotion) columns() []any {
	return []any{&p.ID, &p.Unit, &p.Repo, &p.Pipeline, &p.Component, &p.Environment, &p.Kind, &p.Release, &p.Pull, &p.State,
		timeColumn{&p.CreatedAt}, timeColumn{&p.UpdatedAt}, payloadColumn{&p.Data}}
}

// Promotions are those that the filter chooses, newest first.
func (q queries) Promotions(ctx context.Context, f PromotionFilter) ([]Promotion, error) {
	var w whereClause
	addEquals(&w, "repo", f.Repo)
	addEquals(&w, "pipeline", f.Pipeline)
	addEquals(&w, "component", f.Component)
	addEquals(&w, "environment", f.Environment)
	addEquals(&w, "unit", f.Unit)
	addEquals(&w, "kind", f.Kind)
	w.addPrefix("release_id", f.Release)
	addEquals(&w, "pull", f.Pull)
	if f.Before != 0 {
		w.addCondition("id < $%d", f.Before)
	}
	addIn(&w, "state", f.States)
	addIn(&w, "pull", f.Pulls)
	w.args = append(w.args, clampLimit(f.Limit))
	all, err := queryAll(ctx, q.db, (*Promotion).columns, `SELECT `+promotionColumns+` FROM promotions`+w.String()+
		` ORDER BY id DESC`+limitTo(w.lastPlaceholder()), w.args...)
	return all, wrapError(err, "read the promotions")
}

// Promotion is one; false when it isn't known.
func (q queries) Promotion(ctx context.Context, id int64) (Promotion, bool, error) {
	p, ok, err := queryOne(ctx, q.db, (*Promotion).columns, `SELECT `+promotionColumns+` FROM promotions WHERE id = $1`, id)
	return p, ok, wrapError(err, "read the promotion %d", id)
}

// PromotionByPull is a unit's with this pull request; false when it isn't known.
func (q queries) PromotionByPull(ctx context.Context, unit, repo string, pull int) (Promotion, bool, error) {
	p, ok, err := queryOne(ctx, q.db, (*Promotion).columns,
		`SELECT `+promotionColumns+` FROM promotions WHERE repo = $1 AND pull = $2 AND unit = $3 AND pull > 0`, repo, pull, unit)
	return p, ok, wrapError(err, "read the promotion of %s with %s#%d", unit, repo, pull)
}
