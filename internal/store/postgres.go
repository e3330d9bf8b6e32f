package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
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

// postgresDB is a PostgreSQL database, shared by replicas.
type postgresDB struct {
	pool     *sql.DB
	onCommit func(name string, before bool)
	dialect  dialect

	stop     context.CancelFunc // of the listener
	listener sync.WaitGroup
}

// openPostgres connects, migrates and begins to listen.
func openPostgres(ctx context.Context, dsn string, o Options, s *signals) (_ *postgresDB, err error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The parser's error quotes the address, and with it perhaps a password.
		return nil, errors.New("the store's address is not a PostgreSQL URL: " +
			"postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	where := fmt.Sprintf("the PostgreSQL database %q at %s:%d", cfg.Database, cfg.Host, cfg.Port)
	db := &postgresDB{pool: stdlib.OpenDB(*cfg), onCommit: o.OnCommit}
	defer func() {
		if err != nil {
			db.closeDB()
			err = wrapError(withReach(err), "open %s", where)
		}
	}()
	db.pool.SetMaxOpenConns(pgConnections)
	db.pool.SetMaxIdleConns(pgConnections)
	if err := migrateTables(ctx, db.pool, postgresTables); err != nil {
		return nil, err
	}
	schema, _, err := queryOne(ctx, plainSession{db: db.pool}, oneColumn[string], `SELECT current_schema()`)
	if err != nil {
		return nil, err
	}
	// Names of channels and advisory locks belong to the whole database; the
	// schema tells two Liftlocks in one database apart.
	channel := truncateText("liftlock "+schema, 63) // PostgreSQL's bound for names
	quoted := "'" + strings.ReplaceAll(channel, "'", "''") + "'"
	db.dialect = dialect{
		skipLocked: " FOR UPDATE SKIP LOCKED",
		forUpdate:  " FOR UPDATE",
		lockEvents: "SELECT pg_advisory_xact_lock(hashtextextended(" + quoted + ", 0))",
		notify:     "SELECT pg_notify(" + quoted + ", $1)",
	}
	conn, err := startListening(ctx, cfg, channel)
	if err != nil {
		return nil, err
	}
	lctx, stop := context.WithCancel(context.Background())
	db.stop = stop
	db.listener.Add(1)
	go func() {
		defer db.listener.Done()
		relayNotifications(lctx, conn, cfg, channel, s, o.Log.With(zap.String("database", where)))
	}()
	return db, nil
}

func startListening(ctx context.Context, cfg *pgx.ConnConfig, channel string) (*pgx.Conn, error) {
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

// relayNotifications passes notifications on until ctx ends. While the connection is
// gone, replicas find each other's wakes by their own timers; once it is back,
// everything is signalled, since anything may have been missed.
func relayNotifications(ctx context.Context, conn *pgx.Conn, cfg *pgx.ConnConfig, channel string, s *signals, log *zap.Logger) {
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
			s.notifySubject(n.Payload)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pgRelisten):
		}
		var err error
		if conn, err = startListening(ctx, cfg, channel); err != nil {
			conn = nil
			continue
		}
		s.notifySubject(subjectWakes)
		s.notifySubject(subjectEvents)
		s.notifySubject(subjectUnits)
	}
}

func (p *postgresDB) runTx(ctx context.Context, name string, f func(session) error) error {
	for attempt := 1; ; attempt++ {
		err := p.runTxOnce(ctx, name, f)
		if err == nil || attempt == pgAttempts || !isRetryable(err) {
			return err
		}
	}
}

func (p *postgresDB) runTxOnce(ctx context.Context, name string, f func(session) error) error {
	tx, err := p.pool.BeginTx(ctx, nil) // READ COMMITTED: every statement judges the newest rows
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := f(plainSession{db: tx}); err != nil {
		return preferContextError(ctx, err)
	}
	p.onCommit(name, true)
	if err := tx.Commit(); err != nil {
		return preferContextError(ctx, err)
	}
	p.onCommit(name, false)
	return nil
}

// preferContextError says what was meant: when the context ends, the transaction is rolled back
// behind our back, and the next statement only finds it gone.
func preferContextError(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// closeDB is also for a database that was opened half-way.
func (p *postgresDB) closeDB() error {
	if p.stop != nil {
		p.stop()
		p.listener.Wait()
	}
	return p.pool.Close()
}
