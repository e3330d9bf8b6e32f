package controller

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// leaseRenewal is how often the fixture's controller renews its leases.
const leaseRenewal = store.DefaultLease / renewalsPerLease

// unreachableForge answers every question about a pull request with what a test says.
type unreachableForge struct {
	forge.Forge
	answer func(ctx context.Context, number int) error
}

func (u *unreachableForge) PullRequest(ctx context.Context, _ forge.Repo, number int) (*forge.PullRequest, error) {
	return nil, u.answer(ctx, number)
}

// runnerFixture is a controller with a queue and a clock, of one repository whose forge
// answers what a test says. Its pull requests' keys are what runs.
type runnerFixture struct {
	*Controller
	t     *testing.T
	clock *clocktesting.FakeClock
	forge *unreachableForge
	runs  runMetrics
	// intercept is asked before the store is; nil: it answers.
	intercept func(call string) error
	// loseAnswer is asked once the store has done something; nil: what did it is answered.
	loseAnswer func(call string) error
	// hangs says of a call that it is never answered; nil: each is.
	hangs func(call string) bool
}

type runMetrics struct {
	mu    sync.Mutex // runs go on side by side
	kinds []string
}

func (r *runMetrics) Run(kind string, _ time.Duration, err error) {
	if err != nil {
		kind += " failed"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = append(r.kinds, kind)
}

func (r *runMetrics) Check(time.Duration, bool) {}

func (*runMetrics) Skipped(string, string, string) {}

func (*runMetrics) Discovered(string, string, time.Duration) {}

func newRunnerFixture(t *testing.T) *runnerFixture {
	t.Helper()
	t.Parallel()
	w := &runnerFixture{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), forge: &unreachableForge{}}
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now, Intercept: func(ctx context.Context, call string, answered bool) error {
		if w.hangs != nil && w.hangs(call) {
			<-ctx.Done()
			return ctx.Err()
		}
		intercept := w.intercept
		if answered {
			intercept = w.loseAnswer
		}
		if intercept == nil {
			return nil
		}
		return intercept(call)
	}})
	w.must(err)
	t.Cleanup(func() { _ = st.Close() })
	r := &Repository{Repository: &branch.Repository{ID: "hub:acme/fleet", Name: forge.Repo{Owner: "acme", Name: "fleet"}, Forge: w.forge}}
	gatherer := facts.New(facts.Options{Store: st, Resolver: appset.New(appset.Options{}), Now: w.clock.Now})
	w.Controller = New(Options{Store: st, Gatherer: gatherer, Repos: []*Repository{r}, Clock: w.clock, Log: zap.NewNop(), Metrics: &w.runs, Owner: "me", Workers: 2})
	w.fresh.remember(r, "") // there is no mirror to fetch into
	return w
}

func (r *runnerFixture) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// claim claims the one key that is due.
func (r *runnerFixture) claim() store.Claim {
	r.t.Helper()
	claims, err := r.opts.Store.Claim(r.t.Context(), "me", 2)
	r.must(err)
	if len(claims) != 1 {
		r.t.Fatalf("claimed %+v", claims)
	}
	return claims[0]
}

// due is how long the queue has nothing to do; -1: for ever.
func (r *runnerFixture) due() time.Duration {
	r.t.Helper()
	at, ok, err := r.opts.Store.NextDue(r.t.Context())
	r.must(err)
	if !ok {
		return -1
	}
	return at.Sub(r.clock.Now())
}

// TestRunClaim holds when a key runs again after each of the ways in which a run ends.
func TestRunClaim(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	w.must(w.opts.Store.Wake(t.Context(), key))
	for _, c := range []struct {
		name   string
		answer error
		again  time.Duration // -1: not by itself
		failed bool
	}{
		{"it is gone", &forge.Error{Op: "read", Kind: forge.ErrNotFound}, -1, false},
		{"it failed", &forge.Error{Op: "read", Kind: forge.ErrRetryable}, time.Second, true},
		{"it failed again", errors.New("no"), 2 * time.Second, true},
		{"and again", errors.New("no"), 4 * time.Second, true},
		{"the forge says when", &forge.Error{Op: "read", Kind: forge.ErrRateLimited, RetryAfter: w.clock.Now().Add(time.Hour)}, 0, true},
		{"what the forge says is over", &forge.Error{Op: "read", Kind: forge.ErrRateLimited, RetryAfter: w.clock.Now()}, 16 * time.Second, true},
		{"it ended", &forge.Error{Op: "read", Kind: forge.ErrNotFound}, -1, false},
		{"it moved", &forge.Error{Op: "read", Kind: forge.ErrConflict}, 0, false},
		{"it moved again", &forge.Error{Op: "read", Kind: forge.ErrConflict}, 100 * time.Millisecond, false},
		{"it panics", nil, 4 * time.Second, true},
		{"it ended", &forge.Error{Op: "read", Kind: forge.ErrNotFound}, -1, false},
	} {
		w.forge.answer = func(context.Context, int) error {
			if c.answer == nil {
				panic("no answer")
			}
			return c.answer
		}
		if c.name == "the forge says when" {
			c.again = forge.RetryAfter(c.answer).Sub(w.clock.Now())
			late := spread(key, c.again)
			if late <= 0 || late > c.again/10 {
				t.Errorf("it comes %s late", late)
			}
			c.again += late
		}
		w.runClaim(t.Context(), w.claim(), w.clock.Now())
		if got := w.due(); got != c.again {
			t.Errorf("%s: it runs again after %s, not %s", c.name, got, c.again)
		}
		failure, failed := w.FailingRuns()[key]
		if failed != c.failed || failed && !failure.RetryAt.Equal(w.clock.Now().Add(c.again)) || c.answer == nil && !strings.Contains(failure.Err, "panic while running "+key+": no answer") {
			t.Errorf("%s: it is told as %+v, %v", c.name, failure, failed)
		}
		w.clock.Step(max(c.again, 0))
		if c.again < 0 {
			w.must(w.opts.Store.Wake(t.Context(), key))
		}
	}
	if n := len(w.runs.kinds); n != 11 || w.runs.kinds[0] != "pr" || w.runs.kinds[1] != "pr failed" {
		t.Errorf("counted %q", w.runs.kinds)
	}
}

// TestUrgentWakePassesReserve has the forge's limits put off a key's call, while they allow more
// urgent ones. The key runs when a wake comes. A key of a forge that refuses all calls doesn't.
func TestUrgentWakePassesReserve(t *testing.T) {
	for _, onlyLower := range []bool{true, false} {
		t.Run(fmt.Sprint("only lower priorities wait: ", onlyLower), func(t *testing.T) {
			w := newRunnerFixture(t)
			key := wake.ForPull("hub:acme/fleet", 7).String()
			w.must(w.opts.Store.Wake(t.Context(), key))
			w.forge.answer = func(context.Context, int) error {
				return &forge.Error{Op: "comment", Kind: forge.ErrRateLimited, RetryAfter: w.clock.Now().Add(time.Hour), OnlyLower: onlyLower}
			}
			w.runClaim(t.Context(), w.claim(), w.clock.Now())
			w.must(w.opts.Store.WakeAs(t.Context(), store.Urgent, key))
			if got := w.due(); (got <= maxHoldOff) != onlyLower {
				t.Errorf("it runs after %s", got)
			}
		})
	}
}

// TestPriorityOfRuns holds how urgent the calls of each kind of run are.
func TestPriorityOfRuns(t *testing.T) {
	unit := wake.ForUnit(promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "main", Component: "api"}).String()
	for _, c := range []struct {
		claim store.Claim
		want  forge.Priority
	}{
		{store.Claim{Key: wake.ForMerge("hub:acme/fleet").String()}, forge.PriorityUrgent},
		{store.Claim{Key: wake.ForPull("hub:acme/fleet", 7).String()}, forge.PriorityUrgent},
		{store.Claim{Key: unit, Urgency: store.Urgent}, forge.PriorityUrgent},
		{store.Claim{Key: unit}, forge.PriorityNormal},
		{store.Claim{Key: wake.ForSweep("hub:acme/fleet").String(), Urgency: store.Background}, forge.PriorityBackground},
		{store.Claim{Key: wake.ForHook("hub:acme/fleet").String(), Urgency: store.Background}, forge.PriorityBackground},
	} {
		if got := priorityOf(c.claim); got != c.want {
			t.Errorf("%s: %d, not %d", c.claim.Key, got, c.want)
		}
	}
}

// TestFailureIsNotHurried holds that what wakes a key which failed doesn't run it at once,
// and that it waits no longer than a person would.
func TestFailureIsNotHurried(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	w.forge.answer = func(context.Context, int) error { return errors.New("no") }
	w.must(w.opts.Store.Wake(t.Context(), key))
	for fails := range 8 {
		w.runClaim(t.Context(), w.claim(), w.clock.Now())
		w.must(w.opts.Store.Wake(t.Context(), key))
		want := min(time.Second<<fails, maxHoldOff)
		if got := w.due(); got != want {
			t.Errorf("after %d failures it runs after %s, not %s", fails+1, got, want)
		}
		w.clock.Step(want)
	}
}

// TestUnknownKeysAreDropped holds that a key which nobody knows runs once.
func TestUnknownKeysAreDropped(t *testing.T) {
	w := newRunnerFixture(t)
	for _, key := range []string{"strange", wake.ForRepository("hub:acme/other").String()} {
		w.must(w.opts.Store.Wake(t.Context(), key))
		w.runClaim(t.Context(), w.claim(), w.clock.Now())
		if got := w.due(); got != -1 || len(w.FailingRuns()) != 0 {
			t.Errorf("%s runs again after %s: %v", key, got, w.FailingRuns())
		}
	}
	if w.runs.kinds[0] != "unknown" || w.runs.kinds[1] != "repo" {
		t.Errorf("counted %q", w.runs.kinds)
	}
}

// TestRunEndsWithItsLease holds that a run whose lease is lost is told so and writes
// nothing down, and that a renewed one goes on.
func TestRunEndsWithItsLease(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	begun, ended := make(chan struct{}), make(chan error, 1)
	w.forge.answer = func(ctx context.Context, _ int) error {
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}
	w.must(w.opts.Store.Wake(t.Context(), key))
	claim := w.claim()
	done := make(chan struct{})
	go func() { w.runClaim(t.Context(), claim, w.clock.Now()); close(done) }()
	<-begun
	w.stepWhenWatched(leaseRenewal) // renewed
	w.stepWhenWatched(0)
	select {
	case err := <-ended:
		t.Fatalf("it ended with %v", err)
	default:
	}
	w.must(w.opts.Store.Finish(t.Context(), "me", claim, store.Outcome{Next: w.clock.Now().Add(time.Hour)}))
	w.stepWhenWatched(leaseRenewal)
	if err := <-ended; !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), key) {
		t.Errorf("it ended with %v", err)
	}
	<-done
	if got := w.due(); got != time.Hour-leaseRenewal {
		t.Errorf("it is due after %s", got)
	}
}

// TestAStoppedRunGivesItsKeyBack holds that what a process was at when it was stopped is
// another one's at once.
func TestAStoppedRunGivesItsKeyBack(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	begun := make(chan struct{})
	w.forge.answer = func(ctx context.Context, _ int) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	w.must(w.opts.Store.Wake(t.Context(), key))
	claim := w.claim()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.runClaim(ctx, claim, w.clock.Now()); close(done) }()
	<-begun
	stop()
	<-done
	claims, err := w.opts.Store.Claim(t.Context(), "another", 2)
	if w.must(err); len(claims) != 1 || claims[0].Key != key || claims[0].Fails != 0 {
		t.Errorf("another process claims %+v", claims)
	}
}

// stepWhenWatched lets time pass once both who watch a run wait for it: who renews its lease, and who stops it
// at the lease's end.
func (r *runnerFixture) stepWhenWatched(d time.Duration) {
	r.t.Helper()
	for r.clock.Waiters() < 2 {
		runtime.Gosched()
	}
	r.clock.Step(d)
}

// stepWhenWaiting lets time pass once somebody waits for it.
func (r *runnerFixture) stepWhenWaiting(d time.Duration) {
	r.t.Helper()
	for !r.clock.HasWaiters() {
		runtime.Gosched()
	}
	r.clock.Step(d)
}

// TestRun holds that due keys run side by side up to the workers, what is woken
// meanwhile too, until the context ends.
func TestRun(t *testing.T) {
	w := newRunnerFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, release := make(chan int), make(chan struct{})
	w.forge.answer = func(_ context.Context, number int) error {
		began <- number
		<-release
		return &forge.Error{Op: "read", Kind: forge.ErrNotFound}
	}
	for number := range 3 {
		w.must(w.opts.Store.Wake(ctx, wake.ForPull("hub:acme/fleet", number+1).String()))
	}
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	ran := map[int]bool{<-began: true, <-began: true}
	select {
	case n := <-began:
		t.Errorf("#%d runs beside two others", n)
	default:
	}
	release <- struct{}{}
	ran[<-began] = true
	release <- struct{}{}
	release <- struct{}{}
	if len(ran) != 3 {
		t.Errorf("%v ran", ran)
	}
	w.must(w.opts.Store.Wake(ctx, wake.ForPull("hub:acme/fleet", 5).String())) // and what is woken meanwhile
	if n := <-began; n != 5 {
		t.Errorf("#%d runs instead of #5", n)
	}
	release <- struct{}{}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestStart holds that a fresh process looks at every repository, and sweeps.
func TestStart(t *testing.T) {
	w := newRunnerFixture(t)
	w.must(w.Start(t.Context()))
	claims, err := w.opts.Store.Claim(t.Context(), "me", 10)
	w.must(err)
	got := map[string]bool{}
	for _, c := range claims {
		got[c.Key] = true
	}
	if len(got) != 2 || !got[wake.ForRepository("hub:acme/fleet").String()] || !got[wake.ForSweep("hub:acme/fleet").String()] {
		t.Errorf("woke %v", got)
	}
}

// TestADatabaseThatHangs holds that a call of the queue's which is never answered, as the
// database's host is gone without a word, ends with the lease. Keys are claimed again then,
// finished runs are recorded, and a run ends where its lease can't be renewed.
func TestADatabaseThatHangs(t *testing.T) {
	for _, hanging := range []string{"claim", "finish", "renew"} {
		t.Run(hanging, func(t *testing.T) {
			w := newRunnerFixture(t)
			w.opts.Lease = 30 * time.Millisecond
			var hung atomic.Bool
			w.hangs = func(call string) bool { return call == hanging && hung.CompareAndSwap(false, true) }
			ended := make(chan error, 10)
			w.forge.answer = func(ctx context.Context, _ int) error {
				if hanging == "renew" {
					<-ctx.Done()
				}
				ended <- context.Cause(ctx)
				return &forge.Error{Op: "read", Kind: forge.ErrNotFound}
			}
			w.must(w.opts.Store.Wake(t.Context(), wake.ForPull("hub:acme/fleet", 7).String()))
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- w.Run(ctx) }()
			why, deadline := error(nil), time.After(time.Minute)
			for ran, written := false, false; !ran || !written; {
				select {
				case why = <-ended:
					ran = true
				case <-deadline:
					t.Fatalf("it hangs: %t, it ran: %t, %t", hung.Load(), ran, written)
				case <-time.After(time.Millisecond):
					w.clock.Step(10 * time.Millisecond)
				}
				w.runs.mu.Lock()
				written = len(w.runs.kinds) > 0 && w.claims.isIdle()
				w.runs.mu.Unlock()
			}
			if hanging == "renew" && !errors.Is(why, store.ErrLost) {
				t.Errorf("it ended with %v", why)
			}
			cancel()
			w.must(<-over)
		})
	}
}

// TestRunOutlastsAShortOutage holds that a run goes on where its lease can't be renewed for a
// moment. It stops while a third of the lease is left for calls that are under way.
func TestRunOutlastsAShortOutage(t *testing.T) {
	const lease = store.DefaultLease
	for name, c := range map[string]struct {
		asOf    time.Duration // how long before the run its key was claimed
		away    time.Duration // how long renewals fail
		wantEnd time.Duration // of the run, since it began; 0: it doesn't end
	}{
		"a moment":                    {away: 5 * time.Second},
		"to the end":                  {away: time.Hour, wantEnd: lease - leaseRenewal},
		"claimed long ago":            {asOf: leaseRenewal, away: time.Hour, wantEnd: lease - 2*leaseRenewal},
		"claimed long ago, and there": {asOf: leaseRenewal},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRunnerFixture(t)
			w.must(w.opts.Store.Wake(t.Context(), wake.ForPull("hub:acme/fleet", 7).String()))
			claim, start := w.claim(), w.clock.Now()
			w.intercept = func(call string) error {
				if since := w.clock.Since(start); call == "renew" && c.away > 0 && since >= leaseRenewal-c.asOf && since < leaseRenewal+c.away {
					return errors.New("away")
				}
				return nil
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan struct{})
			go func() { w.renewLease(ctx, cancel, claim, w.newLease(start.Add(-c.asOf))); close(done) }()
			for ctx.Err() == nil && w.clock.Since(start) < 2*lease {
				if w.clock.HasWaiters() {
					w.clock.Step(500 * time.Millisecond)
				}
				runtime.Gosched()
			}
			ended := time.Duration(0)
			if ctx.Err() != nil {
				ended = w.clock.Since(start)
			}
			if (ended == 0) != (c.wantEnd == 0) || ended > c.wantEnd {
				t.Errorf("it ended after %s: %v, want %s at the latest", ended, context.Cause(ctx), c.wantEnd)
			}
			cancel(nil)
			<-done
		})
	}
}

func (r *runningClaims) isIdle() bool { return len(r.list()) == 0 }

// TestStopWhileClaiming holds that what was claimed while the process was told to end is free for
// others at once.
func TestStopWhileClaiming(t *testing.T) {
	w := newRunnerFixture(t)
	key := wake.ForPull("hub:acme/fleet", 7).String()
	w.must(w.opts.Store.Wake(t.Context(), key))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.loseAnswer = func(call string) error {
		if call == "claim" {
			cancel()
			return context.Canceled
		}
		return nil
	}
	w.must(w.Run(ctx))
	w.loseAnswer = nil
	claims, err := w.opts.Store.Claim(t.Context(), "another", 2)
	w.must(err)
	if len(claims) != 1 || claims[0].Key != key {
		t.Errorf("another process claims %+v", claims)
	}
}
