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
	// InterceptStatement is asked before every statement of a write transaction, with the
	// transaction's name. Where it gives an error, that takes the place of the answer, and
	// the statement isn't run. It must not use the store. Nil in production.
	InterceptStatement func(ctx context.Context, transaction string) error
	// MaxPages bounds the SQLite database's size in pages of 4 KiB; 0: no bound.
	MaxPages int
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	queries // outside of transactions

	options Options // all that may be left out is filled in, but for the interceptors
	time    *sharedTime
	// hasOwnClock: the database has a clock of its own, by which leases end.
	hasOwnClock bool
	backend     backend
	dialect     dialect
	signals     *signals
	accepts     *acceptGroup // nil: each delivery is a transaction of its own
	closed      sync.Once
}

// backend is one of the databases.
type backend interface {
	// runTx runs f in one write transaction and commits it when f returns nil.
	runTx(ctx context.Context, name string, f func(session) error) error
	closeDB() error
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
	s := o.newStore()
	scheme, rest, _ := strings.Cut(dsn, "://")
	switch scheme {
	case "sqlite":
		db, err := openSQLite(ctx, rest, o)
		if err != nil {
			return nil, err
		}
		s.useBackend(db, db.reading)
		s.accepts = &acceptGroup{}
	case "postgres", "postgresql":
		db, err := openPostgres(ctx, dsn, o, s.signals)
		if err != nil {
			return nil, err
		}
		s.useBackend(db, plainSession{db: db.pool})
		s.dialect, s.hasOwnClock = db.dialect, true
		if err := s.learnTime(ctx, plainSession{db: db.pool}); err != nil {
			db.closeDB()
			return nil, err
		}
	default:
		return nil, errors.New(`the store's address begins with neither "sqlite://" nor "postgres://"`)
	}
	return s, nil
}

// newStore fills in what isn't said and makes a store that has no database yet.
func (o *Options) newStore() *Store {
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
	return &Store{options: *o, time: &sharedTime{own: o.Now}, hasOwnClock: ownClock, signals: newSignals()}
}

func (s *Store) useBackend(db backend, reading session) {
	s.backend, s.queries = db, queries{db: s.options.interceptReads(reading), now: s.time.now}
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

// Wakeups is signalled when a key may be due, or due earlier than NextDue said: after every wake
// here and, on PostgreSQL, in any process on this database. A signal is kept until it is taken,
// several are one. It is for one reader, which then calls Claim and NextDue.
func (s *Store) Wakeups() <-chan struct{} { return s.signals.wakes }

// Subscribe returns a channel that is signalled when there are new events; read
// them with Events. Several signals may be one. Call cancel when done.
func (s *Store) Subscribe() (events <-chan struct{}, cancel func()) {
	return s.signals.subscribe(subscription{})
}

// SubscribeShown is Subscribe for a subscriber that shows units too: the channel is also signalled
// when one was changed or forgotten.
func (s *Store) SubscribeShown() (changes <-chan struct{}, cancel func()) {
	return s.signals.subscribe(subscription{units: true})
}
