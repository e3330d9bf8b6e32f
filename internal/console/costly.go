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

// maxInLine bounds the different questions that wait for their turn.
const maxInLine = 8

// costly gives answers that take effort, to readers whom nobody knows: those who
// ask the same share one, it is given again for a while, the rest wait for their
// turn, and no answer takes longer than its time.
type costly[T any] struct {
	doing  string        // what is done, for errors, e.g. "compare with what runs"
	within time.Duration // for one answer
	most   int           // answers that are remembered
	now    func() time.Time

	shared singleflight.Group
	turn   chan struct{}
	line   chan struct{}
	mu     sync.Mutex
	known  map[string]kept[T]
}

// kept is an answer, or why there is none, until when it is given again.
type kept[T any] struct {
	value T
	err   error
	until time.Time
}

func newCostly[T any](doing string, within time.Duration, most int, now func() time.Time) *costly[T] {
	return &costly[T]{doing: doing, within: within, most: most, now: now, turn: make(chan struct{}, 1), line: make(chan struct{}, maxInLine), known: map[string]kept[T]{}}
}

// get gives the answer of a moment ago or asks for it. An answer, and an error
// that knows its own answer, is given again for as long as keep says.
func (c *costly[T]) get(ctx context.Context, key string, ask func(context.Context) (value T, keep time.Duration, err error)) (value T, err error) {
	c.mu.Lock()
	known, ok := c.known[key]
	c.mu.Unlock()
	if ok && c.now().Before(known.until) {
		return known.value, known.err
	}
	ch := c.shared.DoChan(key, func() (any, error) {
		// Others may be waiting for it when the first one leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.within)
		defer cancel()
		return c.inTurn(ctx, key, ask)
	})
	select {
	case <-ctx.Done():
		return value, fmt.Errorf("%s: %w", c.doing, ctx.Err())
	case res := <-ch:
		if res.Err != nil {
			return value, res.Err
		}
		return res.Val.(T), nil
	}
}

func (c *costly[T]) inTurn(ctx context.Context, key string, ask func(context.Context) (T, time.Duration, error)) (value T, err error) {
	select {
	case c.line <- struct{}{}:
		defer func() { <-c.line }()
	default:
		return value, errorf(http.StatusServiceUnavailable, "too many others ask for something that takes long; try again in a minute")
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return value, fmt.Errorf("%s: what others asked for takes too long: %w", c.doing, ctx.Err())
	}
	value, keep, err := ask(ctx)
	var answered *apiError
	if err != nil && !errors.As(err, &answered) {
		return value, fmt.Errorf("%s: %w", c.doing, err)
	}
	if keep > 0 {
		c.remember(key, kept[T]{value, err, c.now().Add(keep)})
	}
	return value, err
}

// remember drops what has run out, and, when it is too much, what runs out first.
func (c *costly[T]) remember(key string, k kept[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := ""
	for other, old := range c.known {
		if !c.now().Before(old.until) {
			delete(c.known, other)
		} else if first == "" || old.until.Before(c.known[first].until) {
			first = other
		}
	}
	if len(c.known) >= c.most {
		delete(c.known, first)
	}
	c.known[key] = k
}
