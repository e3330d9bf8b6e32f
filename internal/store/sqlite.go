package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// sqliteReaders is how many reads run beside each other.
	sqliteReaders = 4
	// busyTimeout is for tools that look at the file while Liftlock runs, in
	// milliseconds; Liftlock's own connections don't get into each other's way.
	busyTimeout = 5000
	// checkBelow is the size in bytes up to which the whole file is checked for
	// damage at start, which takes a fraction of a second. In a larger one damage
	// shows when it is met.
	checkBelow = 32 << 20
)

// sqliteDB is the embedded database.
type sqliteDB struct {
	lock    *flock.Flock
	pool    *sql.DB // of the one writing connection
	conn    *sql.Conn
	writer  *writer
	readers *sql.DB
	reading session // on the readers
}

// openSQLite opens or creates the database file.
func openSQLite(ctx context.Context, path string, o Options) (_ *sqliteDB, err error) {
	if path == "" || strings.ContainsAny(path, "?#") {
		return nil, errors.New(`the store's address must be "sqlite://" and a file's path, without options`)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	db := &sqliteDB{}
	defer func() {
		if err != nil {
			db.closeDB()
			err = wrapError(err, "open the database %s", path)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if db.lock, err = lockFile(ctx, path+".lock"); err != nil {
		return nil, err
	}
	if err := restrictFiles(path); err != nil {
		return nil, err
	}
	if db.pool, err = sql.Open("sqlite", liteDSN(path, o.MaxPages, "journal_mode(WAL)", "journal_size_limit(67108864)")); err != nil {
		return nil, err
	}
	db.pool.SetMaxOpenConns(1)
	if err := checkFile(ctx, db.pool, path); err != nil {
		return nil, err
	}
	if err := migrateTables(ctx, db.pool, sqliteTables); err != nil {
		return nil, err
	}
	if db.conn, err = db.pool.Conn(ctx); err != nil {
		return nil, err
	}
	if err := releaseOwners(ctx, plainSession{db: db.conn, now: o.DatabaseNow}); err != nil {
		return nil, err
	}
	if db.readers, err = sql.Open("sqlite", liteDSN(path, 0, "query_only(1)")); err != nil {
		return nil, err
	}
	db.readers.SetMaxOpenConns(sqliteReaders)
	db.readers.SetMaxIdleConns(sqliteReaders)
	if err := db.readers.PingContext(ctx); err != nil {
		return nil, err
	}
	db.reading = newPreparedSession(db.readers, o.DatabaseNow)
	db.writer = startWriter(db.conn, o.DatabaseNow, o.OnCommit)
	return db, nil
}

// ownerOnly is the mode of the database's files: they hold who did what, and what
// commands wait.
const ownerOnly = 0o600

// restrictFiles lets only the owner read or write the database's files, also those that were there
// before with a wider mode. It makes the database itself, so that its mode is never wider, not even
// for a moment. SQLite gives the other two the database's mode when it makes them ("unixOpen" in
// os_unix.c).
func restrictFiles(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownerOnly)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, file := range []string{path, path + "-wal", path + "-shm", path + ".lock"} {
		info, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().Perm()&^ownerOnly != 0 {
			err = os.Chmod(file, ownerOnly)
		}
		if err != nil {
			return fmt.Errorf("keep others from reading the database: %w", err)
		}
	}
	return nil
}

// liteDSN is the file as the driver wants it named, with the settings of every
// connection. synchronous=FULL: in WAL mode a commit that was answered survives
// a power failure only with it ("PRAGMA synchronous").
func liteDSN(path string, maxPages int, pragmas ...string) string {
	q := url.Values{}
	q.Set("_busy_timeout", strconv.Itoa(busyTimeout))
	for _, p := range append([]string{"synchronous(FULL)", "foreign_keys(1)"}, pragmas...) {
		q.Add("_pragma", p)
	}
	if maxPages > 0 {
		q.Add("_pragma", fmt.Sprintf("max_page_count(%d)", maxPages))
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// lockTimeout is how long the lock is waited for. A process that is killed while it starts a
// program leaves it to that child until the program runs. A supervisor of processes starts the next
// one at once.
const lockTimeout = 3 * time.Second

// lockRetry is how often a lock that is held is tried again.
const lockRetry = 20 * time.Millisecond

// lockFile takes the lock that keeps a second process away. The system lets go
// of it when this process ends, however it ends.
func lockFile(ctx context.Context, path string) (*flock.Flock, error) {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(ownerOnly))
	waited, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	_, err := lock.TryLockContext(waited, lockRetry)
	if err == nil {
		// The process id is for the message below only; without it the lock is as good.
		_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), ownerOnly)
		return lock, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	err = fmt.Errorf("%w%s; it holds %s: stop it, or give this one another file", ErrInUse, lockHolder(path), path)
	return nil, errors.Join(err, lock.Close())
}

// lockHolder says which process holds the lock; empty where that can't be read, as
// on Windows, which lets nobody read or write what is locked.
func lockHolder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() // only read
	pid, err := io.ReadAll(io.LimitReader(f, 20))
	if err != nil || len(pid) == 0 {
		return ""
	}
	return " as process " + strings.TrimSpace(string(pid))
}

// checkFile looks for damage before anything is written.
func checkFile(ctx context.Context, pool *sql.DB, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && (info.Size() == 0 || info.Size() > checkBelow) {
		return nil
	}
	if err != nil {
		return err
	}
	report, _, err := queryOne(ctx, plainSession{db: pool}, oneColumn[string], "PRAGMA quick_check(1)")
	if err == nil && report != "ok" {
		err = fmt.Errorf("%w: %.200s", ErrCorrupt, report)
	}
	return err
}

// releaseOwners ends the work of a process that is gone. No other can be running here, so the
// leases of its keys are over, as they would be by themselves in a while, and its slots are free.
func releaseOwners(ctx context.Context, db session) error {
	if _, err := db.exec(ctx, `UPDATE wakes SET lease_until = liftlock_now() WHERE owner <> ''`); err != nil {
		return err
	}
	_, err := db.exec(ctx, `DELETE FROM slots`)
	return err
}

func (s *sqliteDB) runTx(ctx context.Context, name string, f func(session) error) error {
	return s.writer.runTx(ctx, name, f)
}

// closeDB is also for a database that was opened half-way.
func (s *sqliteDB) closeDB() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	if s.writer != nil {
		s.writer.close()
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.lock != nil {
		// It unlocks before it closes: closing alone would leave the lock to a program that
		// is being started in this moment and has not yet closed what it inherited.
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
