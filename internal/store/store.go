package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// DefaultLease is how long a claim holds without being renewed. Renew at a
// third of it.
const DefaultLease = 30 * time.Second

// Options are how a store is opened. The zero value is production's.
type Options struct {
	Log *zap.Logger      // nil: nothing is logged
	Now func() time.Time // nil: time.Now
	// DatabaseNow is SQLite's own clock where that isn't the process's, as PostgreSQL's may
	// be another machine's; nil: Now.
	DatabaseNow func() time.Time
	// Lease is how long a claim holds; 0: DefaultLease.
	Lease time.Duration
	// OnCommit is called just before and just after each write transaction's
	// commit with the transaction's name, so that a test can die there. It must
	// not use the store. Nil in production.
	OnCommit func(name string, before bool)
	// Intercept is asked before every read and write transaction, and, answered, after
	// each write transaction that was committed, with its name ("" for a read). Its error
	// takes the place of the answer: before, nothing is done; after, it stays done. It
	// must not use the store. Nil in production.
	Intercept func(ctx context.Context, name string, answered bool) error
	// MaxPages bounds the SQLite database's size in pages of 4 KiB; 0: no bound.
	MaxPages int
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	queries // outside of transactions

	log  *zap.Logger
	time *sharedTime
	// hasOwnClock: the database has a clock of its own, by which leases end.
	hasOwnClock bool
	lease       time.Duration
	backend     backend
	intercept   func(ctx context.Context, name string, answered bool) error // Options.Intercept
	signals     *signals
	closed      sync.Once
}

// backend is one of the two databases.
type backend interface {
	// runTx runs f in one write transaction and commits it when f returns nil.
	runTx(ctx context.Context, name string, f func(session) error) error
	// sqlDialect are the few places where the databases' SQL differs.
	sqlDialect() dialect
	closeDB() error
}

// dialect are pieces of SQL; empty where a database needs none.
type dialect struct {
	skipLocked string // appended to a SELECT: lock its rows, pass over those that others hold
	lockEvents string // a statement: one transaction at a time appends events, so that seq rises in the order of commits
	notify     string // a statement: tell the other processes about $1, a subject, once this commits
}

// Open opens the database at dsn, creates or migrates its tables, and returns
// when it is ready. "sqlite://" is followed by a file's path (so an absolute one
// has three slashes); its folder is created, and locked against a second process
// (ErrInUse). "postgres://…" is a PostgreSQL server as libpq's URLs name it;
// Liftlock's tables are in the first schema of the search path.
//
// The errors wrap ErrInUse, ErrCorrupt, ErrNewer or ErrFull where one of them is
// the reason. No error contains the password of dsn.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	o.Log, o.Lease = cmp.Or(o.Log, zap.NewNop()), cmp.Or(o.Lease, DefaultLease)
	if o.Now == nil {
		o.Now = time.Now
	}
	ownClock := o.DatabaseNow != nil
	if !ownClock {
		o.DatabaseNow = o.Now
	}
	if o.OnCommit == nil {
		o.OnCommit = func(string, bool) {}
	}
	s := &Store{log: o.Log, time: &sharedTime{own: o.Now}, hasOwnClock: ownClock, lease: o.Lease, intercept: o.Intercept, signals: newSignals()}
	scheme, rest, _ := strings.Cut(dsn, "://")
	switch scheme {
	case "sqlite":
		db, err := openSQLite(ctx, rest, o)
		if err != nil {
			return nil, err
		}
		s.backend, s.queries = db, queries{db: s.intercepted(newPreparedSession(db.readers, o.DatabaseNow)), now: s.time.now}
	case "postgres", "postgresql":
		db, err := openPostgres(ctx, dsn, o, s.signals)
		if err != nil {
			return nil, err
		}
		s.backend, s.queries = db, queries{db: s.intercepted(plainSession{db: db.pool}), now: s.time.now}
		s.hasOwnClock = true
		if err := s.learnTime(ctx); err != nil {
			db.closeDB()
			return nil, err
		}
	default:
		return nil, errors.New(`the store's address begins with neither "sqlite://" nor "postgres://"`)
	}
	return s, nil
}

// Close waits for the writes that have begun and closes the database. Calls
// after it fail, on SQLite with ErrClosed. Closing twice is closing once.
func (s *Store) Close() (err error) {
	s.closed.Do(func() {
		if err = s.backend.closeDB(); err != nil {
			err = fmt.Errorf("close the store: %w", err)
		}
	})
	return err
}

// Wakeups is signalled when a key may be due, or due earlier than NextDue said:
// after every wake here and, on PostgreSQL, in any process on this database. A
// signal that nobody takes is kept, several are one. It is for one reader, which
// then calls Claim and NextDue.
func (s *Store) Wakeups() <-chan struct{} { return s.signals.wakes }

// Subscribe returns a channel that is signalled when there are new events; read
// them with Events. Several signals may be one. Call cancel when done.
func (s *Store) Subscribe() (events <-chan struct{}, cancel func()) { return s.signals.subscribe() }
