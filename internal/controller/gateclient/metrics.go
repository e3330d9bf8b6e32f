package gateclient

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/policies"
)

const (
	// callsPerSecond and maxAtOnce are a server's budget.
	callsPerSecond = 5
	maxAtOnce      = maxConnections
	// firstDelay is for how long a server that isn't well is left alone, which doubles up
	// to maxDelay; a refusal of one query only is asked again after its own interval.
	firstDelay = 5 * time.Second
	maxDelay   = 5 * time.Minute
	// busyDelay is about when to come again where a budget is used up.
	busyDelay = 2 * time.Second
	// maxRemembered is how many queries' last answers are remembered.
	maxRemembered = 2000
)

// Metrics asks Prometheus servers by their names. It may be used concurrently.
type Metrics struct {
	now     func() time.Time
	servers map[string]*metricServer
	answers *cache.Cache[string, metricAnswer]
	flights singleflight.Group
}

type metricServer struct {
	client  *promClient
	limiter *rate.Limiter
	places  chan struct{} // a token for each call under way

	mu       sync.Mutex
	failures int
	failed   string    // why it is left alone
	until    time.Time // when it may be asked again
}

// metricAnswer is what a query was answered last.
type metricAnswer struct {
	sample policies.MetricSample
	err    error
	at     time.Time
	again  time.Time // of an error, or of none: when to ask again
}

// NewMetrics makes it. The error names the server that can't be used; it doesn't dial.
func NewMetrics(servers []Prometheus, now func() time.Time, group *cache.Group) (*Metrics, error) {
	m := &Metrics{now: now, servers: map[string]*metricServer{}, answers: cache.New(group, cache.Options[string, metricAnswer]{Name: "metric_answers", Entries: maxRemembered})}
	for _, o := range servers {
		c, err := newPromClient(o, now)
		if err != nil {
			return nil, fmt.Errorf("the Prometheus %s: %w", o.Name, err)
		}
		m.servers[o.Name] = &metricServer{client: c, limiter: rate.NewLimiter(callsPerSecond, callsPerSecond), places: make(chan struct{}, maxAtOnce)}
	}
	return m, nil
}

// Sample gives the value of a query that is asked every so often, not older than maxAge:
// what another unit was just answered is good for this one too. Where the server's budget
// is used up the sample has no time and there is no error. Then, and on an error, again is
// when to try again at the earliest; zero: not by itself, because the server's file has no
// such server.
func (m *Metrics) Sample(ctx context.Context, server, query string, every, maxAge time.Duration) (sample policies.MetricSample, again time.Time, err error) {
	s := m.servers[server]
	if s == nil {
		return sample, time.Time{}, errors.New("the server's file has no such name under prometheus")
	}
	key := server + "\x00" + query
	now := m.now()
	if a, ok := m.answers.Get(key); ok {
		if a.err != nil && now.Before(a.again) {
			return sample, a.again, a.err
		}
		if a.err == nil && now.Sub(a.at) <= maxAge {
			return a.sample, time.Time{}, nil
		}
	}
	if until, err := s.isAway(now); err != nil {
		return sample, until.Add(jitter(key, busyDelay)), err
	}
	answered := m.flights.DoChan(key, func() (any, error) {
		// Whoever came first may give up; the others wait for the same answer.
		a := s.query(context.WithoutCancel(ctx), query, m.now, every)
		if a.err != nil || !a.sample.At.IsZero() {
			m.answers.Put(key, a)
		} else {
			a.again = a.again.Add(jitter(key, busyDelay))
		}
		return a, nil
	})
	select {
	case r := <-answered:
		a := r.Val.(metricAnswer)
		return a.sample, a.again, a.err
	case <-ctx.Done():
		return sample, now, ctx.Err()
	}
}

// isAway says why a server is left alone, and until when; nil: it isn't.
func (s *metricServer) isAway(now time.Time) (until time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.until) {
		return s.until, errors.New(s.failed)
	}
	return time.Time{}, nil
}

// query asks once, within the server's budget.
func (s *metricServer) query(ctx context.Context, query string, clock func() time.Time, every time.Duration) metricAnswer {
	now := clock()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return metricAnswer{at: now, again: now.Add(busyDelay)}
	}
	if !s.limiter.AllowN(now, 1) {
		return metricAnswer{at: now, again: now.Add(busyDelay)}
	}
	sample, err := s.client.query(ctx, query, now)
	a := metricAnswer{sample: sample, err: err, at: now}
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed *callError
	switch errors.As(err, &failed); {
	case err == nil:
		s.failures, s.until = 0, time.Time{}
	case failed != nil && failed.away:
		s.failures++
		a.again = clock().Add(max(retryDelay(s.failures), failed.after))
		s.failed, s.until = failed.text, a.again
	default:
		a.again = now.Add(every)
	}
	return a
}

// retryDelay is how long to wait after so many failures in a row.
func retryDelay(failures int) time.Duration {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstDelay), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(maxDelay), backoff.WithMaxElapsedTime(0))
	d := b.NextBackOff()
	for range min(failures, 10) - 1 {
		d = b.NextBackOff()
	}
	return d
}

// jitter spreads those who wait for the same: the same for the same key.
func jitter(key string, within time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return time.Duration(h.Sum64() % uint64(within))
}
