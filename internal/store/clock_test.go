package store

import (
	"errors"
	"testing"
	"time"

	k8sclock "k8s.io/utils/clock"
)

// TestProcessesShareATime holds that processes whose own clocks differ, or jump, go by the
// database's, as of their last claim.
func TestProcessesShareATime(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		testProcessesShareATime(t, func(o Options) *Store { return OpenMemory(o) })
	})
	t.Run("sqlite", func(t *testing.T) {
		testProcessesShareATime(t, func(o Options) *Store { return mustOpen(t, onSQLiteAddress(t), o) })
	})
}

func testProcessesShareATime(t *testing.T, open func(Options) *Store) {
	now := start
	s := open(Options{DatabaseNow: func() time.Time { return now }})
	skew := map[string]time.Duration{"early": -30 * time.Second, "late": 30 * time.Second, "nearly": clockTolerance / 2}
	clocks := map[string]k8sclock.WithTicker{}
	claimAs := func(name string) {
		t.Helper()
		p := s.ForProcess(func() time.Time { return now.Add(skew[name]) })
		must(t, p.Wake(ctx, name))
		if got := value(p.Claim(ctx, name, 1))(t); len(got) != 1 {
			t.Fatalf("claimed %v", got)
		}
		must(t, p.Finish(ctx, name, Claim{Key: name, Gen: 1}, Outcome{}))
		clocks[name] = p.Clock(k8sclock.RealClock{})
	}
	for name := range skew {
		claimAs(name)
	}
	check := func(name string, within time.Duration) {
		t.Helper()
		if off := clocks[name].Now().Sub(now); off.Abs() > within {
			t.Errorf("%s is %v off", name, off)
		}
		if since := clocks[name].Since(now); since.Abs() > within {
			t.Errorf("%s has %v pass in no time", name, since)
		}
	}
	for range 3 {
		for name := range skew {
			check(name, clockTolerance)
		}
		now = now.Add(time.Hour)
	}
}

// TestConfirmClock holds that a transaction knows when earlier times came from a clock that had
// fallen behind, also where a claim has set that clock right meanwhile.
func TestConfirmClock(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		testConfirmClock(t, func(o Options) *Store { return OpenMemory(o) })
	})
	t.Run("sqlite", func(t *testing.T) {
		testConfirmClock(t, func(o Options) *Store { return mustOpen(t, onSQLiteAddress(t), o) })
	})
	t.Run("postgres", func(t *testing.T) {
		w := onPostgres(t)
		testConfirmClock(t, func(o Options) *Store {
			w.clock.Advance(o.DatabaseNow().Sub(w.Now()))
			return w.Store
		})
	})
}

func testConfirmClock(t *testing.T, open func(Options) *Store) {
	s := open(Options{DatabaseNow: func() time.Time { return start }})
	slept := time.Duration(0)
	p := s.ForProcess(func() time.Time { return start.Add(-slept) })
	confirm := func(r ClockReading) error {
		return p.Tx(ctx, "confirm", func(tx *Tx) error { return tx.ConfirmClock(ctx, r) })
	}
	first := p.ReadClock()
	must(t, confirm(first))
	slept = clockTolerance / 2
	must(t, confirm(first))
	slept = 30 * time.Second
	if err := confirm(first); !errors.Is(err, ErrClockMoved) {
		t.Errorf("a clock that is 30 s behind was confirmed: %v", err)
	}
	if err := confirm(first); !errors.Is(err, ErrClockMoved) {
		t.Errorf("what was read of a clock that was set right since was confirmed: %v", err)
	}
	must(t, confirm(p.ReadClock()))

	second := p.ReadClock()
	slept = time.Minute
	must(t, p.Wake(ctx, "key"))
	if got := value(p.Claim(ctx, "owner", 1))(t); len(got) != 1 {
		t.Fatalf("claimed %v", got)
	}
	if err := confirm(second); !errors.Is(err, ErrClockMoved) {
		t.Errorf("what was read before a claim set the clock right was confirmed: %v", err)
	}

	alone := OpenMemory(Options{Now: func() time.Time { return start.Add(-slept) }})
	slept = time.Hour
	must(t, alone.Tx(ctx, "confirm", func(tx *Tx) error { return tx.ConfirmClock(ctx, ClockReading{}) }))
}

// TestLearningATime holds that a time is set right by as little as makes it agree with
// what the database said.
func TestLearningATime(t *testing.T) {
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct {
		name                string
		now, before, after  float64
		wantNow, wantLater  float64 // shared, when the own clock says after, and 10 s later
		thenNow, thenBefore float64 // a second time, at once answered; 0: none
	}{
		{name: "it agrees", now: 1, before: 0, after: 2, wantNow: 2, wantLater: 12},
		{name: "it nearly agrees", now: 2.05, before: 1, after: 2, wantNow: 2, wantLater: 12},
		{name: "the own clock is late", now: 30, before: 1, after: 2, wantNow: 30, wantLater: 40},
		{name: "the own clock is early", now: -30, before: 1, after: 2, wantNow: -29, wantLater: -19},
		{name: "a slow answer proves little", now: 1, before: 1, after: 46, wantNow: 46, wantLater: 56},
		{name: "set right again", now: 30, before: 1, after: 2, thenNow: 5, thenBefore: 3, wantNow: 4, wantLater: 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := at(c.after)
			s := &sharedTime{own: func() time.Time { return own }}
			s.learn(at(c.now), at(c.before), at(c.after))
			if c.thenNow != 0 {
				s.learn(at(c.thenNow), at(c.thenBefore), at(c.thenBefore))
			}
			if got := s.now(); !got.Equal(at(c.wantNow)) {
				t.Errorf("it is %v, not %v", got.Sub(start), c.wantNow)
			}
			own = own.Add(10 * time.Second)
			if got := s.now(); !got.Equal(at(c.wantLater)) {
				t.Errorf("later it is %v, not %v", got.Sub(start), c.wantLater)
			}
		})
	}
}
