package controller

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
)

// TestARunsEndIsWrittenDownLater holds that how a run ended isn't lost where the store is away when
// it ends.
func TestARunsEndIsWrittenDownLater(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	w.must(w.opts.Store.Wake(t.Context(), key))
	claim := w.claim()
	w.forge.answer = func(context.Context, int) error { return &forge.Error{Op: "read", Kind: forge.ErrNotFound} }
	tries := 0
	w.intercept = func(call string) error {
		if call != "finish" {
			return nil
		}
		if tries++; tries <= 2 {
			return errors.New("away")
		}
		return nil
	}
	done := make(chan struct{})
	go func() {
		w.runLeased(t.Context(), claim, w.newLease(w.clock.Now()), func(context.Context, context.CancelCauseFunc) {})
		close(done)
	}()
	for range 2 {
		w.stepWhenWaiting(minRetryDelay)
	}
	<-done
	if got := w.due(); tries != 3 || got != -1 {
		t.Errorf("after %d tries it is due after %s", tries, got)
	}
}

// TestRunOutlivesItsStore holds that keys are run once the store is back, whichever of its answers
// was missing.
func TestRunOutlivesItsStore(t *testing.T) {
	for name, away := range map[string]string{"claiming": "claim", "reading when the next is due": ""} {
		t.Run(name, func(t *testing.T) {
			w := newRunnerFixture(t)
			ran := make(chan struct{}, 1)
			w.forge.answer = func(context.Context, int) error {
				ran <- struct{}{}
				return &forge.Error{Op: "read", Kind: forge.ErrNotFound}
			}
			failed := make(chan struct{})
			fail := sync.OnceValue(func() error { close(failed); return errors.New("away") })
			first := true
			w.intercept = func(call string) error {
				if call != away || !first {
					return nil
				}
				first = false
				return fail()
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			<-failed
			w.must(w.opts.Store.Wake(ctx, wake.ForPull("hub:acme/fleet", 7).String()))
			for waits := true; waits; {
				select {
				case <-ran:
					waits = false
				default:
					if w.clock.HasWaiters() {
						w.clock.Step(minRetryDelay)
					}
					runtime.Gosched()
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
