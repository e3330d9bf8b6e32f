package store

import (
	"context"
	"sync"
	"time"

	k8sclock "k8s.io/utils/clock"
)

// clockTolerance is how far a process's time may be from the database's before it is set right. It
// is less than any duration here, and more than the effect of a slow answer.
const clockTolerance = 100 * time.Millisecond

// sharedTime is one time for all processes on one database, whose own clocks may differ and jump.
// It is the database's time where it has one, as of the last claim, plus the time that has passed
// since. One process reads the times that another wrote. A minute between their clocks would make a
// release that has just become healthy one that has been so for a minute.
type sharedTime struct {
	own func() time.Time

	mu          sync.Mutex
	at          time.Time // the database's time, zero when it has none of its own or wasn't asked yet
	ownAt       time.Time // and the process's own then
	corrections int       // how often it was set right
}

func (s *sharedTime) now() time.Time {
	own := s.own()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sharedAt(own)
}

func (s *sharedTime) sharedAt(own time.Time) time.Time {
	if s.at.IsZero() {
		return own
	}
	return s.at.Add(own.Sub(s.ownAt)) // which a jump of the own clock doesn't change where that is monotonic
}

// learn sets the time right, by as little as makes it agree: the database's was now
// between two times of the process's own clock.
func (s *sharedTime) learn(now, before, after time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case now.Before(s.sharedAt(before).Add(-clockTolerance)):
		s.at, s.ownAt, s.corrections = now, before, s.corrections+1
	case now.After(s.sharedAt(after).Add(clockTolerance)):
		s.at, s.ownAt, s.corrections = now, after, s.corrections+1
	}
}

// ClockReading stands for the times that were read of a store's clock since it was taken,
// until the clock had to be set right.
type ClockReading struct{ corrections int }

// ReadClock takes a reading. Times that are read of the clock after it are confirmed by
// Tx.ConfirmClock.
func (s *Store) ReadClock() ClockReading {
	s.time.mu.Lock()
	defer s.time.mu.Unlock()
	return ClockReading{s.time.corrections}
}

// ConfirmClock asks the database for its time and sets the process's right by it. It gives
// ErrClockMoved where that was necessary now or has been since r. The machine slept, say, which no
// clock that only counts passing time notices. The transaction's events may then have begun earlier
// than its times say. Without a clock of the database's own it asks nothing and gives nil.
func (t *Tx) ConfirmClock(ctx context.Context, r ClockReading) error {
	if !t.store.hasOwnClock {
		return nil
	}
	before := t.store.time.own()
	now, err := queryTime(ctx, t.db)
	if err != nil {
		return wrapError(err, "ask the database for its time")
	}
	t.store.time.learn(now, before, t.store.time.own())
	if t.store.ReadClock() != r {
		return ErrClockMoved
	}
	return nil
}

// learnTime asks the database for its time.
func (s *Store) learnTime(ctx context.Context, db session) error {
	before := s.time.own()
	now, err := queryTime(ctx, db)
	if err == nil {
		s.time.learn(now, before, s.time.own())
	}
	return wrapError(err, "ask the database for its time")
}

func queryTime(ctx context.Context, db session) (time.Time, error) {
	now, _, err := queryOne(ctx, db, oneColumn[int64], `SELECT liftlock_now()`)
	return fromMicros(now), err
}

// OwnTime is the time by the process's own clock, which the database doesn't set right. By it a
// caller tells when an earlier request's time at the database has ended there.
func (s *Store) OwnTime() time.Time { return s.time.own() }

// Clock is the time that all processes on this database share, with the timers of the
// process's own clock. Everything that writes times down, or compares them with some that
// were, goes by it.
func (s *Store) Clock(own k8sclock.WithTicker) k8sclock.WithTicker { return storeClock{own, s.time} }

// storeClock is a clock that shows the time that processes share.
type storeClock struct {
	k8sclock.WithTicker
	shared *sharedTime
}

// Now is the time that all processes on the database share.
func (s storeClock) Now() time.Time { return s.shared.now() }

// Since is how long ago, by that time, something was.
func (s storeClock) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// ForProcess is the same open database as another process has it, whose own clock is now: so that
// processes can be simulated side by side. Each of its deliveries is a transaction of its own: a
// test that moves processes by hand doesn't know of one that waits for another. Closing one closes
// all.
func (s *Store) ForProcess(now func() time.Time) *Store {
	c := &sharedTime{own: now}
	return &Store{queries: queries{db: s.db, now: c.now}, options: s.options, time: c, hasOwnClock: s.hasOwnClock, backend: s.backend,
		dialect: s.dialect, signals: s.signals}
}
