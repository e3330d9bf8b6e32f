package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/liftlock/liftlock/internal/forge"
)

const (
	// maxInFlight is how many calls are under way at once; GitHub allows 100, of all that
	// use the account. urgentPlaces of them are kept for urgent calls.
	maxInFlight  = 10
	urgentPlaces = 2

	// firstWait is how long nothing is called after a refusal that names no time: "wait for
	// at least one minute" (GitHub, "Rate limits for the REST API"). It doubles up to
	// maxWait while the refusals come within repeatedWithin of each other.
	firstWait      = time.Minute
	maxWait        = 15 * time.Minute
	repeatedWithin = time.Hour

	// maxRetryAfter bounds what a forge can ask for: limits begin anew within the hour.
	maxRetryAfter = 24 * time.Hour
)

// Limit is a published limit of calls that the forge's answers say nothing of. Three quarters of it
// are used at a steady pace, and an eighth at once. The last eighth is for urgent calls alone, so
// that the limit holds in every stretch of time of that length.
type Limit struct {
	Name  string        // what is limited, for people: "content"
	Calls int           // how many calls, or points, there may be
	Every time.Duration // in how long a time
	// Cost is what a call takes of it, by its endpoint ("POST pulls"): 0, nothing. It is
	// called concurrently.
	Cost func(endpoint string) int
}

// RefusedError is a call that was not made, because the forge's limits don't allow it yet.
type RefusedError struct {
	Until time.Time // when to try again
	Why   string    // for people
	// Others says that calls of a higher priority, or of another kind, may be made before Until.
	Others bool
}

// Error says why the call wasn't made, and until when it won't be.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("not called before %s: %s", r.Until.UTC().Format(time.RFC3339), r.Why)
}

// refusedCall is the forge's error where err is of a call that was not made; nil where it
// isn't.
func refusedCall(op string, err error) *forge.Error {
	var r *RefusedError
	if !errors.As(err, &r) {
		return nil
	}
	return &forge.Error{Op: op, Kind: forge.ErrRateLimited, Message: r.Error(), RetryAfter: r.Until, OnlyLower: r.Others, Err: err}
}

// Budget is what one identity may call at one forge, by however many clients. It may be
// used concurrently.
type Budget struct {
	now       func() time.Time
	paces     []*callLimiter
	onLimited func(until time.Time, endpoint string)
	// isOfEndpoint says that a refusal is about calls of its endpoint alone; nil: none is.
	isOfEndpoint func(resp *http.Response, body []byte) bool
	places       chan struct{} // a token for each call under way
	lower        chan struct{} // as well, for each that isn't urgent

	identity string         // as exchange knows it
	exchange forge.Exchange // with other processes; nil: there are none

	mu          sync.Mutex
	inFlight    int
	exchangedAt time.Time

	closedUntil time.Time            // nothing is called before
	closed      map[string]time.Time // an endpoint isn't called before
	limitedAt   time.Time            // when the forge last refused
	repeated    int                  // how often it did, each within the hour after the one before

	limit, remaining int // as the last answer said, less what is under way
	reset            time.Time
}

// NewBudget makes one. now is the clock and limits are the forge's published ones. onLimited is
// told when the forge refuses a call for the number of them, once for all those that were under
// way. It is told until when no call is made, or none of that endpoint alone. It must not call back
// and may be nil.
func NewBudget(now func() time.Time, limits []Limit, onLimited func(until time.Time, endpoint string)) *Budget {
	b := &Budget{now: now, closed: map[string]time.Time{}, onLimited: onLimited, places: make(chan struct{}, maxInFlight),
		lower: make(chan struct{}, maxInFlight-urgentPlaces)}
	for _, l := range limits {
		b.paces = append(b.paces, newLimiter(l))
	}
	return b
}

// begin takes a call out of the budget, or says why it can't be made now. It waits for a place
// only. end is called with the answer when the call is over, nil where there was none. It gives
// when to try again a call that was refused for the number of calls; zero where it wasn't.
func (b *Budget) begin(ctx context.Context, endpoint string) (end func(*http.Response, []byte) time.Time, err error) {
	p := forge.PriorityOf(ctx)
	release, err := b.takePlace(ctx, p)
	if err != nil {
		return nil, err
	}
	b.exchangeIfDue(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if err := b.check(now, p, endpoint); err != nil {
		release()
		return nil, err
	}
	for _, pc := range b.paces {
		pc.take(now, endpoint)
	}
	b.inFlight++
	b.remaining--
	return func(resp *http.Response, body []byte) time.Time {
		defer release()
		until := b.end(now, endpoint, resp, body)
		if !until.IsZero() && b.exchange != nil {
			// This process may call nothing for long: the others are told now.
			b.exchangeNow(context.WithoutCancel(ctx))
		}
		return until
	}, nil
}

// takePlace waits for one of the places of calls under way.
func (b *Budget) takePlace(ctx context.Context, p forge.Priority) (release func(), err error) {
	queues := []chan struct{}{b.places}
	if p != forge.PriorityUrgent {
		queues = []chan struct{}{b.lower, b.places}
	}
	for i, q := range queues {
		select {
		case q <- struct{}{}:
		case <-ctx.Done():
			for _, q := range queues[:i] {
				<-q
			}
			return nil, ctx.Err()
		}
	}
	return func() {
		for _, q := range queues {
			<-q
		}
	}, nil
}

// reserve is the share of what the forge allows, in percent, that is left to calls of higher
// priorities.
func reserve(p forge.Priority) int {
	switch p {
	case forge.PriorityUrgent:
		return 0
	case forge.PriorityComment:
		return 15
	case forge.PriorityBackground:
		return 30
	default:
		return 5
	}
}

// MayCall says why a call of an endpoint can't be made now, in the error that a driver gives of the
// call itself (ErrRateLimited). nil means that it can, as far as is known. It makes no call, and
// takes nothing out of the budget; a caller that may not call is given a turn.
func (b *Budget) MayCall(ctx context.Context, op, endpoint string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.check(b.now(), forge.PriorityOf(ctx), endpoint); err != nil {
		return refusedCall(op, err)
	}
	return nil
}

// check says why a call can't be made now. Callers hold mu.
func (b *Budget) check(now time.Time, p forge.Priority, endpoint string) error {
	// Less urgent calls come back later, so that merges aren't behind comments again. Calls that
	// are spread over a tenth of the wait have come by then.
	if until := b.closedUntil.Add(b.closedUntil.Sub(b.limitedAt) * time.Duration(2*reserve(p)) / 100); now.Before(until) {
		return &RefusedError{Until: until, Why: "the forge has refused a call for too many of them", Others: p != forge.PriorityUrgent}
	}
	if now.Before(b.reset) && (b.remaining <= 0 || b.remaining*100 < reserve(p)*b.limit) {
		return &RefusedError{Until: b.reset, Why: fmt.Sprintf("of %d calls %d are left, for what is more urgent", b.limit,
			max(b.remaining, 0)), Others: b.remaining > 0}
	}
	if until := b.closed[endpoint]; now.Before(until) {
		return &RefusedError{Until: until, Why: fmt.Sprintf("the forge has refused a call of %s for too many of them", endpoint),
			Others: true}
	}
	// Among several limits the one with the longest wait says until when: a caller that came back
	// at another one's turn would be refused by this one then.
	var refused *RefusedError
	for _, pc := range b.paces {
		if until := pc.blocked(now, p, endpoint); !until.IsZero() && (refused == nil || until.After(refused.Until)) {
			refused = &RefusedError{Until: until, Why: fmt.Sprintf("the forge allows %d of %s in %s", pc.Calls, pc.Name, pc.Every),
				Others: p != forge.PriorityUrgent}
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}

// end takes note of an answer to a call of an endpoint that began at a time. until is when calls, or
// those of the endpoint, may be made again, where it was refused for the number of them; zero where
// it wasn't.
func (b *Budget) end(began time.Time, endpoint string, resp *http.Response, body []byte) (until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	if resp == nil {
		return time.Time{}
	}
	now := b.now()
	offset := clockOffset(resp.Header, now)
	b.readRemaining(resp.Header, offset)
	if !isLimited(resp, body) {
		return time.Time{}
	}
	until = parseRetryTime(resp.Header, now, offset)
	if b.isOfEndpoint != nil && b.isOfEndpoint(resp, body) {
		return b.closeEndpoint(endpoint, now, until)
	}
	if !began.After(b.limitedAt) {
		// It was under way when the forge refused another: the same refusal.
		if until.After(b.closedUntil) {
			b.closedUntil = until
		}
		return b.closedUntil
	}
	if b.limitedAt.IsZero() || now.Sub(b.limitedAt) >= repeatedWithin {
		b.repeated = 0
	} else {
		b.repeated++
	}
	if wait := min(firstWait<<min(b.repeated, 10), maxWait); until.IsZero() || b.repeated > 0 && now.Add(wait).After(until) {
		until = now.Add(wait)
	}
	b.limitedAt, b.closedUntil = now, until
	if b.onLimited != nil {
		b.onLimited(until, "")
	}
	return until
}

// closeEndpoint keeps calls of an endpoint back until a time, or where that isn't known for a
// while, which it gives; everything else goes on.
func (b *Budget) closeEndpoint(endpoint string, now, until time.Time) time.Time {
	if !until.After(now) {
		until = now.Add(firstWait)
	}
	isNew := !now.Before(b.closed[endpoint])
	b.closed[endpoint] = until
	if isNew && b.onLimited != nil {
		b.onLimited(until, endpoint)
	}
	return until
}

// readRemaining reads how many calls are left of the limit that all calls of the account
// share; others' answers (GitHub's search, GitLab's single calls) say nothing of it.
func (b *Budget) readRemaining(h http.Header, offset time.Duration) {
	for _, names := range [][4]string{
		{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Resource"},
		{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Name"},
	} {
		switch h.Get(names[3]) {
		case "", "core", "throttle_authenticated_api":
		default:
			continue
		}
		limit, err1 := strconv.Atoi(h.Get(names[0]))
		left, err2 := strconv.Atoi(h.Get(names[1]))
		reset, err3 := strconv.ParseInt(h.Get(names[2]), 10, 64)
		if err1 != nil || err2 != nil || err3 != nil {
			continue
		}
		if limit <= 0 || limit > 1e9 || left < 0 || left > limit {
			continue
		}
		at := time.Unix(reset, 0).Add(-offset)
		if at.Sub(b.now()) > maxRetryAfter {
			continue
		}
		b.limit, b.remaining, b.reset = limit, left-b.inFlight, at
	}
}

// clockOffset is how far the forge's clock is ahead of ours, or up to a second less; 0 where
// it doesn't say its time.
func clockOffset(h http.Header, now time.Time) time.Duration {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return at.Sub(now)
}

// isLimited says that an answer refuses a call for the number of them.
func isLimited(resp *http.Response, body []byte) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden: // GitHub, which doesn't always send the headers
		return resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0" ||
			// in the address of its documentation
			bytes.Contains(bytes.ToLower(body), []byte("rate limit")) || bytes.Contains(body, []byte("secondary-rate-limits"))
	}
	return false
}

// parseRetryTime is when a refused call may be made again, by our clock. It is Retry-After, in
// seconds or as a date, or where no calls are left the time when the limit begins anew. It is zero
// where the answer doesn't say.
func parseRetryTime(h http.Header, now time.Time, offset time.Duration) time.Time {
	until := time.Time{}
	after := h.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil && s >= 0 {
		until = now.Add(time.Duration(min(s, int(maxRetryAfter/time.Second))) * time.Second)
	} else if at, err := http.ParseTime(after); err == nil {
		until = at.Add(-offset)
	} else if h.Get("X-RateLimit-Remaining") == "0" || h.Get("RateLimit-Remaining") == "0" {
		for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
			if s, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil {
				until = time.Unix(s, 0).Add(-offset)
			}
		}
	}
	if most := now.Add(maxRetryAfter); until.After(most) {
		return most
	}
	return until
}

// callLimiter keeps the calls to a limit. The budget's lock guards it.
type callLimiter struct {
	Limit
	limiter  *rate.Limiter
	among    int       // how many processes share it
	urgent   float64   // how far urgent calls may overdraw it
	lastTurn time.Time // the last turn that was given to a call that has to wait
	lastWord time.Time // the same of calls that nothing but people's reading waits for
}

// A turn is given so far ahead at most: what asked for those before may have gone another way
// since. It is further than the limit's own time, so that hundreds who wait don't each ask again in
// every minute.
const (
	turnsAhead   = 10 // times Limit.Every
	maxTurnAhead = 15 * time.Minute
)

func newLimiter(l Limit) *callLimiter {
	p := &callLimiter{Limit: l, among: 1}
	perSecond, burst := p.part()
	p.limiter, p.urgent = rate.NewLimiter(perSecond, burst), float64(l.Calls/8)
	return p
}

// part is a process's part of the limit.
func (c *callLimiter) part() (perSecond rate.Limit, burst int) {
	return rate.Limit(float64(c.Calls) * 3 / 4 / c.Every.Seconds() / float64(c.among)), max(c.Calls/8/c.among, 1)
}

// shareAmong leaves this process its part of the limit.
func (c *callLimiter) shareAmong(now time.Time, processes int) {
	if c.among == processes {
		return
	}
	c.among = processes
	perSecond, burst := c.part()
	c.limiter.SetLimitAt(now, perSecond)
	c.limiter.SetBurstAt(now, burst)
	c.urgent = float64(c.Calls / 8 / processes)
}

// blocked is when to try a call again that can't be made now; zero where it can. Waiting calls get
// turns one after the other, so that not all come at once.
func (c *callLimiter) blocked(now time.Time, priority forge.Priority, endpoint string) time.Time {
	cost, left := float64(c.Cost(endpoint)), c.limiter.TokensAt(now)
	if priority == forge.PriorityUrgent {
		left += c.urgent
	}
	if cost == 0 || left >= cost {
		return time.Time{}
	}
	perSecond := float64(c.limiter.Limit())
	first := now.Add(seconds((cost - left) / perSecond))
	if priority == forge.PriorityUrgent {
		return first
	}
	last, most := &c.lastTurn, max(c.Every, min(turnsAhead*c.Every, maxTurnAhead))
	if priority == forge.PriorityComment || priority == forge.PriorityBackground {
		if c.lastWord.Before(c.lastTurn) {
			c.lastWord = c.lastTurn
		}
		last = &c.lastWord
	}
	next := last.Add(seconds(cost / perSecond))
	if next.Before(first) || next.After(now.Add(most)) {
		next = first
	}
	*last = next
	return next
}

// take takes a call's cost; below nothing it leaves the others the longer to wait.
func (c *callLimiter) take(now time.Time, endpoint string) {
	for range c.Cost(endpoint) {
		c.limiter.ReserveN(now, 1)
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(s*float64(time.Second)) + time.Millisecond
}
