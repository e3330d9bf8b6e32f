package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// groupLimit bounds how many transactions are committed together, so that the
// first of them doesn't wait for ever more that arrive.
const groupLimit = 256

var errAborted = errors.New("the transaction's function did not return")

// writer is SQLite's one writing connection. Transactions that wait for it at the same moment run
// one after the other inside one SQLite transaction, each in a savepoint of its own, and share its
// fsync. That makes a burst of deliveries cheap. Each runs on its caller's goroutine, while the
// writer waits.
type writer struct {
	conn     *sql.Conn
	now      func() time.Time
	onCommit func(name string, before bool)

	turn sync.Mutex // held while transactions run; for reads on the same connection

	jobs    chan *job
	quit    chan struct{} // closed by close
	stopped chan struct{} // closed when the writer has ended

	// Statements stay prepared: compiling costs more than running them. Only
	// touched by the goroutine whose turn it is.
	stmts map[string]*sql.Stmt
}

// job is one transaction.
type job struct {
	name     string
	acquired atomic.Bool // by the writer, for its turn; or by a caller that gives up before it
	start    chan error  // nil: run now; or why that isn't possible
	ran      chan error  // what the function returned
	done     chan error  // the commit's outcome
}

func startWriter(conn *sql.Conn, now func() time.Time, hook func(string, bool)) *writer {
	w := &writer{
		conn: conn, now: now, onCommit: hook,
		jobs: make(chan *job), quit: make(chan struct{}), stopped: make(chan struct{}),
		stmts: map[string]*sql.Stmt{},
	}
	go w.runLoop()
	return w
}

// runTx runs f as one transaction. A context that ends before f begins stops it;
// after that, f and its commit run to their end, so that the answer is never
// "perhaps".
func (w *writer) runTx(ctx context.Context, name string, f func(session) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{name: name, start: make(chan error, 1), ran: make(chan error, 1), done: make(chan error, 1)}
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return ErrClosed
	}
	var refused error
	select {
	case refused = <-j.start:
	case <-ctx.Done():
		if j.acquired.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		refused = <-j.start
	}
	if refused != nil {
		return refused
	}
	err = errAborted
	func() {
		defer func() { j.ran <- err }() // also when f panics: then the savepoint is rolled back
		err = f(w)
	}()
	if err != nil {
		return err
	}
	return <-j.done
}

func (w *writer) runLoop() {
	defer close(w.stopped)
	for {
		select {
		case j := <-w.jobs:
			w.commitGroup(j)
		case <-w.quit:
			return
		}
	}
}

// commitGroup runs first and what else is waiting, and commits them together.
func (w *writer) commitGroup(first *job) {
	w.turn.Lock()
	defer w.turn.Unlock()
	begun := w.execRaw("BEGIN IMMEDIATE")
	var members []*job
	broken := begun
	for j := first; j != nil; j = w.nextJob(len(members)) {
		if !j.acquired.CompareAndSwap(false, true) {
			continue
		}
		if broken == nil {
			broken = w.execRaw("SAVEPOINT job")
		}
		if broken != nil {
			j.start <- broken
			break
		}
		j.start <- nil
		if err := <-j.ran; err != nil {
			// SQLite may have rolled back everything by itself (a full disk, an I/O error:
			// "Response To Errors Within A Transaction"). Then there is no savepoint any more, and
			// nothing of the group is left.
			if w.execRaw("ROLLBACK TO job") != nil {
				broken = err
				break
			}
			w.execRaw("RELEASE job")
			continue
		}
		members = append(members, j)
		if broken = w.execRaw("RELEASE job"); broken != nil {
			break
		}
	}
	if broken == nil {
		for _, j := range members {
			w.onCommit(j.name, true)
		}
		broken = w.execRaw("COMMIT")
	}
	if broken != nil && begun == nil {
		w.execRaw("ROLLBACK") // fails where SQLite has done it already
	}
	for _, j := range members {
		if broken == nil {
			w.onCommit(j.name, false)
		}
		j.done <- broken
	}
}

// nextJob is a transaction that waits already, nil when none does or the group is
// complete.
func (w *writer) nextJob(members int) *job {
	if members >= groupLimit {
		return nil
	}
	select {
	case j := <-w.jobs:
		return j
	default:
		return nil
	}
}

func (w *writer) execRaw(query string) error {
	_, err := w.exec(context.Background(), query)
	return err
}

// close ends the writer after the group that it is at.
func (w *writer) close() {
	close(w.quit)
	<-w.stopped
	w.turn.Lock()
	defer w.turn.Unlock()
	for _, s := range w.stmts {
		s.Close()
	}
}

// exec and query make the writer the session of the transaction that has its
// turn. They don't heed ctx: interrupting a statement half-way would break the
// whole group, and each is short.
func (w *writer) exec(_ context.Context, query string, args ...any) (int64, error) {
	stmt, args, err := w.prepareStmt(query, args)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (w *writer) query(_ context.Context, scan scanRow, query string, args ...any) error {
	stmt, args, err := w.prepareStmt(query, args)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	return scanAll(rows, scan)
}

// maxStatements bounds the prepared statements; filters make many.
const maxStatements = 256

func (w *writer) prepareStmt(query string, args []any) (*sql.Stmt, []any, error) {
	query, args = bindClock(w.now, query, args)
	if s, ok := w.stmts[query]; ok {
		return s, args, nil
	}
	if len(w.stmts) >= maxStatements {
		for q, s := range w.stmts {
			s.Close()
			delete(w.stmts, q)
		}
	}
	s, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, nil, err
	}
	w.stmts[query] = s
	return s, args, nil
}
