package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/store"
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
		if got := branch.Earliest(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("the earlier of %s and %s is %s", c.a, c.b, got)
		}
	}
}

// TestRetryTimes holds when a run that failed runs again, and that a forge's limit which
// only concerns calls that are less urgent keeps nothing else from its time.
func TestRetryTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	limited := func(onlyLower bool) error {
		return fmt.Errorf("comment: %w", &forge.Error{Kind: forge.ErrRateLimited, RetryAfter: now.Add(time.Hour), OnlyLower: onlyLower})
	}
	c := store.Claim{Key: "unit:hub:acme/fleet|shop|web", Fails: 3}
	hour, turn := time.Hour+spread(c.Key, time.Hour), 2*time.Second+spread(c.Key, 2*time.Second)
	for name, test := range map[string]struct {
		err                 error
		next, at, notBefore time.Duration // next 0: never
	}{
		"a failure":                                        {errors.New("no"), 0, 8 * time.Second, 8 * time.Second},
		"a failure of a part":                              {errors.New("no"), 3 * time.Second, 3 * time.Second, 3 * time.Second},
		"the limit of all":                                 {limited(false), 0, hour, hour},
		"the limit of all, before its time":                {limited(false), time.Minute, hour, hour},
		"the limit of lower ones":                          {limited(true), 0, hour, 8 * time.Second},
		"the limit of lower ones, before its time":         {limited(true), time.Minute, time.Minute, 8 * time.Second},
		"the limit of lower ones, at its time":             {limited(true), -time.Minute, time.Second, time.Second},
		"the limit of lower ones, long before its time":    {limited(true), 3 * time.Hour, hour, 8 * time.Second},
		"a turn sooner than we would wait for a failure":   {&forge.Error{Kind: forge.ErrRateLimited, RetryAfter: now.Add(2 * time.Second), OnlyLower: true}, 0, turn, turn},
		"a turn at once":                                   {&forge.Error{Kind: forge.ErrRateLimited, RetryAfter: now.Add(time.Millisecond), OnlyLower: true}, 0, time.Second, time.Second},
		"a turn that is past":                              {&forge.Error{Kind: forge.ErrRateLimited, RetryAfter: now, OnlyLower: true}, 0, 8 * time.Second, 8 * time.Second},
		"a forge that is away, and says for how long":      {&forge.Error{Kind: forge.ErrRetryable, RetryAfter: now.Add(time.Minute)}, 0, time.Minute, time.Minute},
		"a forge that is away for less than we would wait": {&forge.Error{Kind: forge.ErrRetryable, RetryAfter: now.Add(time.Second)}, 0, 8 * time.Second, 8 * time.Second},
	} {
		next := time.Time{}
		if test.next != 0 {
			next = now.Add(test.next)
		}
		at, notBefore := retryTimes(now, c, next, test.err)
		if at.Sub(now) != test.at || notBefore.Sub(now) != test.notBefore {
			t.Errorf("%s: after %s, not before %s; want %s and %s", name, at.Sub(now), notBefore.Sub(now), test.at, test.notBefore)
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
	now = now.Add(maxFailureAge)
	if after := f.list(); len(after) != 1 {
		t.Errorf("they are %+v", after)
	}
	now = now.Add(time.Second) // another process has tried it again
	if after := f.list(); len(after) != 0 {
		t.Errorf("they are %+v still", after)
	}
}
