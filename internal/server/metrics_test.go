package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestStateMetrics counts components, promotions, gates and targets by their state.
func TestStateMetrics(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	env := func(state, coming string, more string) string {
		return `{"decision":{"envs":[{"environment":"qa","state":"` + state + `","promotion":"` + coming + `"` + more + `}]}}`
	}
	err = db.Tx(t.Context(), "judged", func(tx *store.Tx) error {
		for name, data := range map[string]string{
			"web":    env(promotion.Verified, promotion.Opened, `,"readySince":"2026-03-02T08:00:00Z","gates":[{"gate":"approvals","outcome":"wait"},{"gate":"approvals","outcome":"fail"},{"gate":"soak","outcome":"pass"}],"targets":{"a":{"drift":{"since":"2026-03-02T08:10:00Z","total":1}},"b":{"drift":{"total":2}},"c":{"untold":true}}`),
			"api":    env(promotion.Degraded, promotion.Idle, `,"readySince":"2026-03-02T07:00:00Z","targets":{"a":{"reason":"\"drift\":{"}}`),
			"worker": env(promotion.Verified, promotion.Held, `,"readySince":"2026-03-02T08:59:00Z","gates":[{"gate":"approvals","outcome":"wait"}]`),
			"old":    "{",
		} {
			if err := tx.PutUnit(t.Context(), store.Unit{Key: name, Repo: "fleet", Pipeline: "shop", Component: name, Digest: "1", Data: json.RawMessage(data)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`liftlock_components{environment="qa",pipeline="shop",state="degraded"} 1`,
		`liftlock_components{environment="qa",pipeline="shop",state="verified"} 2`,
		`liftlock_gate_oldest_seconds{environment="qa",gate="approvals",pipeline="shop"} 3600`,
		`liftlock_gates_waiting{environment="qa",gate="approvals",pipeline="shop"} 2`,
		`liftlock_promotion_oldest_seconds{environment="qa",pipeline="shop"} 3600`,
		`liftlock_promotions{environment="qa",pipeline="shop",state="held"} 1`,
		`liftlock_promotions{environment="qa",pipeline="shop",state="open"} 1`,
		`liftlock_targets_drifted{environment="qa",pipeline="shop"} 2`,
		`liftlock_targets_untold{environment="qa",pipeline="shop"} 1`,
	}
	remembers := newStateCollector(db, func() time.Time { return now })
	for _, when := range []string{"at first", "once it is known"} {
		if diff := cmp.Diff(want, scrape(remembers)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	err = db.Tx(t.Context(), "judged", func(tx *store.Tx) error {
		changed := store.Unit{Key: "web", Repo: "fleet", Pipeline: "shop", Component: "web", Digest: "2", Data: json.RawMessage(env(promotion.Degraded, promotion.Idle, ""))}
		return errors.Join(tx.PutUnit(t.Context(), changed), tx.DeleteUnit(t.Context(), "worker"))
	})
	if err != nil {
		t.Fatal(err)
	}
	want = []string{`liftlock_components{environment="qa",pipeline="shop",state="degraded"} 2`}
	for replica, c := range map[string]*stateCollector{"one that remembers": remembers, "one that has just begun": newStateCollector(db, func() time.Time { return now })} {
		if diff := cmp.Diff(want, scrape(c)); diff != "" {
			t.Errorf("changed, as %s shows it (-want +got):\n%s", replica, diff)
		}
	}
}

// scrape is what a collector shows, in its order.
func scrape(c prometheus.Collector) (lines []string) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestArgoCDMetrics shows which Argo CDs can be asked.
func TestArgoCDMetrics(t *testing.T) {
	got := scrape(argocdCollector(map[string]func() error{"hub": func() error { return nil }, "edge": func() error { return errors.New("away") }}))
	want := []string{`liftlock_argocd_reachable{argocd="edge"} 0`, `liftlock_argocd_reachable{argocd="hub"} 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCacheMetrics shows what a cache has done by its name.
func TestCacheMetrics(t *testing.T) {
	var caches cache.Group
	c := cache.New(&caches, cache.Options[string, string]{Name: "words", Entries: 2, Bytes: 100, Size: func(key, v string) int64 { return int64(len(key) + len(v)) }})
	cache.New(&caches, cache.Options[int, int]{Name: "numbers", Entries: 1})
	for _, word := range []string{"one", "two", "three"} {
		c.Put(word, "x")
	}
	c.Get("three")
	c.Get("one")
	c.Get("four")
	want := []string{
		`liftlock_cache_bytes{cache="numbers"} 0`, `liftlock_cache_bytes{cache="words"} 10`,
		`liftlock_cache_entries{cache="numbers"} 0`, `liftlock_cache_entries{cache="words"} 2`,
		`liftlock_cache_evictions_total{cache="numbers"} 0`, `liftlock_cache_evictions_total{cache="words"} 1`,
		`liftlock_cache_hits_total{cache="numbers"} 0`, `liftlock_cache_hits_total{cache="words"} 1`,
		`liftlock_cache_misses_total{cache="numbers"} 0`, `liftlock_cache_misses_total{cache="words"} 2`,
	}
	if diff := cmp.Diff(want, scrape(newCacheCollector(&caches))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
