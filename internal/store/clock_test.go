package store

import (
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
