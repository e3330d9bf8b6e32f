package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
)

// maxQueued bounds the different questions that wait for their turn.
const maxQueued = 8

// resultCache gives answers that take effort, to unknown readers. Equal questions share one answer,
// which is given again for a while. The rest wait for their turn, and no answer takes longer than
// its time.
type resultCache[T any] struct {
	shared  sharedReads[T]
	now     func() time.Time
	running chan struct{}
	queue   chan struct{}
	results *cache.Cache[string, cachedResult[T]]
}

// cachedResult is an answer, or why there is none, until when it is given again.
type cachedResult[T any] struct {
	value T
	err   error
	until time.Time
}

// newResultCache makes one for an operation, named as in "compare with what runs"; timeout is
// for one answer.
func newResultCache[T any](o *Options, operation string, timeout time.Duration, maxResults int) *resultCache[T] {
	return &resultCache[T]{shared: sharedReads[T]{operation: operation, timeout: timeout, log: o.Log}, now: o.Now,
		running: make(chan struct{}, 1), queue: make(chan struct{}, maxQueued),
		results: cache.New(o.Caches, cache.Options[string, cachedResult[T]]{Name: "console-results", Entries: maxResults})}
}

// getOrCompute gives the answer of a moment ago or asks for it. An answer, and an error
// that knows its own answer, is given again for as long as keep says.
func (r *resultCache[T]) getOrCompute(ctx context.Context, key string,
	compute func(context.Context) (value T, keep time.Duration, err error)) (value T, err error) {
	known, ok := r.results.Get(key)
	if ok && r.now().Before(known.until) {
		return known.value, known.err
	}
	return r.shared.do(ctx, key, func(ctx context.Context) (T, error) { return r.computeInTurn(ctx, key, compute) })
}

func (r *resultCache[T]) computeInTurn(ctx context.Context, key string,
	compute func(context.Context) (T, time.Duration, error)) (value T, err error) {
	select {
	case r.queue <- struct{}{}:
		defer func() { <-r.queue }()
	default:
		return value, apiErrorf(http.StatusServiceUnavailable, "too many others ask for something that takes long; try again in a minute")
	}
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	case <-ctx.Done():
		return value, fmt.Errorf("%s: what others asked for takes too long: %w", r.shared.operation, ctx.Err())
	}
	value, keep, err := compute(ctx)
	var answered *apiError
	if err != nil && !errors.As(err, &answered) {
		return value, fmt.Errorf("%s: %w", r.shared.operation, err)
	}
	if keep > 0 {
		r.results.RemoveFunc(func(_ string, old cachedResult[T]) bool { return !r.now().Before(old.until) })
		r.results.Put(key, cachedResult[T]{value, err, r.now().Add(keep)})
	}
	return value, err
}
