package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLeaseEndsByEitherClock holds that a lease is over where one of the two clocks says so.
func TestLeaseEndsByEitherClock(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name            string
		wall, monotonic time.Duration
		want            time.Duration
	}{
		{"at once", 0, 0, 0},
		{"both went on", time.Minute, time.Minute, time.Minute},
		{"the machine was suspended", time.Hour, time.Second, time.Hour},
		{"the wall's clock was set back", -time.Hour, time.Minute, time.Minute},
		{"the wall's clock was set forward", 2 * time.Hour, time.Minute, 2 * time.Hour},
	} {
		earlier := moment{wall: start, monotonic: time.Second}
		later := moment{wall: start.Add(c.wall), monotonic: time.Second + c.monotonic}
		if got := later.since(earlier); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	now := time.Now()
	l := NewLease(time.Minute, func() time.Time { return now.Add(10 * time.Second) }, now)
	got := l.momentOf(now.Add(3 * time.Second))
	if got.monotonic != 3*time.Second || got.wall != now.Add(3*time.Second).Round(0) {
		t.Errorf("read as %+v", got)
	}
	if left := l.Left(); left != 50*time.Second {
		t.Errorf("%s are left", left)
	}
}

// TestCheckLease holds that work under a lease may be done until it is over, and again once it was
// renewed. That goes for work that outlasts the context's end, too.
func TestCheckLease(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	l := NewLease(20*time.Second, func() time.Time { return now }, now)
	ctx, cancel := context.WithCancel(WithLease(t.Context(), l))
	cancel()
	for _, c := range []struct {
		name string
		at   time.Duration
		over bool
	}{
		{"at once", 0, false}, {"right before the end", 20*time.Second - 1, false}, {"at the end", 20 * time.Second, true},
	} {
		now = l.base.Add(c.at)
		if err := CheckLease(context.WithoutCancel(ctx)); errors.Is(err, ErrLeaseOver) != c.over {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	l.Renew(l.base.Add(10 * time.Second))
	if err := CheckLease(ctx); err != nil || l.Left() != 10*time.Second {
		t.Errorf("renewed: %v, %s are left", err, l.Left())
	}
	if err := CheckLease(t.Context()); err != nil {
		t.Errorf("without a lease: %v", err)
	}
}
