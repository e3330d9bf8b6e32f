package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// OpenMemory opens an empty SQLite database in memory, for simulations and tests. It is gone
// when it is closed, Options.MaxPages bounds nothing in it, and reads wait for a transaction
// that runs. In all else it is what a file is.
func OpenMemory(o Options) *Store {
	s := o.newStore()
	db := &memoryDB{}
	if err := db.open(context.Background(), o); err != nil {
		panic(fmt.Sprintf("open a database in memory: %v", err)) // nothing outside of the process can be the reason
	}
	s.useBackend(db, db)
	return s
}

// memoryDB is an SQLite database in memory. It has one connection, on which reads and
// transactions take turns, so that no read sees what isn't committed.
type memoryDB struct {
	pool   *sql.DB // of the one connection
	conn   *sql.Conn
	writer *writer
}

func (m *memoryDB) open(ctx context.Context, o Options) (err error) {
	image, err := emptyImage()
	if err != nil {
		return err
	}
	if m.pool, err = sql.Open("sqlite", ":memory:"); err != nil {
		return err
	}
	if m.conn, err = m.pool.Conn(ctx); err != nil {
		return err
	}
	if err := m.conn.Raw(func(c any) error { return c.(interface{ Deserialize([]byte) error }).Deserialize(image) }); err != nil {
		return err
	}
	m.writer = startWriter(m.conn, o.DatabaseNow, o.OnCommit)
	// No other process has it, and nothing of it outlives this one.
	return m.writer.execRaw(`PRAGMA foreign_keys = 1; PRAGMA locking_mode = EXCLUSIVE;
		PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF`)
}

// emptyImage is a database with all tables and no rows: making them takes many times as long
// as copying them.
var emptyImage = sync.OnceValues(func() (image []byte, err error) {
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1) // another would have a database of its own
	if err := migrateTables(context.Background(), pool, sqliteTables); err != nil {
		return nil, err
	}
	conn, err := pool.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	err = conn.Raw(func(c any) (err error) {
		image, err = c.(interface{ Serialize() ([]byte, error) }).Serialize()
		return err
	})
	return image, err
})

// exec and query make the database the session of reads outside of transactions.
func (m *memoryDB) exec(ctx context.Context, query string, args ...any) (int64, error) {
	m.writer.turn.Lock()
	defer m.writer.turn.Unlock()
	return m.writer.exec(ctx, query, args...)
}

func (m *memoryDB) query(ctx context.Context, scan scanRow, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.writer.turn.Lock()
	defer m.writer.turn.Unlock()
	return m.writer.query(ctx, scan, query, args...)
}

func (m *memoryDB) runTx(ctx context.Context, name string, f func(session) error) error {
	return m.writer.runTx(ctx, name, f)
}

func (m *memoryDB) closeDB() error {
	m.writer.close()
	return errors.Join(m.conn.Close(), m.pool.Close())
}
