package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

const (
	// freshAge is how old an answer may be right before a merge, and freshAgeEach how much more for
	// each component that is merged at once. Servers are asked only so often, and the first answer
	// would be too old again before the last one comes.
	freshAge     = 10 * time.Second
	freshAgeEach = time.Second
	// sharedMetricAge is how old an answer to somebody else may be to be taken for one's own.
	sharedMetricAge = 10 * time.Second
	// maxMetricCalls bounds the queries of one evaluation. The rest comes with the next evaluation,
	// when the queries of this one aren't due.
	maxMetricCalls = 20
	// metricCallDelay is when that is.
	metricCallDelay = 2 * time.Second
)

// MetricSource answers queries of Prometheus servers by their names; Metrics of
// internal/controller/gateclient is one. An answer may be as old as maxAge. One without a
// time is none, because it wasn't its turn. again says when to try again after that, and
// after an error; zero: not by itself.
type MetricSource interface {
	Sample(ctx context.Context, server, query string, every, maxAge time.Duration) (sample policies.MetricSample,
		again time.Time, err error)
}

// MetricRecord is an answer that is to be kept: in the store alone, so that with the
// database it is gone, and the gate begins anew.
type MetricRecord struct {
	about  record.InPull
	sample policies.MetricSample
}

// metricSamples are what Prometheus servers answered, in the order of time.
var metricSamples = record.Declare[record.InPull, []policies.MetricSample](record.Declaration{
	Name: "metric-samples", Owner: "controller/facts", Lifetime: record.UntilSettled,
	Doc: "The samples of a metric gate, by a digest of release, server, query and interval. Without it the gate begins anew.",
})

// ofMetric is what a server answered to a query about a release in a pull request. Samples of
// another release, or of another interval, are no part of it.
func ofMetric(repo string, pull int, release string, m *policies.Metric, query string) record.InPull {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", release, m.Prometheus, query, m.Every))
	return record.InPull{Pull: record.OfPull(repo, pull), Name: hex.EncodeToString(sum[:16])}
}

// readSamples reads what the store has; what can't be read is nothing, which loosens
// nothing.
func readSamples(ctx context.Context, r record.Reader, about record.InPull) ([]policies.MetricSample, error) {
	samples, _, err := metricSamples.Get(ctx, r, about)
	if len(samples) > policies.MaxMetricSamples || !slices.IsSortedFunc(samples, compareSamples) {
		return nil, err
	}
	return samples, err
}

func compareSamples(a, b policies.MetricSample) int { return a.At.Compare(b.At) }

// addSample adds a sample in the order of time, and keeps the newest.
func addSample(samples []policies.MetricSample, s policies.MetricSample) []policies.MetricSample {
	i, found := slices.BinarySearchFunc(samples, s, compareSamples)
	if found {
		return samples
	}
	samples = slices.Insert(slices.Clone(samples), i, s)
	return samples[max(len(samples)-policies.MaxMetricSamples, 0):]
}

// forgetFuture leaves out what was measured by a clock that was ahead: while such samples are
// the newest, nothing would be asked until their time comes.
func forgetFuture(samples []policies.MetricSample, now time.Time) []policies.MetricSample {
	return slices.DeleteFunc(samples, func(s policies.MetricSample) bool { return s.At.After(now.Add(policies.MaxClockAhead)) })
}

// Store keeps the answer with those that are there, which another process may have
// written meanwhile.
func (m *MetricRecord) Store(ctx context.Context, tx *store.Tx) error {
	known, err := readSamples(ctx, tx, m.about)
	if err != nil {
		return err
	}
	return metricSamples.Put(ctx, tx, m.about, addSample(forgetFuture(known, m.sample.At), m.sample))
}

// freshAge is how old an answer may be right before the merge of a unit.
func (ev *Evaluation) freshAge() time.Duration {
	return max(freshAge, time.Duration(len(ev.Components))*freshAgeEach)
}

// metricFacts fills in what Prometheus servers answer to the queries that gates of the
// environment ask about an open promotion, as the component sees it. A server that can't
// be asked is said.
func (ga *Gatherer) metricFacts(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, p *promotion.Pull) error {
	repo, known := c.Facts.Unit.Repo, map[record.InPull]bool{}
	for _, g := range env.Gates {
		if g.Metric == nil {
			continue
		}
		query, err := g.Metric.Render(p.Review.Promotion)
		if err != nil {
			continue // the gate says so itself
		}
		about := ofMetric(repo, p.Number, p.Release, g.Metric, query)
		if known[about] {
			continue
		}
		known[about] = true
		samples, err := readSamples(ctx, ga.opts.Store, about)
		if err != nil {
			return err
		}
		reading := policies.MetricReading{Prometheus: g.Metric.Prometheus, Query: query, Every: g.Metric.Every,
			Samples: forgetFuture(samples, c.Facts.Now)}
		if err := ga.readMetric(ctx, c, about, g.Metric, &reading); err != nil {
			return err
		}
		p.Review.Metrics = append(p.Review.Metrics, reading)
	}
	return nil
}

// readMetric asks for a sample where one is due. The error is the context's.
func (ga *Gatherer) readMetric(ctx context.Context, c *ComponentEvaluation, about record.InPull, m *policies.Metric,
	r *policies.MetricReading) error {
	now := c.Facts.Now
	if n := len(r.Samples); n > 0 {
		age := now.Sub(r.Samples[n-1].At)
		r.NextAt = r.Samples[n-1].At.Add(m.Every)
		if age < m.Every && (!c.Fresh || age.Abs() <= c.Evaluation.freshAge()) {
			return nil
		}
	}
	switch {
	case ga.opts.Metrics == nil:
		r.Err = "no server is asked from here"
		return nil
	case c.Evaluation.metricCalls >= maxMetricCalls:
		if r.NextAt = now.Add(metricCallDelay); c.Fresh {
			r.Err = "others are asked first; its turn comes" // a merge needs what is so now
		}
		return nil
	}
	c.Evaluation.metricCalls++
	sample, again, err := ga.opts.Metrics.Sample(ctx, m.Prometheus, r.Query, m.Every, min(sharedMetricAge, m.Every/2))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.Err, r.NextAt = err.Error(), again
		return nil
	case sample.At.IsZero():
		if r.NextAt = again; c.Fresh {
			r.Err = "it is asked as often as it may be; its turn comes" // a merge needs what is so now
		}
		return nil
	}
	r.Samples = addSample(r.Samples, sample)
	r.NextAt = r.Samples[len(r.Samples)-1].At.Add(m.Every)
	if !r.NextAt.After(now) {
		r.NextAt = now.Add(m.Every) // it was another's answer, of a moment ago
	}
	c.Metrics = append(c.Metrics, MetricRecord{about: about, sample: sample})
	return nil
}
