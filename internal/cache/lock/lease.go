package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLeaseOver is that nothing may be changed any more: the lease of who wants to is over, and
// somebody else may be at it.
var ErrLeaseOver = errors.New("the lease is over, and another process may be at the same")

// Lease is until when its holder has something for itself. It ends by the clock that says so first.
// The monotonic one doesn't count the time in which a machine was suspended, and the wall's may be
// set back. It is safe for concurrent use.
type Lease struct {
	lasts time.Duration
	now   func() time.Time
	base  time.Time

	mu      sync.Mutex
	renewed moment
}

// moment is what both clocks said at once.
type moment struct {
	wall      time.Time
	monotonic time.Duration // since the lease was made
}

// since is how long a moment is after another, by the clock that says more.
func (m moment) since(earlier moment) time.Duration {
	return max(m.wall.Sub(earlier.wall), m.monotonic-earlier.monotonic)
}

// NewLease is a lease that lasts so long after asOf, by a clock. asOf is before the request: the
// grantor counts from later on.
func NewLease(lasts time.Duration, now func() time.Time, asOf time.Time) *Lease {
	l := &Lease{lasts: lasts, now: now, base: asOf}
	l.Renew(asOf)
	return l
}

func (l *Lease) momentOf(t time.Time) moment {
	return moment{wall: t.Round(0), monotonic: t.Sub(l.base)} // Round takes the monotonic clock's reading off
}

// Renew has the lease last from asOf on, which is before that was asked for.
func (l *Lease) Renew(asOf time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = l.momentOf(asOf)
}

// Left is how long the lease lasts from now on; not above 0: it is over.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lasts - l.momentOf(l.now()).since(l.renewed)
}

type leaseKey struct{}

// WithLease is a context for what is done under a lease.
func WithLease(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// CheckLease is ErrLeaseOver where what a context is for was to be done under a lease that is over.
// A caller that changes something that others see calls it right before: a process that was stopped
// in between knows it by nothing else.
func CheckLease(ctx context.Context) error {
	if l, _ := ctx.Value(leaseKey{}).(*Lease); l != nil && l.Left() <= 0 {
		return ErrLeaseOver
	}
	return nil
}
