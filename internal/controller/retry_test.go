package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
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
