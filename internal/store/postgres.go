package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/zap"
)

const (
	// pgConnections is how many connections one replica uses at most, beside the
	// one that listens.
	pgConnections = 12
	// pgAttempts is how often a transaction runs that the database gives up for
	// another's sake.
	pgAttempts = 5
	// pgRelisten is how long after a failure the listener connects again.
	pgRelisten = 2 * time.Second
)

// pg is a PostgreSQL database, shared by replicas.
type pg struct {
	pool *sql.DB
	hook func(name string, before bool)
	sql  words

	stop     context.CancelFunc // of the listener
	listener sync.WaitGroup
}

// openPostgres connects, migrates and begins to listen.
func openPostgres(ctx context.Context, dsn string, o Options, s *signals) (_ *pg, err error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The parser's error quotes the address, and with it perhaps a password.
		return nil, errors.New("the store's address is not a PostgreSQL URL: postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	where := fmt.Sprintf("the PostgreSQL database %q at %s:%d", cfg.Database, cfg.Host, cfg.Port)
	db := &pg{pool: stdlib.OpenDB(*cfg), hook: o.OnCommit}
	defer func() {
		if err != nil {
			db.close()
			err = wrap(err, "open %s", where)
		}
	}()
	db.pool.SetMaxOpenConns(pgConnections)
	db.pool.SetMaxIdleConns(pgConnections)
	if err := migrate(ctx, db.pool, postgresTables); err != nil {
		return nil, err
	}
	schema, _, err := one(ctx, plain{db: db.pool}, column[string], `SELECT current_schema()`)
	if err != nil {
		return nil, err
	}
	// Names of channels and advisory locks belong to the whole database; the
	// schema tells two Liftlocks in one database apart.
	channel := cut("liftlock "+schema, 63) // PostgreSQL's bound for names
	quoted := "'" + quote(channel) + "'"
	db.sql = words{
		skipLocked: " FOR UPDATE SKIP LOCKED",
		lockEvents: "SELECT pg_advisory_xact_lock(hashtextextended(" + quoted + ", 0))",
		notify:     "SELECT pg_notify(" + quoted + ", $1)",
	}
	conn, err := listen(ctx, cfg, channel)
	if err != nil {
		return nil, err
	}
	lctx, stop := context.WithCancel(context.Background())
	db.stop = stop
	db.listener.Add(1)
	go func() {
		defer db.listener.Done()
		keepListening(lctx, conn, cfg, channel, s, o.Log.With(zap.String("database", where)))
	}()
	return db, nil
}

// quote doubles quotes for a SQL string literal.
func quote(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\'' {
			out = append(out, '\'')
		}
		out = append(out, s[i])
	}
	return string(out)
}

func listen(ctx context.Context, cfg *pgx.ConnConfig, channel string) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg.Copy())
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// keepListening passes notifications on until ctx ends. While the connection is
// gone, replicas find each other's wakes by their own timers; once it is back,
// everything is signalled, since anything may have been missed.
func keepListening(ctx context.Context, conn *pgx.Conn, cfg *pgx.ConnConfig, channel string, s *signals, log *zap.Logger) {
	for {
		for conn != nil {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				conn.Close(context.Background())
				conn = nil
				if ctx.Err() == nil {
					log.Warn("listening for other replicas' wakes was interrupted; connecting again", zap.Error(err))
				}
				break
			}
			s.about(n.Payload)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pgRelisten):
		}
		var err error
		if conn, err = listen(ctx, cfg, channel); err != nil {
			conn = nil
			continue
		}
		s.about(subjectWakes)
		s.about(subjectEvents)
	}
}

func (p *pg) words() words { return p.sql }

func (p *pg) tx(ctx context.Context, name string, f func(session) error) error {
	for attempt := 1; ; attempt++ {
		err := p.once(ctx, name, f)
		if err == nil || attempt == pgAttempts || !again(err) {
			return err
		}
	}
}

func (p *pg) once(ctx context.Context, name string, f func(session) error) error {
	tx, err := p.pool.BeginTx(ctx, nil) // READ COMMITTED: every statement judges the newest rows
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := f(plain{db: tx}); err != nil {
		return ended(ctx, err)
	}
	p.hook(name, true)
	if err := tx.Commit(); err != nil {
		return ended(ctx, err)
	}
	p.hook(name, false)
	return nil
}

// ended says what was meant: when the context ends, the transaction is rolled back
// behind our back, and the next statement only finds it gone.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// close is also for a database that was opened half-way.
func (p *pg) close() error {
	if p.stop != nil {
		p.stop()
		p.listener.Wait()
	}
	return p.pool.Close()
}
