package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// The orders of sessions, beside that of their IDs.
const (
	sessionsByToken   = 1
	sessionsByAttempt = 2
	sessionsByStart   = 3
)

func newMemoryBrowserSessions() memoryTable[BrowserSession] {
	return newMemoryTable(
		memoryOrder[BrowserSession]{compare: func(a, b *BrowserSession) int { return strings.Compare(a.ID, b.ID) }},
		memoryOrder[BrowserSession]{compare: func(a, b *BrowserSession) int { return strings.Compare(a.Token, b.Token) }},
		memoryOrder[BrowserSession]{compare: func(a, b *BrowserSession) int { return strings.Compare(a.Attempt, b.Attempt) }},
		memoryOrder[BrowserSession]{compare: func(a, b *BrowserSession) int {
			return cmp.Or(compareTimes(b.StartedAt, a.StartedAt), strings.Compare(a.ID, b.ID))
		}, wants: func(b *BrowserSession) bool { return b.EndedAt.IsZero() }})
}

func (mt *memoryTx) addBrowserSession(_ context.Context, b BrowserSession) (added bool, err error) {
	all := &mt.tables.sessions
	if all.find(&b) != nil || all.findBy(sessionsByToken, &b) != nil || all.findBy(sessionsByAttempt, &b) != nil {
		return false, nil
	}
	b.Groups, b.Accounts = slices.Clone(b.Groups), maps.Clone(b.Accounts)
	b.StartedAt, b.SeenAt, b.ExpiresAt, b.EndedAt = storedTime(b.StartedAt), storedTime(b.SeenAt), storedTime(b.ExpiresAt),
		storedTime(b.EndedAt)
	all.put(&b)
	return true, nil
}

// changeSession changes a session that isn't ended, where change says so.
func (m *memoryTables) changeSession(id string, change func(*BrowserSession) bool) bool {
	old := m.sessions.find(&BrowserSession{ID: id})
	if old == nil || !old.EndedAt.IsZero() {
		return false
	}
	changed := *old
	if !change(&changed) {
		return false
	}
	m.sessions.put(&changed)
	return true
}

func (mt *memoryTx) seeBrowserSession(_ context.Context, id string, at time.Time) error {
	mt.tables.changeSession(id, func(b *BrowserSession) bool {
		later := compareTimes(b.SeenAt, at) < 0
		b.SeenAt = storedTime(at)
		return later
	})
	return nil
}

func (mt *memoryTx) rotateBrowserSession(_ context.Context, id, token, next, role string) (rotated bool, err error) {
	return mt.tables.changeSession(id, func(b *BrowserSession) bool {
		isIt := b.Token == token
		b.Token, b.Role = next, role
		return isIt
	}), nil
}

func (mt *memoryTx) endBrowserSession(_ context.Context, id string, at time.Time) (ended bool, err error) {
	return mt.tables.changeSession(id, func(b *BrowserSession) bool {
		b.EndedAt = storedTime(at)
		return true
	}), nil
}

func (m memoryReader) BrowserSession(ctx context.Context, token string) (BrowserSession, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return BrowserSession{}, false, err
	}
	b := tables.sessions.findBy(sessionsByToken, &BrowserSession{Token: token})
	if b == nil {
		return BrowserSession{}, false, nil
	}
	return b.copy(), true, nil
}

func (m memoryReader) BrowserSessions(ctx context.Context, subject string, usedSince time.Time) (out []BrowserSession, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for b := range tables.sessions.allBy(sessionsByStart) {
		if toMicros(b.ExpiresAt) > m.databaseNow() && compareTimes(b.SeenAt, usedSince) >= 0 && chosen(subject, b.Subject) &&
			len(out) < maxBrowserSessions {
			out = append(out, b.copy())
		}
	}
	return out, nil
}

func (b *BrowserSession) copy() BrowserSession {
	out := *b
	out.Groups, out.Accounts = slices.Clone(b.Groups), maps.Clone(b.Accounts)
	return out
}
