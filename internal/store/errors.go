package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// The kinds of failure that callers tell apart with errors.Is.
var (
	// ErrFull: there is no room for the write. Nothing of it was stored; the same
	// call succeeds once there is room again, without a restart.
	ErrFull = errors.New("the store is full: free space on its disk, or raise its size limit")
	// ErrLost: the claim's lease ended and the key is another process's by now, or it was finished
	// already. Nothing of the transaction was stored.
	ErrLost = errors.New("the claim was lost: its lease ended before the run did")
	// ErrClockMoved: the process's clock wasn't the database's, and was set right. Nothing
	// of the transaction was stored.
	ErrClockMoved = errors.New("this machine's clock had fallen out of step with the database's, and was set right")
	// ErrInUse: another process has the database open.
	ErrInUse = errors.New("another liftlock is running on this database")
	// ErrCorrupt: the file is damaged or isn't a database at all.
	ErrCorrupt = errors.New("the database is damaged: restore it from a backup, or move it away and start without it" +
		" (Liftlock finds what is in flight again from Git, the forge and Argo CD; the history is lost)")
	// ErrUnreachable: PostgreSQL can't be reached, or takes no connections yet; Open may
	// succeed later without anybody changing anything.
	ErrUnreachable = errors.New("PostgreSQL can't be reached: is it running, and is the address in store right?")
	// ErrNewer: a newer version of Liftlock has changed the tables.
	ErrNewer = errors.New("the database was written by a newer version of Liftlock: run that version, or start with another database")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrInvalid: the caller gave something that can't be stored, such as an
	// empty or overlong key.
	ErrInvalid = errors.New("can't be stored")
)

// PostgreSQL's error codes that matter here ("PostgreSQL Error Codes", appendix
// A of its documentation).
const (
	pgDiskFull             = "53100"
	pgUniqueViolation      = "23505"
	pgSerializationFailure = "40001"
	pgDeadlock             = "40P01"
	pgDataCorrupted        = "XX001"
	pgIndexCorrupted       = "XX002"
	pgTooManyConnections   = "53300"
	pgConnectionClass      = "08" // the beginning of its codes
	pgAdminShutdown        = "57P01"
	pgCrashShutdown        = "57P02"
	pgCannotConnectNow     = "57P03" // it starts, stops or recovers
)

// wrapError says what was being done and adds the kind, where the database's error
// has one. It returns nil for nil.
func wrapError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), withKind(err))
}

// withKind puts the kind in front of a database's own error.
func withKind(err error) error {
	kind := errorKind(err)
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w (%w)", kind, err)
}

func errorKind(err error) error {
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff { // the low byte is the primary result code
		case sqlitelib.SQLITE_FULL:
			return ErrFull
		case sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB:
			return ErrCorrupt
		}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case pgDiskFull:
			return ErrFull
		case pgDataCorrupted, pgIndexCorrupted:
			return ErrCorrupt
		}
	}
	return nil
}

// withReach puts ErrUnreachable in front of an error that waiting may mend.
func withReach(err error) error {
	if !isUnreachable(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrUnreachable, err)
}

// isUnreachable says that a connection to PostgreSQL failed for a reason that may pass by itself:
// there is no listener, no name, no answer, or it isn't ready. A fault that a person must mend, a
// password or a certificate, isn't one.
func isUnreachable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) { // it answered
		switch pg.Code {
		case pgTooManyConnections, pgAdminShutdown, pgCrashShutdown, pgCannotConnectNow:
			return true
		}
		return strings.HasPrefix(pg.Code, pgConnectionClass)
	}
	var op *net.OpError
	var name *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &op):
		return op.Op != "remote error" && op.Op != "local error" // as TLS calls its alerts
	}
	isCutOff := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	isTimeout := errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
	return isCutOff || isTimeout || errors.As(err, &name)
}

// isRetryable says whether PostgreSQL gave up a transaction only because of another
// that ran beside it, so that running it once more may succeed. Two
// transactions that number an arrival of the same unit at the same moment are
// such a case.
func isRetryable(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case pgSerializationFailure, pgDeadlock:
		return true
	case pgUniqueViolation:
		return pg.ConstraintName == "arrivals_seq"
	}
	return false
}
