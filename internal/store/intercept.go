package store

import "context"

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

func (i interceptedSession) query(ctx context.Context, scan scanRow, query string, args ...any) error {
	if err := i.intercept(ctx, "", false); err != nil {
		return err
	}
	return i.session.query(ctx, scan, query, args...)
}

// statementSession asks before every statement of a transaction.
type statementSession struct {
	session
	transaction string
	intercept   func(ctx context.Context, transaction string) error
}

// interceptStatements is a transaction's session that asks Options.InterceptStatement, where
// there is one.
func (o *Options) interceptStatements(transaction string, db session) session {
	if o.InterceptStatement == nil {
		return db
	}
	return statementSession{db, transaction, o.InterceptStatement}
}

func (s statementSession) exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := s.intercept(ctx, s.transaction); err != nil {
		return 0, err
	}
	return s.session.exec(ctx, query, args...)
}

func (s statementSession) query(ctx context.Context, scan scanRow, query string, args ...any) error {
	if err := s.intercept(ctx, s.transaction); err != nil {
		return err
	}
	return s.session.query(ctx, scan, query, args...)
}
