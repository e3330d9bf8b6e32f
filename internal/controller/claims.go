package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// runningClaims are the keys that this process runs.
type runningClaims struct {
	// unanswered is that a claim failed: the store may have this process own keys that it knows
	// nothing of. Only who claims looks at it.
	unanswered bool

	mu   sync.Mutex
	keys map[string]int64 // each with the number of its claim
}

func newRunningClaims() *runningClaims { return &runningClaims{keys: map[string]int64{}} }

func (r *runningClaims) begin(claims []store.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range claims {
		r.keys[c.Key] = c.Gen
	}
}

// end notes that a run is over, unless its key was claimed again meanwhile.
func (r *runningClaims) end(c store.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys[c.Key] == c.Gen {
		delete(r.keys, c.Key)
	}
}

func (r *runningClaims) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.keys))
}

// oldestEvery is how many claims there are to one that takes the key that has waited longest,
// however little urgent: none waits for ever.
const oldestEvery = 8

// claimKeys claims at most n keys, the most urgent first; before is how many it claimed before.
// Keys that a failed claim may have claimed all the same are free again before the next one.
func (co *Controller) claimKeys(ctx context.Context, n, before int) ([]store.Claim, error) {
	if co.claims.unanswered {
		freed, err := co.opts.Store.FreeClaims(ctx, co.opts.Owner, co.claims.list())
		if err != nil {
			return nil, err
		}
		co.claims.unanswered = false
		if freed > 0 {
			co.opts.Log.Info("keys whose claim was never answered are free again", zap.Int("keys", freed))
		}
	}
	oldest := (before+n)/oldestEvery - before/oldestEvery
	claims, err := co.opts.Store.Claim(ctx, co.opts.Owner, n-oldest)
	if err == nil && oldest > 0 {
		var more []store.Claim
		more, err = co.opts.Store.ClaimOldest(ctx, co.opts.Owner, n-len(claims))
		claims = append(claims, more...)
	}
	co.claims.begin(claims)
	if err != nil {
		co.claims.unanswered = true
	}
	if len(claims) > 0 {
		return claims, nil // the others are claimed with the next
	}
	return nil, err
}

const (
	// urgentFor is how far ahead a key with something pressing may want to run again and is urgent
	// then. That is a degradation that has to last for a while, a revert's next step, or urgent
	// work that is still to be done.
	urgentFor = 5 * time.Minute
	// urgentStep is likewise for a key that ran urgently: the next step of a command or a merge. A
	// step further ahead waits for the world.
	urgentStep = 10 * time.Second
)

// urgencyAfter is how urgent the next run of a key is that wants one by itself. It doesn't depend
// on the last wake where the key has something pressing.
func urgencyAfter(c store.Claim, isPressing bool, now, next time.Time) store.Urgency {
	k, _ := wake.Parse(c.Key)
	switch {
	case k.Kind == wake.Sweep, k.Kind == wake.Hook:
		return store.Background
	case c.Urgency == store.Urgent && next.Sub(now) <= urgentStep, isPressing && next.Sub(now) <= urgentFor:
		return store.Urgent
	}
	return store.Normal
}

// runUrgency is how urgent a run is, and whether it found something pressing.
type runUrgency struct {
	of       store.Urgency
	pressing atomic.Bool
}

type runUrgencyKey struct{}

// withUrgency says how urgent the run of a key is.
func withUrgency(ctx context.Context, u store.Urgency) (context.Context, *runUrgency) {
	r := &runUrgency{of: u}
	return context.WithValue(ctx, runUrgencyKey{}, r), r
}

// urgencyOf is how urgent the run is that a context is of; Normal where it is of none.
func urgencyOf(ctx context.Context) store.Urgency {
	if r, _ := ctx.Value(runUrgencyKey{}).(*runUrgency); r != nil {
		return r.of
	}
	return store.Normal
}

// setPressing says that what the run that a context is of has found must not wait for others: where it
// wants to run again soon, that is urgent.
func setPressing(ctx context.Context) {
	if r, _ := ctx.Value(runUrgencyKey{}).(*runUrgency); r != nil {
		r.pressing.Store(true)
	}
}

// priorityOf is how soon the calls of a key's run are wanted, where what they are for doesn't
// say otherwise. Pull requests' own runs are where commands are executed.
func priorityOf(c store.Claim) forge.Priority {
	k, _ := wake.Parse(c.Key)
	switch {
	case k.Kind == wake.Sweep, k.Kind == wake.Hook:
		return forge.PriorityBackground
	case c.Urgency == store.Urgent, k.Kind == wake.Merge, k.Kind == wake.PullRequest:
		return forge.PriorityUrgent
	}
	return forge.PriorityNormal
}
