package gateclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/policies"
)

// maxRemembered is how many queries' last answers are remembered.
const maxRemembered = 2000

// Metrics asks Prometheus servers by their names. It may be used concurrently.
type Metrics struct {
	OnCall func(Call) // is told every call that was made; set before the first one; nil: nobody is

	now     func() time.Time
	servers map[string]*metricServer
	answers *cache.Cache[string, metricAnswer]
	flights singleflight.Group
}

type metricServer struct {
	client *promClient
	*budget
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
	m := &Metrics{now: now, servers: map[string]*metricServer{},
		answers: cache.New(group, cache.Options[string, metricAnswer]{Name: "metric_answers", Entries: maxRemembered})}
	for _, o := range servers {
		c, err := newPromClient(o, now)
		if err != nil {
			return nil, fmt.Errorf("the Prometheus %s: %w", o.Name, err)
		}
		m.servers[o.Name] = &metricServer{client: c, budget: newBudget()}
	}
	return m, nil
}

// Sample gives the value of a query that is asked every so often, not older than maxAge. Another
// unit's recent answer is good for this one too. Where the server's budget is used up the sample
// has no time and there is no error. Then, and on an error, again is when to try again at the
// earliest; zero: not by itself, because the server's file has no such server.
func (m *Metrics) Sample(ctx context.Context, server, query string, every, maxAge time.Duration) (sample policies.MetricSample,
	again time.Time, err error) {
	s := m.servers[server]
	if s == nil {
		return sample, time.Time{}, errors.New("the server's file has no such name under prometheus")
	}
	key := server + "\x00" + query
	now := m.now()
	if a, ok := m.answers.Get(key); ok && !a.at.After(now.Add(policies.MaxClockAhead)) { // else the clock was ahead
		if a.err != nil && now.Before(a.again) {
			return sample, a.again, a.err
		}
		if a.err == nil && now.Sub(a.at).Abs() <= maxAge {
			return a.sample, time.Time{}, nil
		}
	}
	if until, err := s.isAway(now); err != nil {
		return sample, until.Add(jitter(key, busyDelay)), err
	}
	answered := m.flights.DoChan(key, func() (any, error) {
		// The first caller may give up; the others wait for the same answer.
		a, called := s.query(context.WithoutCancel(ctx), query, m.now, every)
		if called && m.OnCall != nil {
			m.OnCall(Call{Gate: "metric", Server: server, Outcome: outcomeOf(a.err, OutcomeAnswered), Took: m.now().Sub(a.at)})
		}
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

// query asks once, within the server's budget; called says that the budget wasn't used up.
func (m *metricServer) query(ctx context.Context, query string, clock func() time.Time, every time.Duration) (a metricAnswer, called bool) {
	now := clock()
	done := m.begin(now)
	if done == nil {
		return metricAnswer{at: now, again: now.Add(busyDelay)}, false
	}
	defer done()
	sample, err := m.client.query(ctx, query, now)
	a = metricAnswer{sample: sample, err: err, at: now}
	if again := m.end(clock(), err); err != nil {
		if a.again = again; again.IsZero() {
			a.again = now.Add(every)
		}
	}
	return a, true
}
