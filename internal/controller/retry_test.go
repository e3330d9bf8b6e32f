package controller

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	for fails, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := retryDelay(fails); got != want {
			t.Errorf("after %d failures it is tried again after %s, not %s", fails, got, want)
		}
	}
	for fails, want := range map[int]time.Duration{0: 0, 1: 100 * time.Millisecond, 10: 51200 * time.Millisecond, 1000: 51200 * time.Millisecond} {
		if got := staleDelay(fails); got != want {
			t.Errorf("after it moved %d times it is looked at after %s, not %s", fails, got, want)
		}
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ a, b, want time.Time }{{time.Time{}, time.Time{}, time.Time{}}, {at, time.Time{}, at}, {time.Time{}, at, at}, {at, at.Add(1), at}, {at.Add(1), at, at}} {
		if got := earliest(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("the earlier of %s and %s is %s", c.a, c.b, got)
		}
	}
}

func TestIsStale(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{act.ErrStale: true, &forge.Error{Kind: forge.ErrConflict}: true, &git.Error{Kind: git.ErrLeaseLost}: true, &forge.Error{Kind: forge.ErrNotMergeable}: false, errors.New("no"): false, nil: false} {
		if err != nil {
			err = fmt.Errorf("merge: %w", err)
		}
		if isStale(err) != want {
			t.Errorf("%v is stale: %v", err, !want)
		}
	}
}

func TestFailingRuns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f := failingRuns{now: func() time.Time { return now }, byKey: map[string]Failure{}}
	f.record("a", errors.New("no"), now.Add(time.Second))
	began := now
	now = now.Add(time.Minute)
	f.record("a", errors.New("never"), now.Add(time.Second))
	f.record("b", errors.New("no"), now)
	list := f.list()
	if a := list["a"]; len(list) != 2 || a.Since != began || a.Err != "never" || !a.RetryAt.Equal(now.Add(time.Second)) {
		t.Errorf("they are %+v", list)
	}
	f.record("a", nil, time.Time{})
	if after := f.list(); len(after) != 1 || len(list) != 2 {
		t.Errorf("they are %+v, and the list given before %+v", after, list)
	}
}

// TestUnitLocks holds that a unit is run by one at a time, others beside it, and that
// nothing is kept of units that nobody runs.
func TestUnitLocks(t *testing.T) {
	t.Parallel()
	var l unitLocks
	b := 0
	one, other := promotion.Unit{Component: "web"}, promotion.Unit{Component: "api"}
	unlock := l.lock(one)
	l.lock(other)() // is not waited for
	second := make(chan struct{})
	go func() {
		defer l.lock(one)()
		b++
		close(second)
	}()
	for waits := false; !waits; {
		l.mu.Lock()
		waits = l.held[one].users == 2
		l.mu.Unlock()
		runtime.Gosched()
	}
	if b != 0 || len(l.held) != 1 {
		t.Errorf("%d ran meanwhile; %d locks", b, len(l.held))
	}
	unlock()
	<-second
	l.lock(one)() // so the other has unlocked, or is about to forget it
	for left := 1; left > 0; {
		l.mu.Lock()
		left = len(l.held)
		l.mu.Unlock()
		runtime.Gosched()
	}
}
