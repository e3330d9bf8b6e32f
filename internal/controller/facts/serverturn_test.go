package facts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// answeringServers are a Prometheus and an endpoint that answer as a test says.
type answeringServers struct {
	calls  int
	sample policies.MetricSample
	answer policies.EndpointAnswer
	again  time.Time
	err    error
	end    context.CancelFunc // called while they are asked
}

func (a *answeringServers) Sample(context.Context, string, string, time.Duration, time.Duration) (policies.MetricSample, time.Time, error) {
	a.calls++
	if a.end != nil {
		a.end()
	}
	return a.sample, a.again, a.err
}

func (a *answeringServers) Call(context.Context, string, string, time.Duration, time.Duration, policies.EndpointRequest) (policies.EndpointAnswer, time.Time, error) {
	a.calls++
	if a.end != nil {
		a.end()
	}
	return a.answer, a.again, a.err
}

// TestWhenAMetricIsRead says when a Prometheus is asked, and what is known then.
func TestWhenAMetricIsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const every = time.Minute
	had := func(age time.Duration) []policies.MetricSample {
		return []policies.MetricSample{{At: now.Add(-age), Values: []float64{1}}}
	}
	for name, c := range map[string]struct {
		samples []policies.MetricSample
		members int
		fresh   bool
		sent    int // how many queries were made before
		none    bool
		answer  policies.MetricSample
		again   time.Time
		err     error
		reads   int
		nextAt  time.Time
		why     string
	}{
		"never asked":                      {answer: policies.MetricSample{At: now}, reads: 1, nextAt: now.Add(every)},
		"asked a moment ago":               {samples: had(every - time.Second), nextAt: now.Add(time.Second)},
		"it is time":                       {samples: had(every), answer: policies.MetricSample{At: now}, reads: 1, nextAt: now.Add(every)},
		"before a merge":                   {samples: had(freshAge + time.Second), fresh: true, answer: policies.MetricSample{At: now}, reads: 1, nextAt: now.Add(every)},
		"before a merge, and it is new":    {samples: had(freshAge), fresh: true, nextAt: now.Add(every - freshAge)},
		"before a merge, by a clock ahead": {samples: had(-freshAge), fresh: true, nextAt: now.Add(every + freshAge)},
		"before a merge of many":           {samples: had(15 * time.Second), members: 15, fresh: true, nextAt: now.Add(every - 15*time.Second)},
		"before a merge of too few":        {samples: had(15 * time.Second), members: 14, fresh: true, answer: policies.MetricSample{At: now}, reads: 1, nextAt: now.Add(every)},
		"no server":                        {none: true, why: "no server is asked from here"},
		"as many as may be":                {sent: maxMetricCalls - 1, answer: policies.MetricSample{At: now}, reads: 1, nextAt: now.Add(every)},
		"more than may be":                 {sent: maxMetricCalls, nextAt: now.Add(metricCallDelay)},
		"more than may be before a merge":  {sent: maxMetricCalls, fresh: true, nextAt: now.Add(metricCallDelay), why: "others are asked first; its turn comes"},
		"it fails":                         {err: errors.New("refused"), again: now.Add(time.Second), reads: 1, nextAt: now.Add(time.Second), why: "refused"},
		"not its turn":                     {again: now.Add(time.Second), reads: 1, nextAt: now.Add(time.Second)},
		"not its turn before a merge":      {again: now.Add(time.Second), fresh: true, reads: 1, nextAt: now.Add(time.Second), why: "it is asked as often as it may be; its turn comes"},
		"another's answer":                 {answer: policies.MetricSample{At: now.Add(-every)}, reads: 1, nextAt: now.Add(every)},
		"another's answer of just before":  {answer: policies.MetricSample{At: now.Add(time.Second - every)}, reads: 1, nextAt: now.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &answeringServers{sample: c.answer, again: c.again, err: c.err}
			o := &Gatherer{opts: Options{Metrics: s}}
			if c.none {
				o.opts.Metrics = nil
			}
			ev := componentOf(&Evaluation{Basis: branch.Basis{Fresh: c.fresh}, Components: make([]*ComponentEvaluation, c.members), metricCalls: c.sent}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Now: now}})
			r := policies.MetricReading{Samples: c.samples}
			if err := o.readMetric(t.Context(), ev, record.InPull{}, &policies.Metric{Every: every}, &r); err != nil {
				t.Fatal(err)
			}
			if s.calls != c.reads || !r.NextAt.Equal(c.nextAt) || r.Err != c.why {
				t.Errorf("after %d calls it is next at %s: %q", s.calls, r.NextAt, r.Err)
			}
			answered := c.reads > 0 && !c.answer.At.IsZero()
			if (len(ev.Metrics) == 1) != answered || answered && !r.Samples[len(r.Samples)-1].At.Equal(c.answer.At) {
				t.Errorf("kept are %+v, and read %+v", ev.Metrics, r.Samples)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &answeringServers{sample: policies.MetricSample{At: now}, end: cancel}
	ev := componentOf(&Evaluation{}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Now: now}})
	if err := (&Gatherer{opts: Options{Metrics: s}}).readMetric(ctx, ev, record.InPull{}, &policies.Metric{Every: every}, &policies.MetricReading{}); !errors.Is(err, context.Canceled) || len(ev.Metrics) > 0 {
		t.Errorf("a run that is over: %v, %+v", err, ev.Metrics)
	}
}

// TestWhenAnEndpointIsCalled says when an endpoint is asked, and what is known then.
func TestWhenAnEndpointIsCalled(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const every, maxAge = time.Minute, 10 * time.Minute
	passed := policies.EndpointAnswer{Outcome: policies.Pass, At: now}
	called := func(age time.Duration, outcome policies.Outcome) endpointState {
		return endpointState{CalledAt: now.Add(-age), NextAt: now.Add(every), Outcome: outcome, At: now.Add(-age)}
	}
	for name, c := range map[string]struct {
		state   endpointState
		fresh   bool
		sent    int
		none    bool
		unknown string // why it isn't known what is promoted
		answer  policies.EndpointAnswer
		again   time.Time
		err     error
		calls   int
		kept    bool
		nextAt  time.Time
		why     string
	}{
		"never asked":                     {answer: passed, calls: 1, kept: true, nextAt: now.Add(every)},
		"asked a moment ago":              {state: called(time.Second, policies.Wait), nextAt: now.Add(every)},
		"it is time":                      {state: endpointState{CalledAt: now.Add(-every), NextAt: now}, answer: passed, calls: 1, kept: true, nextAt: now.Add(every)},
		"it failed":                       {state: endpointState{Outcome: policies.Fail}},
		"it failed, before a merge":       {state: called(time.Hour, policies.Fail), fresh: true, nextAt: now.Add(every)},
		"it passed long ago":              {state: called(maxAge, policies.Pass), answer: passed, calls: 1, kept: true, nextAt: now.Add(every)},
		"it passed not so long ago":       {state: called(maxAge-time.Second, policies.Pass), nextAt: now.Add(every)},
		"it waited long ago":              {state: called(maxAge, policies.Wait), nextAt: now.Add(every)},
		"its old pass was said again":     {state: endpointState{CalledAt: now, NextAt: now.Add(every), Outcome: policies.Pass, At: now.Add(-maxAge)}, nextAt: now.Add(every)},
		"before a merge":                  {state: called(freshAge+time.Second, policies.Pass), fresh: true, answer: passed, calls: 1, kept: true, nextAt: now.Add(every)},
		"before a merge, and it is new":   {state: called(freshAge, policies.Pass), fresh: true, nextAt: now.Add(every)},
		"no endpoint":                     {none: true, why: "no endpoint is asked from here"},
		"unknown what":                    {unknown: "it is gone", why: "what is promoted can't be read: it is gone"},
		"unknown at all":                  {unknown: "-", why: "what is promoted can't be read"},
		"as many as may be":               {sent: maxEndpointCalls - 1, answer: passed, calls: 1, kept: true, nextAt: now.Add(every)},
		"more than may be":                {sent: maxEndpointCalls, nextAt: now.Add(metricCallDelay)},
		"more than may be before a merge": {sent: maxEndpointCalls, fresh: true, nextAt: now.Add(metricCallDelay), why: "others are asked first; its turn comes"},
		"it can't be reached":             {err: errors.New("refused"), again: now.Add(time.Second), calls: 1, kept: true, nextAt: now.Add(time.Second), why: "refused"},
		"nobody was asked":                {err: errors.New("no such endpoint"), calls: 1, why: "no such endpoint"},
		"not its turn":                    {again: now.Add(time.Second), calls: 1, nextAt: now.Add(time.Second)},
		"not its turn before a merge":     {again: now.Add(time.Second), fresh: true, calls: 1, nextAt: now.Add(time.Second), why: "it is asked as often as it may be; its turn comes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := &answeringServers{answer: c.answer, again: c.again, err: c.err}
			o := &Gatherer{opts: Options{Endpoints: servers}}
			if c.none {
				o.opts.Endpoints = nil
			}
			ev := componentOf(&Evaluation{Basis: branch.Basis{Fresh: c.fresh}, endpointCalls: c.sent}, branch.ComponentBasis{Unit: &branch.ResolvedUnit{}, Facts: promotion.ComponentFacts{Now: now}})
			p := &promotion.Pull{}
			switch c.unknown {
			case "":
				p.Review.Promotion = &policies.Promotion{Release: &policies.Release{}}
			case "-":
			default:
				p.Review.Promotion = &policies.Promotion{ReleaseErr: c.unknown}
			}
			var r policies.EndpointReading
			if err := o.callEndpoint(t.Context(), ev, &promotion.Env{Name: "qa"}, p, &policies.HTTP{Every: every, MaxAge: maxAge}, &c.state, &r); err != nil {
				t.Fatal(err)
			}
			if servers.calls != c.calls || !r.NextAt.Equal(c.nextAt) || r.Err != c.why || (len(ev.Endpoints) == 1) != c.kept {
				t.Errorf("after %d calls it is next at %s: %q; kept is %+v", servers.calls, r.NextAt, r.Err, ev.Endpoints)
			}
			if c.kept && ev.Endpoints[0].failed != (c.err != nil) {
				t.Errorf("kept is %+v", ev.Endpoints)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	servers := &answeringServers{answer: passed, end: cancel}
	ev := componentOf(&Evaluation{}, branch.ComponentBasis{Unit: &branch.ResolvedUnit{}, Facts: promotion.ComponentFacts{Now: now}})
	p := &promotion.Pull{Review: policies.Facts{Promotion: &policies.Promotion{Release: &policies.Release{}}}}
	err := (&Gatherer{opts: Options{Endpoints: servers}}).callEndpoint(ctx, ev, &promotion.Env{}, p, &policies.HTTP{Every: every}, &endpointState{}, &policies.EndpointReading{})
	if !errors.Is(err, context.Canceled) || len(ev.Endpoints) > 0 {
		t.Errorf("a run that is over: %v, %+v", err, ev.Endpoints)
	}
}
