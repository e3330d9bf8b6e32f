package facts

import (
	"testing"
	"time"
)

// TestLate asks again for what ran out of time: soon at first, once an hour in
// the end.
func TestLate(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	var l late
	if l.due(now) {
		t.Error("an answer in time is due")
	}
	var waits []time.Duration
	for range 9 {
		l = l.onceMore(now)
		waits = append(waits, l.again.Sub(now))
		if l.due(l.again.Add(-time.Second)) || !l.due(l.again) {
			t.Errorf("due at %s: %t, a second before: %t", l.again, l.due(l.again), l.due(l.again.Add(-time.Second)))
		}
		now = l.again
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i, w := range want {
		if waits[i] != w*time.Minute {
			t.Errorf("the waits are %v", waits)
			break
		}
	}
	c := Case{again: new(time.Time)}
	c.waits(late{})
	if !c.Again().IsZero() {
		t.Error("a case waits for nothing")
	}
	c.waits(late{1, now.Add(time.Hour)})
	c.waits(late{1, now.Add(time.Minute)})
	c.waits(late{1, now.Add(2 * time.Hour)})
	if !c.Again().Equal(now.Add(time.Minute)) {
		t.Errorf("it looks again at %s", c.Again())
	}
}
