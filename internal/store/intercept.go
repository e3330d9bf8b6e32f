package store

import (
	"context"
	"database/sql"
)

// interceptedSession asks before every read.
type interceptedSession struct {
	session
	intercept func(ctx context.Context, name string, answered bool) error
}

// interceptReads is a session for reads that asks Options.Intercept, where there is one.
func (o *Options) interceptReads(db session) session {
	if o.Intercept == nil {
		return db
	}
	return interceptedSession{db, o.Intercept}
}

func (i interceptedSession) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := i.intercept(ctx, "", false); err != nil {
		return nil, err
	}
	return i.session.query(ctx, query, args...)
}
