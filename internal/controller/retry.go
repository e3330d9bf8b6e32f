package controller

import (
	"errors"
	"hash/fnv"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/store"
)

// retryDelay is when a failed run is tried again: soon at first, then ever more
// rarely; a forge's own word about when comes before it.
func retryDelay(fails int) time.Duration {
	d := minRetryDelay
	for range min(fails, 16) {
		d *= 2
		if d >= maxRetryDelay {
			return maxRetryDelay
		}
	}
	return d
}

// retryTime is when a key of which a part failed runs again. That is after the delay, or when the
// rest of it wants to (zero: never), but not at once.
func retryTime(now time.Time, delay time.Duration, next time.Time) time.Time {
	if !next.IsZero() && next.Before(now.Add(minRetryDelay)) {
		next = now.Add(minRetryDelay)
	}
	return branch.Earliest(now.Add(delay), next)
}

// spread is up to a tenth of a wait, always the same for a key, so that keys that wait for the same
// time don't all come at once.
func spread(key string, wait time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return time.Duration(float64(wait) / 10 * float64(h.Sum32()) / math.MaxUint32).Truncate(time.Millisecond)
}

// retryTimes is when a key whose run failed runs again, and until when its wakes don't bring that
// about; next is when the run wanted to run again. The turn that limits give is kept to however
// often they have refused: who came later each time would leave it unused.
func retryTimes(now time.Time, c store.Claim, next time.Time, err error) (at, notBefore time.Time) {
	at = retryTime(now, retryDelay(c.Fails), next)
	notBefore = branch.Earliest(at, now.Add(maxHoldOff))
	after, limited := forge.RetryAfter(err), errors.Is(err, forge.ErrRateLimited)
	if !after.After(at) && !(limited && after.After(now)) {
		return at, notBefore
	}
	if limited {
		after = after.Add(spread(c.Key, after.Sub(now)))
	}
	if soonest := now.Add(minRetryDelay); after.Before(soonest) {
		after = soonest
	}
	if forge.LeavesHigher(err) { // what wakes it, or what it wants to do by then, may be more urgent than what was refused
		at = retryTime(now, after.Sub(now), next)
		return at, branch.Earliest(at, notBefore)
	}
	return after, after
}

const (
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// maxHoldOff bounds how long a failed run keeps off its key's wakes. That is long enough that a
	// busy cluster doesn't repeat a refused call all the time, and short enough for a person who
	// has mended the cause.
	maxHoldOff = 10 * time.Second
)

// isStale says that a run ended because the world moved: look again at once.
func isStale(err error) bool {
	return errors.Is(err, act.ErrStale) || errors.Is(err, forge.ErrConflict) || errors.Is(err, git.ErrLeaseLost) ||
		errors.Is(err, store.ErrClockMoved)
}

// Failure is a run that failed and is tried again.
type Failure struct {
	Since   time.Time // when it failed first
	Err     string    // how it failed last
	RetryAt time.Time // when it is tried again
}

// failingRuns are the runs that failed last time, for who looks after the server.
type failingRuns struct {
	now   func() time.Time
	mu    sync.Mutex
	byKey map[string]Failure
}

// record remembers a failure and forgets it when the key runs well again.
func (f *failingRuns) record(key string, err error, retryAt time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.byKey, key)
		return
	}
	failure, ok := f.byKey[key]
	if !ok {
		failure.Since = f.now()
	}
	failure.Err, failure.RetryAt = err.Error(), retryAt
	f.byKey[key] = failure
}

// maxFailureAge is how long after its next try a run counts as failing that hasn't been tried here
// again. Another process has tried it by then, and knows how it ended.
const maxFailureAge = 2 * runTimeout

func (f *failingRuns) list() map[string]Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.byKey, func(_ string, failure Failure) bool { return f.now().Sub(failure.RetryAt) > maxFailureAge })
	return maps.Clone(f.byKey)
}
