package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// renewalsPerLease is how often within a lease a process renews those of the keys it
// runs.
const renewalsPerLease = 3

// newLease is the lease of a run whose key was claimed at asOf or later, by the process's own
// clock. It is over earlier than the store's by the time between two renewals. Calls that were sent
// to the forge by then have that long to arrive, before another process runs the key.
func (co *Controller) newLease(asOf time.Time) *lock.Lease {
	return lock.NewLease(co.opts.Lease-co.opts.Lease/renewalsPerLease, co.opts.Store.OwnTime, asOf)
}

// Run claims keys and runs them until the context ends, then waits for the runs
// that have begun.
func (co *Controller) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer co.freeClaims(ctx) // one whose answer didn't come before the end is run by nobody
	defer wg.Wait()
	wg.Go(func() { co.storeWakes(ctx) })
	slots := make(chan struct{}, co.opts.Workers)
	done := make(chan struct{}, 1)
	before := 0
	for {
		free := co.opts.Workers - len(slots)
		asOf := co.opts.Store.OwnTime()
		var claims []store.Claim
		if free > 0 {
			var err error
			claiming, stop := co.withinLease(ctx)
			claims, err = co.claimKeys(claiming, free, before)
			stop()
			if err != nil && ctx.Err() == nil {
				co.opts.Log.Error("the queue can't be read; trying again", zap.Error(err))
				if !co.sleepFor(ctx, minRetryDelay) {
					return nil
				}
				continue
			}
		}
		before += len(claims)
		for _, c := range claims {
			slots <- struct{}{}
			leave := sync.OnceFunc(func() {
				<-slots
				select {
				case done <- struct{}{}:
				default:
				}
			})
			wg.Go(func() {
				defer leave()
				defer co.watchRun(ctx, c.Key, leave)()
				co.runClaim(ctx, c, asOf)
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
		if !co.waitForWork(ctx, done) {
			return nil
		}
	}
}

// withinLease bounds how long a call of the queue's may take. Claimed keys have ended by then, and
// where the database's host is gone without a word nothing else ends it for a long time.
func (co *Controller) withinLease(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, co.opts.Lease)
}

// Step records the changes from Argo CD, claims at most one key that is due and runs it to its end;
// ran is false when none was due. It is Run for who moves time and processes by hand: nobody renews
// the claim's lease meanwhile.
func (co *Controller) Step(ctx context.Context) (ran bool, err error) {
	select {
	case <-co.pending.notified:
		if !co.storePending(ctx, co.wakePending) {
			co.pending.notify()
		}
	default:
	}
	asOf := co.opts.Store.OwnTime()
	claims, err := co.claimKeys(ctx, 1, co.stepped)
	if err != nil || len(claims) == 0 {
		return false, err
	}
	co.stepped++
	co.runLeased(ctx, claims[0], co.newLease(asOf), func(context.Context, context.CancelCauseFunc) {})
	return true, nil
}

// HasPendingWakes says that a Step has something to write down that came from Argo CD, whether
// or not a key is due.
func (co *Controller) HasPendingWakes() bool { return !co.pending.isEmpty() }

// waitForWork sleeps until something may be due, a run has ended, or the context has.
func (co *Controller) waitForWork(ctx context.Context, done <-chan struct{}) bool {
	looking, stop := co.withinLease(ctx)
	next, ok, err := co.opts.Store.NextDue(looking)
	stop()
	if err != nil && ctx.Err() == nil {
		co.opts.Log.Error("the queue can't be read; trying again", zap.Error(err))
		next, ok = co.opts.Clock.Now().Add(minRetryDelay), true
	}
	var timer <-chan time.Time
	if ok {
		t := co.opts.Clock.NewTimer(max(next.Sub(co.opts.Clock.Now()), 0))
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-co.opts.Store.Wakeups():
	case <-done:
	case <-timer:
	}
	return true
}

func (co *Controller) sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-co.opts.Clock.After(d):
		return true
	}
}

// runClaim runs one key, renewing its lease, and writes down how it ended. It was claimed at asOf or
// later.
func (co *Controller) runClaim(ctx context.Context, c store.Claim, asOf time.Time) {
	lease := co.newLease(asOf)
	co.runLeased(ctx, c, lease, func(run context.Context, cancel context.CancelCauseFunc) {
		go co.stopAtEnd(run, cancel, c, lease)
		co.renewLease(run, cancel, c, lease)
	})
}

// runLeased runs one claimed key while keepLease, if any, keeps its lease. Once the lease is over
// the run changes nothing at a forge and pushes nothing. Once another process has claimed the key,
// none of the run's findings is stored any more.
func (co *Controller) runLeased(ctx context.Context, c store.Claim, lease *lock.Lease,
	keepLease func(context.Context, context.CancelCauseFunc)) {
	defer co.claims.end(c)
	run, cancel := context.WithCancelCause(lock.WithLease(store.WithClaim(ctx, co.opts.Owner, c), lease))
	defer cancel(nil)
	go keepLease(run, cancel)
	began := co.opts.Clock.Now()
	urgent, urgency := withUrgency(forge.WithPriority(run, priorityOf(c)), c.Urgency)
	next, err := co.runKeySafely(urgent, c.Key)
	if err != nil && run.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w (%w)", context.Cause(run), err)
	}
	kind := "unknown"
	if k, ok := wake.Parse(c.Key); ok {
		kind = string(k.Kind)
	}
	isPutOff := errors.Is(err, errPutOff)
	if co.opts.Metrics != nil && !isPutOff {
		co.opts.Metrics.Run(kind, co.opts.Clock.Now().Sub(began), err)
	}
	out := store.Outcome{Next: next}
	switch {
	case ctx.Err() != nil:
		co.giveBack(ctx, c, urgency.pressing.Load())
		return
	case isPutOff:
		out.PutOff = true
	case err == nil:
		co.failures.record(c.Key, nil, time.Time{})
	case isStale(err):
		co.opts.Log.Debug("looking again", zap.String("key", c.Key), zap.Error(err))
		out.Next = co.opts.Clock.Now().Add(staleDelay(c.Fails))
		out.Failed = true
	default:
		out.Failed = true
		out.Next, out.NotBefore = retryTimes(co.opts.Clock.Now(), c, next, err)
		co.failures.record(c.Key, err, out.Next)
		level := zap.WarnLevel
		if errors.Is(err, forge.ErrRateLimited) {
			level = zap.DebugLevel // said once for all keys, where the forge's limit is met
		}
		co.opts.Log.Log(level, "a run failed and is tried again", zap.String("key", c.Key), zap.Int("failed before", c.Fails),
			zap.Time("again", out.Next), zap.Error(err))
	}
	isPressing := urgency.pressing.Load() || c.Urgency == store.Urgent && (out.Failed || out.PutOff)
	out.Urgency = urgencyAfter(c, isPressing, co.opts.Clock.Now(), out.Next)
	finish := func() error {
		finishing, stop := co.withinLease(context.WithoutCancel(ctx))
		defer stop()
		return co.opts.Store.Finish(finishing, co.opts.Owner, c, out)
	}
	for err := finish(); err != nil && !errors.Is(err, store.ErrLost); err = finish() {
		co.opts.Log.Error("how a run ended could not be written down; trying again", zap.String("key", c.Key), zap.Error(err))
		if !co.sleepFor(ctx, minRetryDelay) {
			return
		}
	}
}

// releaseTimeout bounds how long a process that ends waits for the store.
const releaseTimeout = 5 * time.Second

// freeClaims gives back what a process that ends may still hold without knowing it. Where that
// fails, the leases end by themselves.
func (co *Controller) freeClaims(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if _, err := co.opts.Store.FreeClaims(ctx, co.opts.Owner, nil); err != nil {
		co.opts.Log.Warn("keys could not be given back; they come free by themselves", zap.Error(err))
	}
}

// giveBack gives back a key whose run ended with the process, for another process to take
// up at once. Where that fails, the lease ends by itself.
func (co *Controller) giveBack(ctx context.Context, c store.Claim, isPressing bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	now := co.opts.Clock.Now()
	err := co.opts.Store.Finish(ctx, co.opts.Owner, c, store.Outcome{Next: now, Urgency: urgencyAfter(c, isPressing, now, now)})
	if err != nil && !errors.Is(err, store.ErrLost) {
		co.opts.Log.Warn("a key could not be given back; it comes free by itself", zap.String("key", c.Key), zap.Error(err))
	}
}

// staleDelay lets the world come to rest when it keeps moving under a key.
func staleDelay(fails int) time.Duration {
	if fails == 0 {
		return 0
	}
	return min(50*time.Millisecond<<min(fails, 10), maxRetryDelay)
}

// runKeySafely turns a panic into an error: one unit's bad luck is not everybody's.
func (co *Controller) runKeySafely(ctx context.Context, key string) (next time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while running %s: %v\n%s", key, p, debug.Stack())
		}
	}()
	return co.runKey(ctx, key)
}

// stopAtEnd stops a run when its lease is over, whatever the store is asked meanwhile.
func (co *Controller) stopAtEnd(ctx context.Context, cancel context.CancelCauseFunc, c store.Claim, lease *lock.Lease) {
	for left := lease.Left(); left > 0; left = lease.Left() {
		timer := co.opts.Clock.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
	cancel(lostLease(c, lock.ErrLeaseOver))
}

func lostLease(c store.Claim, err error) error {
	return fmt.Errorf("the lease of %s was lost: %w", c.Key, errors.Join(err, store.ErrLost))
}

// renewLease keeps the lease while the run goes on. When it is lost, can't be renewed before it
// ends, or the run has gone on for too long, the run stops.
func (co *Controller) renewLease(ctx context.Context, cancel context.CancelCauseFunc, c store.Claim, lease *lock.Lease) {
	began := co.opts.Clock.Now()
	every := co.opts.Lease / renewalsPerLease
	for wait := lease.Left() - every; co.sleepFor(ctx, wait); {
		now := co.opts.Clock.Now()
		if now.Sub(began) >= runTimeout {
			cancel(fmt.Errorf("it was at it for more than %s, in which something didn't answer", runTimeout))
			return
		}
		// The next renewal would come when this one is over: past the lease, where the database hangs.
		asOf := co.opts.Store.OwnTime()
		renewing, stop := context.WithTimeout(ctx, every)
		lost, err := co.opts.Store.Renew(renewing, co.opts.Owner, []string{c.Key})
		stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil && len(lost) == 0 {
			lease.Renew(asOf)
			wait = every
			continue
		}
		// A database that is away for a moment is no reason to leave half done what has begun.
		wait = min(every/4, minRetryDelay)
		if err != nil && wait < lease.Left() {
			continue
		}
		cancel(lostLease(c, err))
		return
	}
}
