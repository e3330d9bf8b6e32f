package effects

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// TestRetryState asks again for what ran out of time: soon at first, once an hour in
// the end.
func TestRetryState(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	var l retryState
	if l.isDue(now) {
		t.Error("an answer in time is due")
	}
	var waits []time.Duration
	for range 9 {
		l = l.nextRetry(now)
		waits = append(waits, l.retryAt.Sub(now))
		if l.isDue(l.retryAt.Add(-time.Second)) || !l.isDue(l.retryAt) {
			t.Errorf("due at %s: %t, a second before: %t", l.retryAt, l.isDue(l.retryAt), l.isDue(l.retryAt.Add(-time.Second)))
		}
		now = l.retryAt
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i, w := range want {
		if waits[i] != w*time.Minute {
			t.Errorf("the waits are %v", waits)
			break
		}
	}
	var c branch.Basis
	c.ScheduleRetry(retryState{}.at())
	if !c.RetryAt.IsZero() {
		t.Error("a case waits for nothing")
	}
	c.ScheduleRetry(retryState{1, now.Add(time.Hour)}.at())
	c.ScheduleRetry(retryState{1, now.Add(time.Minute)}.at())
	c.ScheduleRetry(retryState{1, now.Add(2 * time.Hour)}.at())
	if !c.RetryAt.Equal(now.Add(time.Minute)) {
		t.Errorf("it looks again at %s", c.RetryAt)
	}
}
