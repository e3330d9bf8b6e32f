package store

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// preparedSession is a session of a pool's reads whose statements stay prepared: for
// the small ones of a look, compiling costs several times what running does.
type preparedSession struct {
	db  *sql.DB
	now func() time.Time

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

func newPreparedSession(db *sql.DB, now func() time.Time) *preparedSession {
	return &preparedSession{db: db, now: now, stmts: map[string]*sql.Stmt{}}
}

func (p *preparedSession) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return plainSession{db: p.db, now: p.now}.exec(ctx, query, args...)
}

func (p *preparedSession) query(ctx context.Context, scan scanRow, query string, args ...any) error {
	query, args = bindClock(p.now, query, args)
	stmt, err := p.prepareStmt(ctx, query)
	switch {
	case err != nil:
		return err
	case stmt == nil:
		return plainSession{db: p.db}.query(ctx, scan, query, args...)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return scanAll(rows, scan)
}

// prepareStmt is a query's statement; nil where as many as may be are prepared: filters
// make many, and one that others use can't be closed.
func (p *preparedSession) prepareStmt(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	stmt, ok := p.stmts[query]
	full := len(p.stmts) >= maxStatements
	p.mu.Unlock()
	if ok || full {
		return stmt, nil
	}
	made, err := p.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stmt, ok := p.stmts[query]; ok { // somebody else was faster
		return stmt, made.Close()
	}
	p.stmts[query] = made
	return made, nil
}
