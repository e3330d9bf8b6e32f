package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"
)

// memoryWake is a key of the queue; times are in microseconds.
type memoryWake struct {
	key       string
	number    int64 // of keys that are ready at the same time, the one that is known longer comes first
	gen       int64
	due       int64 // neverDue since it was claimed
	notBefore int64
	owner     string
	lease     int64
	ended     int64
	fails     int
	urgency   Urgency
}

// ready is when the key can be claimed.
func (m *memoryWake) ready() int64 {
	if m.owner == "" {
		return max(m.due, m.notBefore)
	}
	return m.lease
}

func (m *memoryWake) hasTime() bool { return m.ready() < neverDue }

// The orders of the keys that have a time, beside that of all.
const (
	wakesByReady   = 1
	wakesByUrgency = 2
)

func newMemoryWakes() memoryTable[memoryWake] {
	compareReady := func(a, b *memoryWake) int {
		return cmp.Or(cmp.Compare(a.ready(), b.ready()), cmp.Compare(a.number, b.number))
	}
	return newMemoryTable(
		memoryOrder[memoryWake]{compare: func(a, b *memoryWake) int { return strings.Compare(a.key, b.key) }},
		memoryOrder[memoryWake]{compare: compareReady, wants: (*memoryWake).hasTime},
		memoryOrder[memoryWake]{compare: func(a, b *memoryWake) int {
			return cmp.Or(cmp.Compare(a.urgency, b.urgency), compareReady(a, b))
		}, wants: (*memoryWake).hasTime})
}

func (mt *memoryTx) wakeKeys(_ context.Context, wakes []nextWake) error {
	now := mt.databaseNow()
	for _, next := range wakes {
		mt.tables.wakeKey(next, now)
	}
	return nil
}

func (m *memoryTables) wakeKey(next nextWake, now int64) {
	due := now + next.distance
	old := m.wakes.find(&memoryWake{key: next.key})
	if old == nil {
		m.last.wake++
		m.wakes.put(&memoryWake{key: next.key, number: m.last.wake, due: due, urgency: next.urgency})
		return
	}
	if due >= old.due && next.urgency >= old.urgency {
		return
	}
	woken := *old
	// As sqlTx.wakeKeys says.
	comesEarlier := due < old.due && old.due > now
	mayRelax := old.urgency > Urgent || old.due == neverDue
	if next.urgency < old.urgency || comesEarlier && mayRelax {
		woken.urgency = next.urgency
	}
	woken.due = min(due, old.due)
	m.wakes.put(&woken)
}

func (mt *memoryTx) databaseTime(context.Context) (time.Time, error) {
	return fromMicros(mt.databaseNow()), nil
}

func (mt *memoryTx) claimDue(_ context.Context, owner string, n int, u Urgency, lease time.Duration) (claims []newClaim, now time.Time,
	err error) {
	at := mt.databaseNow()
	order, first := wakesByUrgency, &memoryWake{urgency: u, due: math.MinInt64, notBefore: math.MinInt64}
	if u == anyUrgency {
		order = wakesByReady
	}
	var picked []*memoryWake
	for w := range mt.tables.wakes.from(order, first) {
		if len(picked) == n || w.ready() > at || u != anyUrgency && w.urgency != u {
			break
		}
		picked = append(picked, w)
	}
	slices.SortFunc(picked, func(a, b *memoryWake) int { return cmp.Compare(a.number, b.number) }) // as SQLite returns them
	for _, w := range picked {
		held := *w
		held.owner, held.due, held.lease = owner, neverDue, at+lease.Microseconds()
		held.gen++
		died := w.owner != ""
		if died {
			held.fails++
		}
		mt.tables.wakes.put(&held)
		claims = append(claims, newClaim{Claim: Claim{Key: held.key, Gen: held.gen, Fails: held.fails, Urgency: held.urgency}, died: died})
	}
	return claims, fromMicros(at), nil
}

// findHeld is the key's row where the claim is the owner's, else nil.
func (mt *memoryTx) findHeld(owner string, c Claim) *memoryWake {
	if w := mt.tables.wakes.find(&memoryWake{key: c.Key}); w != nil && w.owner == owner && w.gen == c.Gen {
		return w
	}
	return nil
}

func (mt *memoryTx) holdsClaim(_ context.Context, owner string, c Claim) (bool, error) {
	return mt.findHeld(owner, c) != nil, nil
}

func (mt *memoryTx) finishRun(_ context.Context, f runFinish) (due int64, held bool, err error) {
	old := mt.findHeld(f.owner, f.claim)
	if old == nil {
		return 0, false, nil
	}
	now, ended := mt.databaseNow(), *old
	ended.owner, ended.lease, ended.ended, ended.notBefore = "", 0, now, 0
	// As sqlTx.finishRun says.
	if f.next >= 0 && (now+f.next <= old.due || f.outcome.Urgency == Urgent) {
		ended.due, ended.urgency = min(now+f.next, old.due), f.outcome.Urgency
	}
	if f.hold >= 0 {
		ended.notBefore = now + f.hold
	}
	switch {
	case f.outcome.PutOff:
	case f.outcome.Failed:
		ended.fails++
	default:
		ended.fails = 0
	}
	mt.tables.wakes.put(&ended)
	return ended.due, true, nil
}

func (mt *memoryTx) renewClaims(_ context.Context, owner string, keys []string, lease time.Duration) (held []string, err error) {
	now := mt.databaseNow()
	for _, key := range keys {
		old := mt.tables.wakes.find(&memoryWake{key: key})
		if old == nil || old.owner != owner {
			continue
		}
		renewed := *old
		renewed.lease = now + lease.Microseconds()
		mt.tables.wakes.put(&renewed)
		held = append(held, key)
	}
	return held, nil
}

func (mt *memoryTx) freeClaims(_ context.Context, owner string, except []string) (freed int64, err error) {
	now := mt.databaseNow()
	var held []*memoryWake
	for w := range mt.tables.wakes.allBy(byKey) {
		if w.owner == owner && !slices.Contains(except, w.key) {
			held = append(held, w)
		}
	}
	for _, w := range held {
		free := *w
		free.owner, free.lease, free.due = "", 0, now
		mt.tables.wakes.put(&free)
	}
	return int64(len(held)), nil
}

func (m memoryReader) NextDue(ctx context.Context) (time.Time, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	next := firstOf(tables.wakes.allBy(wakesByReady))
	if next == nil {
		return time.Time{}, false, nil
	}
	return m.now().Add(time.Duration(next.ready()-m.databaseNow()) * time.Microsecond), true, nil
}

func (m memoryReader) Depth(ctx context.Context) (d Depth, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return d, err
	}
	now := m.databaseNow()
	for w := range tables.wakes.allBy(wakesByReady) {
		switch ready := w.ready(); {
		case ready <= now:
			d.Due++
			d.Oldest = max(d.Oldest, time.Duration(now-ready)*time.Microsecond)
		case w.owner == "":
			d.Later++
		default:
			d.Running++
		}
	}
	return d, nil
}

// memorySlot is a slot that somebody has, or had.
type memorySlot struct {
	name, owner string
	lease       int64
}

func newMemorySlots() memoryTable[memorySlot] {
	return newMemoryTable(memoryOrder[memorySlot]{compare: func(a, b *memorySlot) int { return strings.Compare(a.name, b.name) }})
}

func (mt *memoryTx) takeSlot(_ context.Context, name, owner string, ttl time.Duration) (got bool, err error) {
	now := mt.databaseNow()
	if old := mt.tables.slots.find(&memorySlot{name: name}); old != nil && old.owner != owner && old.lease > now {
		return false, nil
	}
	mt.tables.slots.put(&memorySlot{name: name, owner: owner, lease: now + ttl.Microseconds()})
	return true, nil
}

func (mt *memoryTx) freeSlot(_ context.Context, name, owner string) error {
	if old := mt.tables.slots.find(&memorySlot{name: name}); old != nil && old.owner == owner {
		mt.tables.slots.remove(old)
	}
	return nil
}

func (m memoryReader) CountSlots(ctx context.Context, prefix string) (n int, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return 0, err
	}
	now := m.databaseNow()
	for slot := range takeWhile(tables.slots.from(byKey, &memorySlot{name: prefix}),
		func(s *memorySlot) bool { return strings.HasPrefix(s.name, prefix) }) {
		if slot.lease > now {
			n++
		}
	}
	return n, nil
}
