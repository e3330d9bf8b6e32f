package server

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liftlock/liftlock/internal/controller/charts"
	"github.com/liftlock/liftlock/internal/controller/registry"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// registryMetrics are what /metrics shows of registries, and of what is discovered there. Those are named as the server's
// file has them: a pipeline file adds no label.
type registryMetrics struct {
	calls, lists *prometheus.CounterVec
	limit, since *prometheus.GaugeVec
	commits      *prometheus.HistogramVec
}

func newRegistryMetrics() registryMetrics {
	return registryMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_registry_calls_total",
			Help: "Calls of registries, by HTTP status (0: no answer)."}, []string{"registry", "status"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liftlock_registry_lists_total",
			Help: "Lists of tags and versions that were looked at for new ones, by result."}, []string{"registry", "result"}),
		limit: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "liftlock_registry_limit_remaining",
			Help: "How many more requests a registry takes, as it said last, where it has a limit and says so."}, []string{"registry"}),
		since: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "liftlock_registry_listed_timestamp_seconds",
			Help: "When a list of tags and versions could be looked at last, in Unix time."}, []string{"registry"}),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "liftlock_discovery_commit_seconds",
			Help: "How long new tags and versions took from when they were first seen to their commit.", Buckets: stageBuckets},
			deliveryLabels),
	}
}

// collectors are all of them.
func (rm *registryMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{rm.calls, rm.lists, rm.limit, rm.since, rm.commits}
}

// countAnswers has them told of a registry's answers.
func (rm *registryMetrics) countAnswers(h *registry.Host) {
	name := h.Name
	h.OnCall = func(status int) { rm.calls.WithLabelValues(name, strconv.Itoa(status)).Inc() }
	h.OnLimit = func(remaining, _ int) { rm.limit.WithLabelValues(name).Set(float64(remaining)) }
}

// listed counts a list that was looked at.
func (rm *registryMetrics) listed(name string, now time.Time, err error) {
	rm.lists.WithLabelValues(name, listResult(err)).Inc()
	if err == nil {
		rm.since.WithLabelValues(name).Set(float64(now.Unix()))
	}
}

// listResult is how a list ended, in a word.
func listResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, registry.ErrAway):
		return "away"
	case errors.Is(err, registry.ErrRefused), errors.Is(err, charts.ErrRefused):
		return "refused"
	case errors.Is(err, registry.ErrMissing):
		return "missing"
	case errors.Is(err, discover.ErrTooMany):
		return "too many"
	}
	return "failed"
}

// otherRegistry is what the metrics call those that the server's file doesn't have.
const otherRegistry = "other"

// registryOf is the registry of an image's name as the server's file has it, or the chart repository of a chart's address;
// "other" where the file has none.
func registryOf(hosts []string, name string) string {
	repository, _, isOCI, isChart := pipeline.SplitChart(name)
	if first, _, _ := strings.Cut(name, "/"); !isChart && first != "localhost" && (first == name || !strings.ContainsAny(first, ".:")) {
		name = "docker.io/" + name // as image names without a registry are read
	}
	for _, h := range hosts {
		isHost := !strings.Contains(h, "://") && strings.HasPrefix(strings.TrimPrefix(name, "oci://"), h+"/")
		if isHost || isChart && !isOCI && strings.TrimSuffix(h, "/") == repository {
			return h
		}
	}
	return otherRegistry
}
