package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// leaseRenewal is how often a process renews the leases of the keys it runs: a
// third of store.DefaultLease.
const leaseRenewal = store.DefaultLease / 3

// Run claims keys and runs them until the context ends, then waits for the runs
// that have begun.
func (e *Engine) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { e.wakeHeard(ctx) })
	slots := make(chan struct{}, e.o.Workers)
	done := make(chan struct{}, 1)
	for {
		free := e.o.Workers - len(slots)
		var claims []store.Claim
		if free > 0 {
			var err error
			if claims, err = e.o.Store.Claim(ctx, e.o.Owner, free); err != nil && ctx.Err() == nil {
				e.o.Log.Error("the queue can't be read; trying again", zap.Error(err))
				if !e.pause(ctx, retryFirst) {
					return nil
				}
				continue
			}
		}
		for _, c := range claims {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() {
					<-slots
					select {
					case done <- struct{}{}:
					default:
					}
				}()
				e.run(ctx, c)
			})
		}
		if ctx.Err() != nil {
			return nil
		}
		if len(claims) == free {
			// Every worker is busy: what is due has to wait for one of them, and
			// looking for it all the time would only take their processor.
			select {
			case <-ctx.Done():
				return nil
			case <-done:
			}
			continue
		}
		if !e.wait(ctx, done) {
			return nil
		}
	}
}

// wait sleeps until something may be due, a run has ended, or the context has.
func (e *Engine) wait(ctx context.Context, done <-chan struct{}) bool {
	next, ok, err := e.o.Store.NextDue(ctx)
	if err != nil && ctx.Err() == nil {
		e.o.Log.Error("the queue can't be read; trying again", zap.Error(err))
		next, ok = e.o.Clock.Now().Add(retryFirst), true
	}
	var timer <-chan time.Time
	if ok {
		t := e.o.Clock.NewTimer(max(next.Sub(e.o.Clock.Now()), 0))
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-e.o.Store.Wakeups():
	case <-done:
	case <-timer:
	}
	return true
}

func (e *Engine) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-e.o.Clock.After(d):
		return true
	}
}

// run runs one claimed key, renewing its lease, and writes down how it ended.
func (e *Engine) run(ctx context.Context, c store.Claim) {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go e.renew(run, cancel, c)
	began := e.o.Clock.Now()
	next, err := e.guarded(run, c.Key)
	kind := kindOf(c.Key)
	if e.o.Metrics != nil {
		e.o.Metrics.Run(kind, e.o.Clock.Now().Sub(began), err)
	}
	out := store.Outcome{Next: next}
	switch {
	case ctx.Err() != nil:
		return // the lease ends by itself, or with the next start
	case err == nil:
		e.noteRun(c.Key, nil, time.Time{})
	case moved(err):
		e.o.Log.Debug("looking again", zap.String("key", c.Key), zap.Error(err))
		out.Next = e.o.Clock.Now().Add(movedDelay(c.Fails))
		out.Failed = true
	default:
		now, delay := e.o.Clock.Now(), retryDelay(c.Fails)
		out.Failed, out.Next, out.NotBefore = true, now.Add(delay), now.Add(min(delay, heldBack))
		if at := forge.RetryAfter(err); at.After(out.Next) {
			out.Next, out.NotBefore = at, at
		}
		e.noteRun(c.Key, err, out.Next)
		e.o.Log.Warn("a run failed and is tried again", zap.String("key", c.Key), zap.Int("failed before", c.Fails), zap.Time("again", out.Next), zap.Error(err))
	}
	finish := func() error { return e.o.Store.Finish(context.WithoutCancel(ctx), e.o.Owner, c, out) }
	for err := finish(); err != nil && !errors.Is(err, store.ErrLost); err = finish() {
		e.o.Log.Error("how a run ended could not be written down; trying again", zap.String("key", c.Key), zap.Error(err))
		if !e.pause(ctx, retryFirst) {
			return
		}
	}
}

// movedDelay lets the world come to rest when it keeps moving under a key.
func movedDelay(fails int) time.Duration {
	if fails == 0 {
		return 0
	}
	return min(50*time.Millisecond<<min(fails, 10), retryLast)
}

// guarded turns a panic into an error: one unit's bad luck is not everybody's.
func (e *Engine) guarded(ctx context.Context, key string) (next time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while running %s: %v\n%s", key, p, debug.Stack())
		}
	}()
	return e.handle(ctx, key)
}

// renew keeps the lease while the run goes on; when it is lost, the run stops.
func (e *Engine) renew(ctx context.Context, cancel context.CancelCauseFunc, c store.Claim) {
	for e.pause(ctx, leaseRenewal) {
		lost, err := e.o.Store.Renew(ctx, e.o.Owner, []string{c.Key})
		if ctx.Err() != nil {
			return
		}
		if err != nil || len(lost) > 0 {
			cancel(fmt.Errorf("the lease of %s was lost: %w", c.Key, errors.Join(err, store.ErrLost)))
			return
		}
	}
}

func kindOf(key string) string {
	for i := range key {
		if key[i] == ':' {
			return key[:i]
		}
	}
	return "unknown"
}
