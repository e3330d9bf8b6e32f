package gateclient

import (
	"testing"
	"time"
)

// TestServerIsLeftAlone holds for how long a server that isn't well is left alone, whatever
// the clock does.
func TestServerIsLeftAlone(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	b := newBudget()
	if again := b.end(now, &callError{text: "it answers 503", away: true}); !again.Equal(now.Add(firstDelay)) {
		t.Errorf("it is called again at %s", again)
	}
	if until, err := b.isAway(now); err == nil || !until.Equal(now.Add(firstDelay)) {
		t.Errorf("right after that: %s, %v", until, err)
	}
	if _, err := b.isAway(now.Add(firstDelay)); err != nil {
		t.Errorf("when its time has come: %v", err)
	}
	b.end(now, &callError{text: "it answers 429", away: true, after: maxRetryAfter})
	if _, err := b.isAway(now.Add(time.Minute)); err == nil {
		t.Error("its own wish isn't heeded")
	}
	b.end(now.Add(24*time.Hour), &callError{text: "it answers 503", away: true})
	if _, err := b.isAway(now); err != nil {
		t.Errorf("after a clock that was ahead: %v", err)
	}
}
