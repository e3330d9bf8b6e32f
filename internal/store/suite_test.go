package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/liftlock/liftlock/internal/world/storetest"
)

var ctx = context.Background()

// start is when the tests' clock starts.
var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
	// onAdvance tells the database's own clock, where it has one.
	onAdvance func(time.Time)
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	if c.onAdvance != nil {
		c.onAdvance(c.now)
	}
}

// testStore is an open store under a test's control.
type testStore struct {
	*Store
	*clock
	t    testing.TB
	dsn  string // empty: in memory
	open func() *Store
}

// openWith opens the database, which was closed, with other options; in memory a new one.
func (ts *testStore) openWith(o Options) *Store {
	ts.t.Helper()
	if ts.dsn != "" {
		return mustOpen(ts.t, ts.dsn, o)
	}
	s := OpenMemory(o)
	ts.t.Cleanup(func() { s.Close() })
	return s
}

// reopen closes the store and opens it again, as after a restart.
func (ts *testStore) reopen() {
	ts.t.Helper()
	if err := ts.Store.Close(); err != nil {
		ts.t.Fatal(err)
	}
	ts.Store = ts.open()
}

// onEachDatabase runs the test over each database.
func onEachDatabase(t *testing.T, f func(t *testing.T, w *testStore)) {
	t.Run("memory", func(t *testing.T) { f(t, onMemory(t)) })
	onLastingDatabases(t, f)
}

// onLastingDatabases runs a test of what outlives a process.
func onLastingDatabases(t *testing.T, f func(t *testing.T, w *testStore)) {
	t.Run("sqlite", func(t *testing.T) { f(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, onPostgres(t)) })
}

func onMemory(t testing.TB) *testStore {
	c := &clock{now: start}
	w := &testStore{clock: c, t: t, Store: OpenMemory(Options{Now: c.Now})}
	t.Cleanup(func() { w.Store.Close() })
	return w
}

func onSQLite(t testing.TB) *testStore {
	c := &clock{now: start}
	w := &testStore{clock: c, t: t, dsn: "sqlite://" + filepath.Join(t.TempDir(), "liftlock.db")}
	w.open = func() *Store { return mustOpen(t, w.dsn, Options{Now: c.Now}) }
	w.Store = w.open()
	return w
}

// onPostgres opens a store whose database's clock is the test's.
func onPostgres(t testing.TB) *testStore {
	dsn := storetest.PostgresSchema(t)
	c := &clock{now: start}
	w := &testStore{clock: c, t: t, dsn: dsn}
	w.open = func() *Store { return mustOpen(t, dsn, Options{Now: c.Now}) }
	w.Store = w.open()
	db := w.Store.backend.(*postgresDB).pool
	mustExec(t, db, `CREATE TABLE test_clock (us BIGINT)`)
	mustExec(t, db, `INSERT INTO test_clock VALUES ($1)`, toMicros(start))
	mustExec(t, db, `CREATE OR REPLACE FUNCTION liftlock_now() RETURNS BIGINT LANGUAGE sql STABLE AS 'SELECT us FROM test_clock'`)
	must(t, w.learnTime(ctx, plainSession{db: db}))
	c.onAdvance = func(now time.Time) {
		mustExec(t, w.Store.backend.(*postgresDB).pool, `UPDATE test_clock SET us = $1`, toMicros(now))
	}
	return w
}

func mustExec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(ctx, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func mustOpen(t testing.TB, dsn string, o Options) *Store {
	t.Helper()
	if o.Log == nil {
		o.Log = zaptest.NewLogger(t)
	}
	s, err := Open(ctx, dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// must fails the test for an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// value is must for a call with a result.
func value[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// found is value for a lookup.
func found[T any](v T, ok bool, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		if !ok {
			t.Fatal("not found")
		}
		return v
	}
}

// absent fails the test when a lookup finds something.
func absent[T any](v T, ok bool, err error) func(t testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		must(t, err)
		if ok {
			t.Fatalf("found %+v, want nothing", v)
		}
	}
}

// keysOf are the claims' keys in their order.
func keysOf(claims []Claim) []string {
	var keys []string
	for _, c := range claims {
		keys = append(keys, c.Key)
	}
	return keys
}
