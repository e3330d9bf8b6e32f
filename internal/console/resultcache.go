package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxQueued bounds the different questions that wait for their turn.
const maxQueued = 8

// resultCache gives answers that take effort, to readers whom nobody knows: those who
// ask the same share one, it is given again for a while, the rest wait for their
// turn, and no answer takes longer than its time.
type resultCache[T any] struct {
	operation  string        // what is done, for errors, e.g. "compare with what runs"
	timeout    time.Duration // for one answer
	maxResults int           // answers that are remembered
	now        func() time.Time

	inFlight singleflight.Group
	running  chan struct{}
	queue    chan struct{}
	mu       sync.Mutex
	results  map[string]cachedResult[T]
}

// cachedResult is an answer, or why there is none, until when it is given again.
type cachedResult[T any] struct {
	value T
	err   error
	until time.Time
}

func newResultCache[T any](operation string, timeout time.Duration, maxResults int, now func() time.Time) *resultCache[T] {
	return &resultCache[T]{operation: operation, timeout: timeout, maxResults: maxResults, now: now, running: make(chan struct{}, 1), queue: make(chan struct{}, maxQueued), results: map[string]cachedResult[T]{}}
}

// getOrCompute gives the answer of a moment ago or asks for it. An answer, and an error
// that knows its own answer, is given again for as long as keep says.
func (c *resultCache[T]) getOrCompute(ctx context.Context, key string, compute func(context.Context) (value T, keep time.Duration, err error)) (value T, err error) {
	c.mu.Lock()
	known, ok := c.results[key]
	c.mu.Unlock()
	if ok && c.now().Before(known.until) {
		return known.value, known.err
	}
	ch := c.inFlight.DoChan(key, func() (any, error) {
		// Others may be waiting for it when the first one leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		return c.computeInTurn(ctx, key, compute)
	})
	select {
	case <-ctx.Done():
		return value, fmt.Errorf("%s: %w", c.operation, ctx.Err())
	case res := <-ch:
		if res.Err != nil {
			return value, res.Err
		}
		return res.Val.(T), nil
	}
}

func (c *resultCache[T]) computeInTurn(ctx context.Context, key string, compute func(context.Context) (T, time.Duration, error)) (value T, err error) {
	select {
	case c.queue <- struct{}{}:
		defer func() { <-c.queue }()
	default:
		return value, apiErrorf(http.StatusServiceUnavailable, "too many others ask for something that takes long; try again in a minute")
	}
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return value, fmt.Errorf("%s: what others asked for takes too long: %w", c.operation, ctx.Err())
	}
	value, keep, err := compute(ctx)
	var answered *apiError
	if err != nil && !errors.As(err, &answered) {
		return value, fmt.Errorf("%s: %w", c.operation, err)
	}
	if keep > 0 {
		c.storeResult(key, cachedResult[T]{value, err, c.now().Add(keep)})
	}
	return value, err
}

// storeResult drops what has run out, and, when it is too much, what runs out first.
func (c *resultCache[T]) storeResult(key string, k cachedResult[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := ""
	for other, old := range c.results {
		if !c.now().Before(old.until) {
			delete(c.results, other)
		} else if first == "" || old.until.Before(c.results[first].until) {
			first = other
		}
	}
	if len(c.results) >= c.maxResults {
		delete(c.results, first)
	}
	c.results[key] = k
}
