package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
)

// runStopped runs a unit's key or the merges' under a lease, and has the process stand still right before a
// call: past its lease, where long says so. It gives the lease's key and whether it came to that call.
func (f *fixture) runStopped(k wake.Key, before string, long bool) (reached bool) {
	f.t.Helper()
	f.must(f.opts.Store.Wake(f.t.Context(), k.String()))
	f.clock.Step(2 * time.Second)
	asOf := f.clock.Now()
	claims, err := f.opts.Store.Claim(f.t.Context(), "me", 10)
	f.must(err)
	f.injected.Deep = true
	f.injected.Hook = func(call string) {
		if !strings.Contains(call, before) || reached {
			return
		}
		if reached = true; long {
			f.clock.Step(store.DefaultLease - leaseRenewal)
		}
	}
	defer func() { f.injected.Deep, f.injected.Hook = false, nil }()
	for _, c := range claims {
		if c.Key == k.String() {
			f.runLeased(f.t.Context(), c, f.newLease(asOf), func(context.Context, context.CancelCauseFunc) {})
		}
	}
	return reached
}

// TestNothingIsChangedPastTheLease has a process stand still between its last look and a merge, or
// a push. It changes nothing where its lease is over by then; where it isn't, it does.
func TestNothingIsChangedPastTheLease(t *testing.T) {
	t.Parallel()
	t.Run("a merge", func(t *testing.T) {
		for _, long := range []bool{true, false} {
			w := newMemoryFixture(t, "", autoQA, "web")
			p := w.openOne("web", "1.1.0", "web")
			reached := false
			for range 10 {
				if err := w.run(wake.ForUnit(w.unit("web"))); err != nil && !isStale(err) {
					t.Fatal(err)
				}
				if reached = w.runStopped(wake.ForMerge(w.repo.ID), "forge: merge ", long); reached {
					break
				}
			}
			if !reached {
				t.Fatal("it never came to the merge")
			}
			if merged := w.pulls()[len(w.pulls())-1].Merged; merged == long {
				t.Errorf("past the lease: %t; #%d is merged: %t", long, p.Number, merged)
			}
		}
	})
	t.Run("a push", func(t *testing.T) {
		for _, long := range []bool{true, false} {
			w := newMemoryFixture(t, "", autoQA, "web")
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.release("1.1.0", "web")
			reached := false
			for range 10 {
				if reached = w.runStopped(wake.ForUnit(w.unit("web")), "git: push", long); reached {
					break
				}
				w.runRepository()
			}
			if !reached {
				t.Fatal("it never came to a push")
			}
			heads, err := w.repo.Mirror.RemoteHeads(t.Context(), "liftlock/shop/qa/web")
			if w.must(err); len(heads) > 0 == long || len(w.pulls()) > 0 == long {
				t.Errorf("past the lease: %t; the remote has %v, and there are %d pull requests", long, heads, len(w.pulls()))
			}
		}
	})
}

// TestARunStopsWithItsLease holds that a run is stopped when its lease is over, while the store never answers
// whether it is renewed.
func TestARunStopsWithItsLease(t *testing.T) {
	w := newRunnerFixture(t)
	start := w.clock.Now()
	lease := w.newLease(start)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan struct{})
	go func() { w.stopAtEnd(ctx, cancel, store.Claim{Key: "k"}, lease); close(done) }()
	w.stepWhenWaiting(leaseRenewal)
	lease.Renew(w.clock.Now()) // it was renewed, which it finds out when the first one would have ended
	w.stepWhenWaiting(leaseRenewal)
	w.stepWhenWaiting(leaseRenewal - 1)
	if ctx.Err() != nil {
		t.Fatalf("it was stopped early: %v", context.Cause(ctx))
	}
	w.stepWhenWaiting(1)
	<-done
	if err := context.Cause(ctx); !errors.Is(err, lock.ErrLeaseOver) || !errors.Is(err, store.ErrLost) || w.clock.Since(start) != 3*leaseRenewal {
		t.Errorf("stopped after %s: %v", w.clock.Since(start), err)
	}
}
