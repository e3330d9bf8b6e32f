package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// session runs statements: on a pool, or inside one transaction. Statements are
// written once for both databases, with $1… for arguments and liftlock_now()
// for the time in microseconds.
type session interface {
	exec(ctx context.Context, query string, args ...any) (affected int64, err error)
	// query gives each row of the answer to scan.
	query(ctx context.Context, scan scanRow, query string, args ...any) error
}

// scanRow reads the row that it is given.
type scanRow func(row *sql.Rows) error

// scanAll gives each of the rows to scan, and closes them.
func scanAll(rows *sql.Rows, scan scanRow) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// runner is what *sql.DB and *sql.Tx have in common.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// plainSession is a session that passes statements on as they are, or, with a clock,
// with the time filled in: SQLite has no function liftlock_now.
type plainSession struct {
	db  runner
	now func() time.Time
}

func (p plainSession) exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, args = bindClock(p.now, query, args)
	res, err := p.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (p plainSession) query(ctx context.Context, scan scanRow, query string, args ...any) error {
	query, args = bindClock(p.now, query, args)
	rows, err := p.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return scanAll(rows, scan)
}

const clockCall = "liftlock_now()"

// bindClock turns the call of the clock into one more argument. A nil clock leaves
// the statement to the database's own.
func bindClock(now func() time.Time, query string, args []any) (string, []any) {
	if now == nil || !strings.Contains(query, clockCall) {
		return query, args
	}
	query = strings.ReplaceAll(query, clockCall, fmt.Sprintf("$%d", len(args)+1))
	return query, append(args[:len(args):len(args)], toMicros(now()))
}

// columns are where a row's columns go.
type columns[T any] func(row *T) []any

// oneColumn is a row of one column.
func oneColumn[T any](v *T) []any { return []any{v} }

// timeColumn reads a stored time, which is in microseconds.
type timeColumn struct{ at *time.Time }

// Scan implements sql.Scanner.
func (t timeColumn) Scan(stored any) error {
	us, ok := stored.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", stored)
	}
	*t.at = fromMicros(us)
	return nil
}

// payloadColumn reads a stored payload; an absent one is nil.
type payloadColumn struct{ data *json.RawMessage }

// Scan implements sql.Scanner.
func (p payloadColumn) Scan(stored any) error {
	var s sql.NullString
	if err := s.Scan(stored); err != nil || s.String == "" {
		return err
	}
	*p.data = json.RawMessage(s.String)
	return nil
}

// queryAll runs a query and reads every row.
func queryAll[T any](ctx context.Context, db session, into columns[T], query string, args ...any) ([]T, error) {
	var out []T
	err := db.query(ctx, func(row *sql.Rows) error {
		var v T
		if err := row.Scan(into(&v)...); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// queryOne is queryAll for at most one row; false when there is none.
func queryOne[T any](ctx context.Context, db session, into columns[T], query string, args ...any) (v T, ok bool, err error) {
	all, err := queryAll(ctx, db, into, query, args...)
	if err != nil || len(all) == 0 {
		return v, false, err
	}
	return all[0], true, nil
}

// neverDue is a due time that doesn't come.
const neverDue = math.MaxInt64

// toMicros is a time as it is stored; the zero time is 0.
func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is a stored time; 0 is the zero time.
func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// microsUntil is the distance from now to at in microseconds: rounded up, so that
// nothing is due early, and 0 for what has passed.
func microsUntil(now, at time.Time) int64 {
	d := at.Sub(now)
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Microsecond) + 1
}

// whereClause collects the conditions of a filter; an empty value asks for nothing.
type whereClause struct {
	conds []string
	args  []any
}

// addCondition appends a condition whose %d places are the numbers of its arguments.
func (w *whereClause) addCondition(cond string, args ...any) {
	numbers := make([]any, len(args))
	for i, a := range args {
		w.args = append(w.args, a)
		numbers[i] = len(w.args)
	}
	w.conds = append(w.conds, fmt.Sprintf(cond, numbers...))
}

func addEquals[T comparable](w *whereClause, column string, value T) {
	if value != *new(T) {
		w.addCondition(column+" = $%d", value)
	}
}

// addPrefix lets a column begin with one of the prefixes; none, or an empty one, allow
// anything.
func (w *whereClause) addPrefix(column string, prefixes ...string) {
	if len(prefixes) == 0 || slices.Contains(prefixes, "") {
		return
	}
	// Ranges, so that the index serves them: LIKE would need escaping and, on SQLite,
	// ignores case.
	ranges, args := make([]string, len(prefixes)), make([]any, 0, 2*len(prefixes))
	for i, prefix := range prefixes {
		ranges[i] = column + " >= $%d AND " + column + " < $%d"
		args = append(args, prefix, prefix+"\U0010FFFF")
	}
	w.addCondition("("+strings.Join(ranges, " OR ")+")", args...)
}

func addIn[T any](w *whereClause, column string, values []T) { addList(w, column+" IN", values) }

func addNotIn[T any](w *whereClause, column string, values []T) {
	addList(w, column+" NOT IN", values)
}

// addList compares with a list; an empty one allows anything.
func addList[T any](w *whereClause, comparison string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	w.addCondition(comparison+" ("+strings.TrimSuffix(strings.Repeat("$%d, ", len(values)), ", ")+")", args...)
}

// limitTo bounds how many rows come, by the argument at a place. A bare LIMIT $n lets
// SQLite plan for the number, and so prepare the statement anew each time it is run.
func limitTo(placeholder string) string { return " LIMIT CAST(" + placeholder + " AS BIGINT)" }

// lastPlaceholder is the place of the argument that was appended last.
func (w *whereClause) lastPlaceholder() string { return fmt.Sprintf("$%d", len(w.args)) }

// String is the WHERE clause, empty without conditions.
func (w *whereClause) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// Lists are bounded: a caller that doesn't say gets defaultLimit, and none gets more than maxLimit
// rows at once.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func clampLimit(n int) int {
	if n <= 0 {
		return defaultLimit
	}
	return min(n, maxLimit)
}
