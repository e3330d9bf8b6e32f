package controller

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// hang is a forge that doesn't answer; began is told of every call.
func hang(began chan<- int) func(context.Context, int) error {
	return func(ctx context.Context, number int) error {
		began <- number
		<-ctx.Done()
		return ctx.Err()
	}
}

// TestARunThatHangsEnds holds that a run in which something doesn't answer ends, is told as
// failed with the reason, and is tried again.
func TestARunThatHangsEnds(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	began := make(chan int, 1)
	w.forge.answer = hang(began)
	w.must(w.opts.Store.Wake(t.Context(), key))
	claim, start := w.claim(), w.clock.Now()
	done := make(chan struct{})
	go func() { w.runClaim(t.Context(), claim, w.clock.Now()); close(done) }()
	<-began
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
			if w.clock.Waiters() > 1 { // what renews the lease, and what stops the run at the lease's end
				w.clock.Step(leaseRenewal)
			}
			runtime.Gosched()
		}
	}
	if took := w.clock.Now().Sub(start); took < runTimeout {
		t.Errorf("it ended after %s", took)
	}
	if f, failed := w.FailingRuns()[key]; !failed || !strings.Contains(f.Err, "more than 15m0s") {
		t.Errorf("it is told as %+v, %v", f, failed)
	}
	if got := w.due(); got < 0 || got > minRetryDelay {
		t.Errorf("it runs again after %s", got)
	}
}

// countingClock counts how often somebody waits for a time.
type countingClock struct {
	*clocktesting.FakeClock
	waits atomic.Int64
}

func (c *countingClock) After(d time.Duration) <-chan time.Time {
	defer c.waits.Add(1)
	return c.FakeClock.After(d)
}

// await waits until so many waits have begun.
func (c *countingClock) await(n int64) {
	for c.waits.Load() < n {
		runtime.Gosched()
	}
}

// TestOneRepositoryThatHangs holds that keys of others go on while every worker waits for
// one, and that those that hang take no more and more of the process.
func TestOneRepositoryThatHangs(t *testing.T) {
	w := newRunnerFixture(t)
	clock := &countingClock{FakeClock: w.clock}
	w.opts.Clock = clock
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, answered := make(chan int, 100), make(chan int, 100)
	w.forge.answer = hang(began)
	other := &unreachableForge{answer: func(_ context.Context, number int) error {
		answered <- number
		return &forge.Error{Op: "read", Kind: forge.ErrNotFound}
	}}
	r := &Repository{Repository: &branch.Repository{ID: "hub:acme/other", Name: forge.Repo{Owner: "acme", Name: "other"}, Forge: other}}
	w.reposByID[r.ID] = r
	w.fresh.remember(r, "")
	for number := range 20 {
		w.must(w.opts.Store.Wake(ctx, wake.ForPull("hub:acme/fleet", number+1).String()))
	}
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	hanging, waits := 0, int64(0)
	for hanging < maxSlowRuns {
		for range w.opts.Workers {
			<-began
			hanging++
			waits += 2 // for its lease, and to be slow
		}
		clock.await(waits)
		if hanging == w.opts.Workers {
			w.must(w.opts.Store.Wake(ctx, wake.ForPull(r.ID, 1).String()))
		}
		for past := time.Duration(0); past < slowAfter; past += leaseRenewal {
			clock.Step(leaseRenewal)
			waits += int64(hanging)
			clock.await(waits) // the leases are renewed
		}
	}
	<-answered
	if n := len(began); n >= w.opts.Workers {
		t.Errorf("%d more runs hang", n) // one may have begun before the last was slow
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestDelayedRunStaysFailed has a run fail, and then put off because its repository hangs. It
// is still reported as failing and goes on with its growing delays, as urgent as it was.
func TestDelayedRunStaysFailed(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	w.forge.answer = func(context.Context, int) error { return &forge.Error{Op: "read", Kind: forge.ErrRetryable} }
	w.must(w.opts.Store.WakeAs(t.Context(), store.Urgent, key))
	run := func(fails int) {
		t.Helper()
		c := w.claim()
		if c.Fails != fails || c.Urgency != store.Urgent {
			t.Errorf("it has failed %d times in a row, want %d, and is of urgency %d", c.Fails, fails, c.Urgency)
		}
		w.runClaim(t.Context(), c, w.clock.Now())
		if _, failing := w.FailingRuns()[key]; !failing {
			t.Error("it isn't told as failing")
		}
		w.clock.Step(w.due())
	}
	for fails := range 5 { // the last is further ahead than what follows at once
		run(fails)
	}
	w.slow.add("hub:acme/fleet", maxSlowRuns)
	run(5)
	w.slow.add("hub:acme/fleet", -maxSlowRuns)
	run(5)
}
