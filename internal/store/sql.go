package store

import (
	"context"
	"time"
)

// queries are the reads of a database that knows SQL.
type queries struct {
	db  session
	now func() time.Time
}

// sqlTx is a write transaction of a database that knows SQL.
type sqlTx struct {
	queries
	dialect dialect
}

var _ transaction = sqlTx{}

// dialect are pieces of SQL; empty where a database needs none.
type dialect struct {
	skipLocked string // appended to a SELECT: lock its rows, pass over those that others hold
	forUpdate  string // appended to a SELECT: lock its rows
	lockEvents string // a statement: one transaction at a time appends events, so that seq rises in the order of commits
	notify     string // a statement: tell the other processes about $1, a subject, once this commits
}

func (s sqlTx) announce(ctx context.Context, subject string) error {
	if s.dialect.notify == "" {
		return nil
	}
	_, err := s.db.exec(ctx, s.dialect.notify, subject)
	return err
}
