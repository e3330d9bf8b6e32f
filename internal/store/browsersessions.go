package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// BrowserSession is a browser whose user has logged in.
type BrowserSession struct {
	ID string // stays the same when the token is exchanged
	// Token and Attempt are digests: of what the browser sends, and of the login's state. No
	// two sessions, over or not, have one of them in common.
	Token, Attempt string

	Subject  string // who, as the identity provider knows them for good
	Name     string // what people call them
	Role     string
	Groups   []string
	Accounts map[string]string // the user's logins by forge; nil: none is known
	Client   string            // where the login came from

	StartedAt time.Time // zero: now
	SeenAt    time.Time // when it was last used; zero: StartedAt
	ExpiresAt time.Time
	EndedAt   time.Time // when it was logged out of or revoked; zero: it wasn't
}

// maxBrowserSessions bounds a list of sessions.
const maxBrowserSessions = 1000

// AddBrowserSession adds a session; false, and nothing was added, where its token or its
// login's attempt has been used for one before.
func (s *Store) AddBrowserSession(ctx context.Context, b BrowserSession) (added bool, err error) {
	return txWithResult(ctx, s, "addBrowserSession", func(tx *Tx) (bool, error) { return tx.AddBrowserSession(ctx, b) })
}

// AddBrowserSession is Store.AddBrowserSession.
func (t *Tx) AddBrowserSession(ctx context.Context, b BrowserSession) (added bool, err error) {
	if err := cmp.Or(checkKey("its ID", b.ID), checkKey("its token's digest", b.Token), checkKey("its attempt", b.Attempt),
		checkKey("its subject", b.Subject),
		checkNames("its name", b.Name, "its role", b.Role, "its client", b.Client), checkNames(pairWith("a group", b.Groups)...),
		checkNames(pairWith("an account", slices.Collect(maps.Values(b.Accounts)))...)); err != nil {
		return false, wrapError(err, "store a session of %.80q", b.Name)
	}
	if b.ExpiresAt.IsZero() {
		return false, wrapError(fmt.Errorf("%w: it never expires", ErrInvalid), "store a session of %.80q", b.Name)
	}
	if b.StartedAt.IsZero() {
		b.StartedAt = t.now()
	}
	if b.SeenAt.IsZero() {
		b.SeenAt = b.StartedAt
	}
	added, err = t.writeBrowserSession(ctx, b)
	return added, wrapError(err, "store a session of %s", b.Name)
}

// pairWith puts what it is before each value.
func pairWith(what string, values []string) []string {
	out := make([]string, 0, 2*len(values))
	for _, v := range values {
		out = append(out, what, v)
	}
	return out
}

// SeeBrowserSession says that a session was used at a time. One that is ended, or was seen
// later, stays as it is.
func (s *Store) SeeBrowserSession(ctx context.Context, id string, at time.Time) error {
	return s.Tx(ctx, "seeBrowserSession", func(tx *Tx) error {
		_, err := tx.db.exec(ctx, `UPDATE browser_sessions SET seen_at = $1 WHERE id = $2 AND ended_at = 0 AND seen_at < $1`,
			toMicros(at), id)
		return wrapError(err, "store that the session %s was used", id)
	})
}

// RotateBrowserSession exchanges a session's token for another and gives it a role; false
// where the session has another token by now, or is ended.
func (s *Store) RotateBrowserSession(ctx context.Context, id, token, next, role string) (rotated bool, err error) {
	if err := cmp.Or(checkKey("its token's digest", next), checkName("its role", role)); err != nil {
		return false, wrapError(err, "exchange the token of the session %.80q", id)
	}
	return txWithResult(ctx, s, "rotateBrowserSession", func(tx *Tx) (bool, error) {
		n, err := tx.db.exec(ctx, `UPDATE browser_sessions SET token = $1, role = $2 WHERE id = $3 AND token = $4 AND ended_at = 0`,
			next, role, id, token)
		return n > 0, wrapError(err, "exchange the token of the session %s", id)
	})
}

// EndBrowserSession ends a session; false where there is none, or it was ended before.
func (s *Store) EndBrowserSession(ctx context.Context, id string) (ended bool, err error) {
	return txWithResult(ctx, s, "endBrowserSession", func(tx *Tx) (bool, error) { return tx.EndBrowserSession(ctx, id) })
}

// EndBrowserSession is Store.EndBrowserSession.
func (t *Tx) EndBrowserSession(ctx context.Context, id string) (ended bool, err error) {
	n, err := t.db.exec(ctx, `UPDATE browser_sessions SET ended_at = $1 WHERE id = $2 AND ended_at = 0`, toMicros(t.now()), id)
	return n > 0, wrapError(err, "end the session %s", id)
}

func (t *Tx) writeBrowserSession(ctx context.Context, b BrowserSession) (added bool, err error) {
	groups, err := json.Marshal(b.Groups)
	if err != nil {
		return false, err
	}
	accounts := ""
	if len(b.Accounts) > 0 {
		raw, err := json.Marshal(b.Accounts)
		if err != nil {
			return false, err
		}
		accounts = string(raw)
	}
	n, err := t.db.exec(ctx,
		`INSERT INTO browser_sessions (id, token, attempt, subject, name, role, "groups", client, started_at, seen_at, expires_at, ended_at, accounts)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING`,
		b.ID, b.Token, b.Attempt, b.Subject, b.Name, b.Role, string(groups), b.Client, toMicros(b.StartedAt), toMicros(b.SeenAt),
		toMicros(b.ExpiresAt), toMicros(b.EndedAt), accounts)
	return n > 0, err
}

const browserSessionColumns = `id, token, attempt, subject, name, role, "groups", client, started_at, seen_at, expires_at, ended_at, accounts`

func (b *BrowserSession) columns() []any {
	return []any{&b.ID, &b.Token, &b.Attempt, &b.Subject, &b.Name, &b.Role, namesColumn{&b.Groups}, &b.Client,
		timeColumn{&b.StartedAt}, timeColumn{&b.SeenAt}, timeColumn{&b.ExpiresAt}, timeColumn{&b.EndedAt}, accountsColumn{&b.Accounts}}
}

// namesColumn reads a stored list of names.
type namesColumn struct{ names *[]string }

// Scan implements sql.Scanner.
func (n namesColumn) Scan(stored any) error {
	raw, ok := stored.(string)
	if !ok {
		return fmt.Errorf("a list of names is stored as %T", stored)
	}
	return json.Unmarshal([]byte(raw), n.names)
}

// accountsColumn reads stored accounts; empty text is none.
type accountsColumn struct{ accounts *map[string]string }

// Scan implements sql.Scanner.
func (a accountsColumn) Scan(stored any) error {
	raw, ok := stored.(string)
	if !ok {
		return fmt.Errorf("accounts are stored as %T", stored)
	}
	if *a.accounts = nil; raw == "" {
		return nil
	}
	return json.Unmarshal([]byte(raw), a.accounts)
}

// BrowserSession is the one with a token's digest, whether it is over or not; false when
// there is none.
func (q queries) BrowserSession(ctx context.Context, token string) (BrowserSession, bool, error) {
	b, ok, err := queryOne(ctx, q.db, (*BrowserSession).columns, `SELECT `+browserSessionColumns+
		` FROM browser_sessions WHERE token = $1`, token)
	return b, ok, wrapError(err, "read a session")
}

// BrowserSessions are those that are not over and were used at or after a time, of one subject or,
// with "", of all. They are the newest first; at most 1000.
func (q queries) BrowserSessions(ctx context.Context, subject string, usedSince time.Time) ([]BrowserSession, error) {
	var w whereClause
	w.addCondition("ended_at = 0 AND expires_at > liftlock_now()")
	w.addCondition("seen_at >= $%d", toMicros(usedSince))
	addEquals(&w, "subject", subject)
	w.args = append(w.args, maxBrowserSessions)
	all, err := queryAll(ctx, q.db, (*BrowserSession).columns, `SELECT `+browserSessionColumns+` FROM browser_sessions`+w.String()+
		` ORDER BY started_at DESC, id`+limitTo(w.lastPlaceholder()), w.args...)
	return all, wrapError(err, "read the sessions")
}
