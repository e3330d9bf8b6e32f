package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

const metricQA = "    - {name: qa, after: [dev], merge: auto, gates: [{metric: {prometheus: main, query: 'errors{component=\"{{ .component }}\", version=\"{{ .tag }}\"}', when: value < 0.01, for: 3m, every: 1m}}], verify: " + quickly + "}\n"

// withPrometheus lets the fixture's process ask a Prometheus that answers what status and
// body say.
func (f *fixture) withPrometheus(answer func(query string) (status int, value string)) *atomic.Int64 {
	f.t.Helper()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		status, value := answer(r.FormValue("query"))
		rw.WriteHeader(status)
		fmt.Fprintf(rw, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, value)
	}))
	f.t.Cleanup(s.Close)
	f.connectMetrics(s.URL)
	f.addProcess(f.opts.Store, "another")
	f.runRepository()
	return &calls
}

func (f *fixture) connectMetrics(url string) {
	f.t.Helper()
	m, err := gateclient.NewMetrics([]gateclient.Prometheus{{Name: "main", URL: url}}, f.clock.Now, nil)
	f.must(err)
	f.metrics = m
}

// gateResult is what the gate of a kind says of a component's promotion into qa.
func (f *fixture) gateResult(component, kind string) policies.Result {
	f.t.Helper()
	gates := f.gateResults(component)
	i := slices.IndexFunc(gates, func(g policies.Result) bool { return string(g.Gate) == kind })
	if i < 0 {
		f.t.Fatalf("no gate %s among %+v", kind, gates)
	}
	return gates[i]
}

// gateResults are what all gates of the pipeline say of a component's promotion into qa.
func (f *fixture) gateResults(component string) []policies.Result {
	f.t.Helper()
	s, err := f.opts.Gatherer.Targets.Snapshot(f.t.Context(), f.repo.Repository)
	f.must(err)
	_, d, err := f.opts.Gatherer.Evaluate(f.t.Context(), s, f.unit(component), false)
	f.must(err)
	return d.Components[0].Env("qa").Gates
}

// TestMetricIsWaitedFor holds that a promotion is merged once a metric was good for long enough. A
// bad sample, a server that is away, and another process without the database begin it anew. The
// measurements go with the pull request.
func TestMetricIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, metricQA, c.components...)
			var value atomic.Value
			value.Store("0.5")
			var status atomic.Int64
			status.Store(200)
			var queries atomic.Value
			calls := w.withPrometheus(func(query string) (int, string) {
				queries.Store(query)
				return int(status.Load()), value.Load().(string)
			})
			p := w.openOne(c.key, "2.0.0", c.components...)
			look := func(step time.Duration) {
				t.Helper()
				w.clock.Step(step)
				w.must(w.run(wake.ForUnit(w.unit(c.key))))
				w.must(w.run(wake.ForMerge(w.repo.ID)))
			}
			waits := func(want string) {
				t.Helper()
				if w.pulls()[0].Merged {
					t.Fatal("it is merged too early")
				}
				if g := w.gateResult(c.key, "metric"); !strings.Contains(g.Reason, want) || g.Outcome != policies.Wait {
					t.Fatalf("it says %+v, want %q", g, want)
				}
			}
			look(0)
			waits("value < 0.01 doesn't hold since ")
			if q := queries.Load().(string); !strings.HasPrefix(q, `errors{component="`) || !strings.HasSuffix(q, `version="2.0.0"}`) {
				t.Errorf("it was asked %s", q)
			}
			before := calls.Load()
			look(0)
			if calls.Load() != before {
				t.Error("a look a moment later asks again")
			}
			value.Store("0.001")
			for range 3 {
				look(time.Minute)
				waits("value < 0.01 has held since ")
			}
			value.Store("0.5") // bad once
			look(time.Minute)
			waits("value < 0.01 doesn't hold since ")
			value.Store("0.001")
			for range 3 {
				look(time.Minute)
				waits("value < 0.01 has held since ")
			}
			status.Store(503)
			look(time.Minute)
			waits("the Prometheus main can't be asked: it answers 503")
			status.Store(200)
			w.addProcess(w.opts.Store, "a third") // what was measured is in the store
			w.runRepository()
			kept, err := w.opts.Store.Records(t.Context(), store.RecordFilter{Kinds: []string{"metric-samples"}, Repo: w.repo.ID, Pull: p.Number})
			w.must(err)
			if len(kept) != len(c.components) {
				t.Errorf("%d queries are kept for %d components", len(kept), len(c.components))
			}
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
			w.settle(c.key, "what was measured is forgotten", func() bool {
				kept, err := w.opts.Store.Records(t.Context(), store.RecordFilter{Kinds: []string{"metric-samples"}})
				w.must(err)
				return len(kept) == 0
			})
		})
	}
}

// TestMetricIsReadRightBeforeTheMerge holds that what turned bad since the last sample
// isn't merged.
func TestMetricIsReadRightBeforeTheMerge(t *testing.T) {
	w := newFixture(t, "", metricQA, "web")
	var value atomic.Value
	value.Store("0.001")
	w.withPrometheus(func(string) (int, string) { return 200, value.Load().(string) })
	w.openOne("web", "2.0.0", "web")
	for range 4 {
		w.clock.Step(time.Minute)
		w.must(w.run(wake.ForUnit(w.unit("web"))))
	}
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Pass {
		t.Fatalf("it says %+v", g)
	}
	value.Store("0.5")
	w.clock.Step(20 * time.Second)
	w.must(w.run(wake.ForMerge(w.repo.ID)))
	if w.pulls()[0].Merged {
		t.Fatal("it is merged on an old sample")
	}
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Wait {
		t.Errorf("it says %+v", g)
	}
}

// TestClockThatWasAhead holds that what a gate was told while the clock was ahead counts for
// nothing afterwards, and that servers are asked at once.
func TestClockThatWasAhead(t *testing.T) {
	w := newFixture(t, "", metricQA, "web")
	var value atomic.Value
	value.Store("0.001")
	calls := w.withPrometheus(func(string) (int, string) { return 200, value.Load().(string) })
	w.openOne("web", "2.0.0", "web")
	w.clock.Step(24 * time.Hour)
	for range 4 {
		w.clock.Step(time.Minute)
		w.must(w.run(wake.ForUnit(w.unit("web"))))
	}
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Pass {
		t.Fatalf("it says %+v", g)
	}
	w.clock.Step(-24 * time.Hour)
	value.Store("0.5")
	before := calls.Load()
	w.must(w.run(wake.ForMerge(w.repo.ID)))
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	if w.pulls()[0].Merged {
		t.Fatal("it is merged on samples of tomorrow")
	}
	if g := w.gateResult("web", "metric"); calls.Load() == before || g.Outcome != policies.Wait || !strings.Contains(g.Reason, "(0.5)") {
		t.Errorf("it was asked %d times and says %+v", calls.Load()-before, g)
	}
	value.Store("0.001")
	for range 4 {
		w.clock.Step(time.Minute)
		w.must(w.run(wake.ForUnit(w.unit("web"))))
	}
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Pass {
		t.Errorf("once it is well for long enough it says %+v", g)
	}
}

// TestGateThatClosesMeanwhile holds that nothing is merged by a gate that stopped passing while
// the others were still asked.
func TestGateThatClosesMeanwhile(t *testing.T) {
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			frozen := time.Now().Add(30 * time.Minute).Truncate(time.Second)
			moment := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
			w := newFixture(t, c.spec, fmt.Sprintf("    - {name: qa, after: [dev], merge: auto, gates: [{freeze: {from: %q, to: %q}}, {metric: {prometheus: main, query: up, when: value < 1, for: 3m, every: 1m}}], verify: %s}\n",
				moment(frozen), moment(frozen.Add(time.Hour)), quickly), c.components...)
			var slow atomic.Bool
			w.withPrometheus(func(string) (int, string) {
				if slow.CompareAndSwap(true, false) {
					w.clock.SetTime(frozen) // the others were judged by then
				}
				return 200, "0"
			})
			w.openOne(c.key, "2.0.0", c.components...)
			for w.clock.Now().Before(frozen.Add(-90 * time.Second)) {
				w.clock.Step(time.Minute)
				w.must(w.run(wake.ForUnit(w.unit(c.key))))
			}
			w.clock.SetTime(frozen.Add(-15 * time.Second))
			if g := w.gateResult(c.components[0], "metric"); g.Outcome != policies.Pass {
				t.Fatalf("it says %+v", g)
			}
			slow.Store(true)
			w.must(w.run(wake.ForMerge(w.repo.ID)))
			if slow.Load() || w.pulls()[0].Merged {
				t.Fatalf("it is merged in the freeze; it was asked: %t", !slow.Load())
			}
			if g := w.gateResult(c.components[0], "freeze"); g.Outcome != policies.Wait {
				t.Errorf("it says %+v", g)
			}
		})
	}
}

// TestUnknownPrometheus holds that a name that the server's file doesn't have is said.
func TestUnknownPrometheus(t *testing.T) {
	w := newFixture(t, "", metricQA, "web")
	w.openOne("web", "2.0.0", "web")
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Wait || g.Reason != "the Prometheus main can't be asked: no server is asked from here" {
		t.Errorf("it says %+v", g)
	}
	m, err := gateclient.NewMetrics(nil, w.clock.Now, nil)
	w.must(err)
	w.metrics = m
	w.addProcess(w.opts.Store, "another")
	w.runRepository()
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Wait || !g.Next.IsZero() || g.Reason != "the Prometheus main can't be asked: the server's file has no such name under prometheus" {
		t.Errorf("it says %+v", g)
	}
}

// countingMetrics has no turn for anybody after the first calls.
type countingMetrics struct {
	w     *fixture
	calls int
	most  int
}

func (c *countingMetrics) Sample(_ context.Context, _, _ string, _, _ time.Duration) (policies.MetricSample, time.Time, error) {
	c.calls++
	if c.calls > c.most {
		return policies.MetricSample{}, c.w.clock.Now().Add(2 * time.Second), nil
	}
	return policies.MetricSample{At: c.w.clock.Now(), Values: []float64{0}}, time.Time{}, nil
}

// TestMetricWithoutATurn holds that where a server's budget is used up, what was measured
// stays in force until it is too old, but isn't merged on.
func TestMetricWithoutATurn(t *testing.T) {
	w := newFixture(t, "", metricQA, "web")
	m := &countingMetrics{w: w, most: 4}
	w.metrics = m
	w.addProcess(w.opts.Store, "another")
	w.runRepository()
	w.openOne("web", "2.0.0", "web")
	for m.calls < m.most {
		w.clock.Step(58 * time.Second)
		w.must(w.run(wake.ForUnit(w.unit("web"))))
	}
	w.clock.Step(time.Minute)
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Pass || !g.Next.Equal(w.clock.Now().Add(2*time.Second)) {
		t.Errorf("it says %+v", g)
	}
	w.must(w.run(wake.ForMerge(w.repo.ID)))
	if w.pulls()[0].Merged {
		t.Fatal("it is merged on an old sample")
	}
	w.clock.Step(time.Minute)
	if g := w.gateResult("web", "metric"); g.Outcome != policies.Wait || !strings.Contains(g.Reason, "was asked last at") {
		t.Errorf("it says %+v", g)
	}
}

// TestManyMetricsAreReadRightBeforeTheMerge holds that a batch of more components than servers
// are asked about at once isn't merged before each was asked about.
func TestManyMetricsAreReadRightBeforeTheMerge(t *testing.T) {
	var components []string
	for i := range 25 {
		components = append(components, fmt.Sprintf("c%02d", i))
	}
	w := newFixture(t, "  batch: environment\n", metricQA, components...)
	m := &countingMetrics{w: w, most: 1000}
	w.metrics = m
	w.addProcess(w.opts.Store, "another")
	w.runRepository()
	w.openOne("batch", "2.0.0", components...)
	for range 10 {
		w.clock.Step(30 * time.Second)
		w.must(w.run(wake.ForUnit(w.unit("batch"))))
	}
	w.clock.Step(28 * time.Second)
	s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
	w.must(err)
	passes := func() (n int) {
		t.Helper()
		_, d, err := w.opts.Gatherer.Evaluate(t.Context(), s, w.unit("batch"), true)
		w.must(err)
		for i := range d.Components {
			if g := d.Components[i].Env("qa").Gates; len(g) == 1 && g[0].Outcome == policies.Pass {
				n++
			}
		}
		return n
	}
	before := m.calls
	if n := passes(); n != m.calls-before || n == len(components) {
		t.Errorf("%d pass, asked about %d of %d", n, m.calls-before, len(components))
	}
	w.settle("batch", "it is merged", func() bool { return w.pulls()[0].Merged })
}

// TestManyMetrics holds that a batch of more components than a server may be asked about at
// once is measured and merged all the same.
func TestManyMetrics(t *testing.T) {
	var components []string
	for i := range 60 {
		components = append(components, fmt.Sprintf("c%02d", i))
	}
	w := newFixture(t, "  batch: environment\n", metricQA, components...)
	calls := w.withPrometheus(func(string) (int, string) { return 200, "0" })
	w.openOne("batch", "2.0.0", components...)
	for i := 0; !w.pulls()[0].Merged; i++ {
		if i == 300 {
			t.Fatalf("it isn't merged after %d queries: %+v", calls.Load(), w.gateResult("c59", "metric"))
		}
		w.must(w.run(wake.ForUnit(w.unit("batch"))))
		w.must(w.run(wake.ForMerge(w.repo.ID)))
	}
}
