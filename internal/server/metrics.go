package server

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// metrics are what /metrics shows. They implement the interfaces of the rooms
// that report to them.
type metrics struct {
	registry        *prometheus.Registry
	calls           *prometheus.CounterVec
	callTime        *prometheus.HistogramVec
	deliveries      *prometheus.CounterVec
	closed          *prometheus.CounterVec
	runs            *prometheus.CounterVec
	runTime         *prometheus.HistogramVec
	stages          *prometheus.HistogramVec
	reverts         *prometheus.CounterVec
	changes         *prometheus.CounterVec
	failures        *prometheus.CounterVec
	leadTime        *prometheus.HistogramVec
	restores        *prometheus.HistogramVec
	checkTime       *prometheus.HistogramVec
	messages        *prometheus.CounterVec
	gateCalls       *prometheus.CounterVec
	callbacks       *prometheus.CounterVec
	gateTime        *prometheus.HistogramVec
	skips           *prometheus.CounterVec
	disagreements   *prometheus.CounterVec
	tokenEnds       *prometheus.GaugeVec
	argocdTokenEnds *prometheus.GaugeVec
	limited         *prometheus.CounterVec
	registries      registryMetrics
}

// deliveryLabels are those of the metrics of delivery.
var deliveryLabels = []string{"pipeline", "environment"}

// stageBuckets span a promotion's life: seconds to days.
var stageBuckets = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}

func newMetrics(s *store.Store, caches *cache.Group, now func() time.Time) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_forge_calls_total",
			Help: "Calls to a forge's API, by endpoint and HTTP status (0: no answer)."}, []string{"forge", "endpoint", "status"}),
		callTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_forge_call_seconds",
			Help: "How long calls to a forge's API took.", Buckets: prometheus.DefBuckets}, []string{"forge"}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_webhook_deliveries_total",
			Help: "Webhook deliveries by outcome."}, []string{"forge", "outcome"}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_connections_closed_total",
			Help: "Connections that were closed or refused because too many were open, by listener."}, []string{"listener"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_runs_total",
			Help: "Runs of keys by kind and result."}, []string{"kind", "result"}),
		runTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_run_seconds",
			Help: "How long runs of keys took, by kind.", Buckets: prometheus.DefBuckets}, []string{"kind"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_promotion_stage_seconds",
			Help: "How long promotions took to a stage: merged since opened, verified or degraded since landed.", Buckets: stageBuckets},
			[]string{"environment", "stage"}),
		reverts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_reverts_total", Help: "Reverts opened."},
			[]string{"environment"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_changes_total",
			Help: "Releases that promotions brought and that were verified or degraded."}, deliveryLabels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_changes_failed_total",
			Help: "Releases that promotions brought and that degraded."}, deliveryLabels),
		leadTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_lead_time_seconds",
			Help: "How long releases took from the environment in which they began to being verified in another.", Buckets: stageBuckets},
			deliveryLabels),
		restores: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_time_to_restore_seconds",
			Help: "For how long environments were degraded until something was verified there.", Buckets: stageBuckets}, deliveryLabels),
		checkTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_impact_check_seconds",
			Help:    "How long checks of people's pull requests took, by result: told, or failed where a limit was reached.",
			Buckets: prometheus.DefBuckets}, []string{"result"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_notifications_total",
			Help: "Notifications sent, and tries that failed, by channel and result."}, []string{"channel", "result"}),
		gateCalls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_gate_calls_total",
			Help: "Calls of the servers that gates ask, by the gate's kind, the server's name and how it ended."},
			[]string{"gate", "server", "outcome"}),
		callbacks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_gate_callbacks_total",
			Help: "Callbacks of endpoints that gates ask, by the endpoint's name (empty for who isn't believed to be one) and what they " +
				"said or why they don't count."}, []string{"server", "outcome"}),
		gateTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_gate_call_seconds",
			Help: "How long calls of the servers that gates ask took.", Buckets: prometheus.DefBuckets}, []string{"gate", "server"}),
		skips: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_gate_skips_total",
			Help: "Gates that somebody had a promotion pass by /liftlock skip."}, []string{"pipeline", "environment", "gate"}),
		disagreements: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_render_disagreements_total",
			Help: "Targets of promotions that their Argo CD renders otherwise than Liftlock."}, []string{"argocd"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_forge_limited_total",
			Help: "How often a forge refused a call for the number of them, after which none is made for a while."}, []string{"forge"}),
		tokenEnds: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "liftlock_forge_token_expiry_timestamp_seconds",
			Help: "When the token for a forge ends, in Unix time, where it ends and the forge says so."}, []string{"forge"}),
		registries: newRegistryMetrics(),
		argocdTokenEnds: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "liftlock_argocd_token_expiry_timestamp_seconds",
			Help: "When the token for an Argo CD's API ends, in Unix time, where it ends."}, []string{"argocd"}),
	}
	m.registry.MustRegister(m.calls, m.callTime, m.deliveries, m.closed, m.runs, m.runTime, m.stages, m.reverts, m.changes, m.failures,
		m.leadTime, m.restores, m.checkTime, m.messages, m.gateCalls, m.gateTime, m.callbacks, m.skips, m.disagreements, m.tokenEnds,
		m.argocdTokenEnds, m.limited, newQueueCollector(s), newStateCollector(s, now), newCacheCollector(caches),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(m.registries.collectors()...)
	return m
}

// forgeCall observes one forge's calls.
func (m *metrics) forgeCall(name string) func(endpoint string, status int, d time.Duration) {
	return func(endpoint string, status int, d time.Duration) {
		m.calls.WithLabelValues(name, endpoint, strconv.Itoa(status)).Inc()
		m.callTime.WithLabelValues(name).Observe(d.Seconds())
	}
}

// renderDisagreement counts targets that an Argo CD renders otherwise than Liftlock, and logs how.
func (m *metrics) renderDisagreement(log *zap.Logger) func(argocd, target, how string) {
	return func(argocd, target, how string) {
		m.disagreements.WithLabelValues(argocd).Inc()
		log.Warn("Argo CD renders a target of a promotion otherwise than Liftlock", zap.String("argocd", argocd),
			zap.String("target", target), zap.String("how", how))
	}
}

// Run implements engine.Metrics.
func (m *metrics) Run(kind string, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.runs.WithLabelValues(kind, result).Inc()
	m.runTime.WithLabelValues(kind).Observe(took.Seconds())
}

// Check implements engine.Metrics.
func (m *metrics) Check(took time.Duration, failed bool) {
	result := "told"
	if failed {
		result = "failed"
	}
	m.checkTime.WithLabelValues(result).Observe(took.Seconds())
}

// notified counts notifications.
func (m *metrics) notified(channel string, _ int, ok bool) {
	result := "ok"
	if !ok {
		result = "failed"
	}
	m.messages.WithLabelValues(channel, result).Inc()
}

// gateCall observes a call that was made for a gate.
func (m *metrics) gateCall(c gateclient.Call) {
	m.gateCalls.WithLabelValues(c.Gate, c.Server, c.Outcome).Inc()
	m.gateTime.WithLabelValues(c.Gate, c.Server).Observe(c.Took.Seconds())
}

// gateCallback counts an endpoint's callback; server is empty where the sender isn't believed to be
// one.
func (m *metrics) gateCallback(server, outcome string) {
	m.callbacks.WithLabelValues(server, outcome).Inc()
}

// Skipped implements engine.Metrics.
func (m *metrics) Skipped(pipeline, environment, gate string) {
	m.skips.WithLabelValues(pipeline, environment, gate).Inc()
}

// Discovered implements engine.Metrics.
func (m *metrics) Discovered(pipeline, environment string, took time.Duration) {
	m.registries.commits.WithLabelValues(pipeline, environment).Observe(took.Seconds())
}

// Stage implements act.Metrics.
func (m *metrics) Stage(environment, stage string, took time.Duration) {
	m.stages.WithLabelValues(environment, stage).Observe(took.Seconds())
}

// Reverted implements act.Metrics.
func (m *metrics) Reverted(environment string) { m.reverts.WithLabelValues(environment).Inc() }

// Delivered implements act.Metrics.
func (m *metrics) Delivered(pipeline, environment string, d promotion.Delivery) {
	if d.Change {
		m.changes.WithLabelValues(pipeline, environment).Inc()
	}
	if d.Failure {
		m.failures.WithLabelValues(pipeline, environment).Inc()
	}
	if d.Lead > 0 {
		m.leadTime.WithLabelValues(pipeline, environment).Observe(d.Lead.Seconds())
	}
	if d.Restore > 0 {
		m.restores.WithLabelValues(pipeline, environment).Observe(d.Restore.Seconds())
	}
}

// queueCollector reads the queue's depth when it is asked for.
type queueCollector struct {
	store *store.Store
	depth *prometheus.Desc
	age   *prometheus.Desc
}

func newQueueCollector(s *store.Store) *queueCollector {
	return &queueCollector{store: s,
		depth: prometheus.NewDesc("liftlock_queue_keys", "Keys in the queue by state.", []string{"state"}, nil),
		age:   prometheus.NewDesc("liftlock_queue_oldest_seconds", "How long the longest due key has been due.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (q *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- q.depth
	ch <- q.age
}

// collectTimeout bounds how long a scrape waits for the store.
const collectTimeout = 2 * time.Second

// Collect implements prometheus.Collector.
func (q *queueCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	d, err := q.store.Depth(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(q.depth, err)
		return
	}
	for state, n := range map[string]int{"due": d.Due, "later": d.Later, "running": d.Running} {
		ch <- prometheus.MustNewConstMetric(q.depth, prometheus.GaugeValue, float64(n), state)
	}
	ch <- prometheus.MustNewConstMetric(q.age, prometheus.GaugeValue, d.Oldest.Seconds())
}

// cacheCollector shows the caches of this process by name.
type cacheCollector struct {
	caches                                  *cache.Group
	hits, misses, evictions, entries, bytes *prometheus.Desc
}

func newCacheCollector(caches *cache.Group) *cacheCollector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("liftlock_cache_"+name, help, []string{"cache"}, nil)
	}
	return &cacheCollector{caches: caches,
		hits:      describe("hits_total", "Values that were found in a cache."),
		misses:    describe("misses_total", "Values that were not, and were read or worked out anew."),
		evictions: describe("evictions_total", "Entries that went because a cache was full."),
		entries:   describe("entries", "Entries that a cache holds."),
		bytes:     describe("bytes", "About how large the values of a cache are that is bounded by bytes; 0 for the others.")}
}

// Describe implements prometheus.Collector.
func (c *cacheCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.hits, c.misses, c.evictions, c.entries, c.bytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *cacheCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.caches.Stats() {
		ch <- prometheus.MustNewConstMetric(c.hits, prometheus.CounterValue, float64(s.Hits), s.Name)
		ch <- prometheus.MustNewConstMetric(c.misses, prometheus.CounterValue, float64(s.Misses), s.Name)
		ch <- prometheus.MustNewConstMetric(c.evictions, prometheus.CounterValue, float64(s.Evictions), s.Name)
		ch <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(s.Entries), s.Name)
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(s.Bytes), s.Name)
	}
}
