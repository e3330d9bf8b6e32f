package gateclient

import (
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/time/rate"
)

const (
	// callsPerSecond and maxAtOnce are a server's budget.
	callsPerSecond = 5
	maxAtOnce      = maxConnections
	// firstDelay is for how long a failing server is left alone, which doubles up to maxDelay. A
	// query that is refused by itself is asked again after its own interval.
	firstDelay = 5 * time.Second
	maxDelay   = 5 * time.Minute
	// busyDelay is about when to come again where a budget is used up.
	busyDelay = 2 * time.Second
)

// budget is how often one server may be called, and for how long it is left alone after it
// failed. It may be used concurrently.
type budget struct {
	limiter *rate.Limiter
	places  chan struct{} // a token for each call under way

	mu       sync.Mutex
	failures int
	failed   string    // why it is left alone
	until    time.Time // when it may be called again
}

func newBudget() *budget {
	return &budget{limiter: rate.NewLimiter(callsPerSecond, callsPerSecond), places: make(chan struct{}, maxAtOnce)}
}

// isAway says why a server is left alone, and until when; nil: it isn't.
func (b *budget) isAway(now time.Time) (until time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Nobody is left alone for longer than that: later than that the clock was ahead when it failed.
	if now.Before(b.until) && b.until.Sub(now) <= max(maxDelay, maxRetryAfter) {
		return b.until, errors.New(b.failed)
	}
	return time.Time{}, nil
}

// begin takes a call out of the budget; nil: it is used up. done is called when the call is over.
func (b *budget) begin(now time.Time) (done func()) {
	select {
	case b.places <- struct{}{}:
	default:
		return nil
	}
	done = func() { <-b.places }
	if !b.limiter.AllowN(now, 1) {
		done()
		return nil
	}
	return done
}

// end takes note of how a call ended. Where the server isn't well, again is when it may be
// called again; else it is zero.
func (b *budget) end(now time.Time, err error) (again time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var failed *callError
	switch errors.As(err, &failed); {
	case err == nil:
		b.failures, b.until = 0, time.Time{}
	case failed != nil && failed.away:
		b.failures++
		again = now.Add(max(retryDelay(b.failures), failed.after))
		b.failed, b.until = failed.text, again
	}
	return again
}

// retryDelay is how long to wait after so many failures in a row.
func retryDelay(failures int) time.Duration {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstDelay), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(maxDelay), backoff.WithMaxElapsedTime(0))
	d := b.NextBackOff()
	for range min(failures, 10) - 1 {
		d = b.NextBackOff()
	}
	return d
}

// jitter spreads those who wait for the same: the same for the same key.
func jitter(key string, within time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return time.Duration(h.Sum64() % uint64(within))
}
