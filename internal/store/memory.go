package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// OpenMemory opens an empty store in memory, which keeps every promise of one over
// SQLite but that of outliving its process, in microseconds: for simulations and tests.
// It is gone when it is closed. Options.MaxPages bounds nothing here.
func OpenMemory(o Options) *Store {
	s := o.newStore()
	db := &memoryDB{now: o.DatabaseNow, onCommit: o.OnCommit, intercept: o.Intercept, turn: make(chan struct{}, 1),
		closed: make(chan struct{})}
	db.committed.Store(newMemoryTables())
	s.useBackend(db)
	return s
}

// memoryDB is a database in memory. Every commit is a set of tables of its own that
// shares with the one before what didn't change: readers keep to the one that they
// found, and a transaction that fails leaves nothing to undo.
type memoryDB struct {
	now       func() time.Time // the database's
	onCommit  func(name string, before bool)
	intercept func(ctx context.Context, name string, answered bool) error

	turn      chan struct{} // to write; full while somebody does
	closing   sync.Once
	closed    chan struct{}
	committed atomic.Pointer[memoryTables]
}

func (m *memoryDB) readsBy(now func() time.Time) reader {
	return memoryReader{now: now, databaseNow: m.nowMicros, tables: m.readTables}
}

// nowMicros is the database's time as it is stored.
func (m *memoryDB) nowMicros() int64 { return toMicros(m.now()) }

// readTables are what was committed last, for one read.
func (m *memoryDB) readTables(ctx context.Context) (*memoryTables, error) {
	if m.intercept != nil {
		if err := m.intercept(ctx, "", false); err != nil {
			return nil, fmt.Errorf("read the store in memory: %w", err)
		}
	}
	select {
	case <-m.closed:
		return nil, fmt.Errorf("read the store in memory: %w", ErrClosed)
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read the store in memory: %w", err)
	}
	return m.committed.Load(), nil
}

// runTx runs f as one transaction, when it is its turn. A context that ends before
// that stops it; after that, f and its commit run to their end.
func (m *memoryDB) runTx(ctx context.Context, name string, now func() time.Time, f func(transaction) error) error {
	if err := m.takeTurn(ctx); err != nil {
		return err
	}
	defer m.endTurn() // also when f panics: then nothing was committed
	tables := m.committed.Load().begin()
	here := func(context.Context) (*memoryTables, error) { return tables, nil }
	if err := f(&memoryTx{memoryReader: memoryReader{now: now, databaseNow: m.nowMicros, tables: here}, tables: tables}); err != nil {
		return err
	}
	m.onCommit(name, true)
	m.committed.Store(tables)
	m.onCommit(name, false)
	return nil
}

func (m *memoryDB) takeTurn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-m.closed:
		return ErrClosed
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-m.closed: // while both were possible
		m.endTurn()
		return ErrClosed
	default:
		return nil
	}
}

func (m *memoryDB) endTurn() { <-m.turn }

// closeDB waits for the transaction that has begun.
func (m *memoryDB) closeDB() error {
	m.closing.Do(func() {
		m.turn <- struct{}{}
		close(m.closed)
		m.endTurn()
		m.committed.Store(newMemoryTables()) // nobody reads them any more
	})
	return nil
}

// memoryReader are the reads of a database in memory: of what was committed, or of what
// a transaction sees.
type memoryReader struct {
	now         func() time.Time // the process's
	databaseNow func() int64
	tables      func(context.Context) (*memoryTables, error)
}

// memoryTx is a write transaction of a database in memory.
type memoryTx struct {
	memoryReader
	tables *memoryTables
}

var _ transaction = (*memoryTx)(nil)

// announce has nobody to tell: other processes are simulated in this one.
func (mt *memoryTx) announce(context.Context, string) error { return nil }

// lockEvents has nothing to do: one transaction at a time writes.
func (mt *memoryTx) lockEvents(context.Context) error { return nil }
