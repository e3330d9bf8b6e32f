package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline/event"
)

// Event is something that happened, for people to read.
type Event struct {
	Seq            int64 // given by the store, rising in the order in which events can be read
	At             time.Time
	Repo           string
	Pipeline       string
	Component      string
	Environment    string
	Pull           int // 0: about no pull request
	Kind           event.Kind
	Message        string // cut at 8 KiB
	Data           json.RawMessage
	IdempotencyKey string // the same happening is written once; empty: always
}

// EventFilter chooses events; an empty field chooses all.
type EventFilter struct {
	After                                  int64 // only those with a higher Seq
	Repo, Pipeline, Component, Environment string
	Pull                                   int
	Newest                                 bool // the newest first; otherwise the oldest
	Limit                                  int  // 0: 100; at most 1000
}

// AddEvents writes events down and returns how many were new. A zero At is now.
func (s *Store) AddEvents(ctx context.Context, all ...Event) (added int, err error) {
	return txWithResult(ctx, s, "addEvents", func(tx *Tx) (int, error) { return tx.AddEvents(ctx, all...) })
}

// AddEvents is Store.AddEvents. On PostgreSQL, other transactions that add
// events wait from here to this one's end: call it last.
func (t *Tx) AddEvents(ctx context.Context, all ...Event) (added int, err error) {
	if lock := t.store.dialect.lockEvents; lock != "" && len(all) > 0 {
		// A reader that has seen number 8 could otherwise miss number 7, whose transaction
		// began earlier and commits later.
		if _, err := t.db.exec(ctx, lock); err != nil {
			return 0, wrapError(err, "store events")
		}
	}
	for _, e := range all {
		fresh, err := t.addEvent(ctx, e)
		if err != nil {
			return added, wrapError(err, "store the event %.80q of %.80q", e.Kind, e.Component)
		}
		if fresh {
			added++
		}
	}
	if added > 0 {
		t.subjects[subjectEvents] = true
	}
	return added, nil
}

func (t *Tx) addEvent(ctx context.Context, e Event) (fresh bool, err error) {
	if err := cmp.Or(checkNames("its repository", e.Repo, "its pipeline", e.Pipeline, "its component", e.Component,
		"its environment", e.Environment, "its kind", string(e.Kind), "its key", e.IdempotencyKey), checkJSON(e.Data)); err != nil {
		return false, err
	}
	if e.At.IsZero() {
		e.At = t.now()
	}
	e.Message = limitText(e.Message)
	n, err := t.db.exec(ctx, `INSERT INTO events (at, repo, pipeline, component, environment, pull, kind, message, data, idempotency_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
		toMicros(e.At), e.Repo, e.Pipeline, e.Component, e.Environment, e.Pull, e.Kind, e.Message, string(e.Data), e.IdempotencyKey)
	return n > 0, err
}

// Events are those that the filter chooses.
func (q queries) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	var w whereClause
	if f.After > 0 {
		w.addCondition("seq > $%d", f.After)
	}
	addEquals(&w, "repo", f.Repo)
	addEquals(&w, "pipeline", f.Pipeline)
	addEquals(&w, "component", f.Component)
	addEquals(&w, "environment", f.Environment)
	addEquals(&w, "pull", f.Pull)
	order := " ORDER BY seq"
	if f.Newest {
		order += " DESC"
	}
	w.args = append(w.args, clampLimit(f.Limit))
	all, err := queryAll(ctx, q.db, func(e *Event) []any {
		return []any{&e.Seq, timeColumn{&e.At}, &e.Repo, &e.Pipeline, &e.Component, &e.Environment, &e.Pull, &e.Kind, &e.Message,
			payloadColumn{&e.Data}, &e.IdempotencyKey}
	}, `SELECT seq, at, repo, pipeline, component, environment, pull, kind, message, data, idempotency_key FROM events`+
		w.String()+order+limitTo(w.lastPlaceholder()), w.args...)
	return all, wrapError(err, "read the events")
}
