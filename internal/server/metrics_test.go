package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/store"
)

// TestDriftMetric counts the targets that were changed in the cluster.
func TestDriftMetric(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.Tx(t.Context(), "judged", func(tx *store.Tx) error {
		for name, targets := range map[string]string{
			"web": `{"a":{"drift":{"since":"2026-03-02T08:10:00Z","total":1}},"b":{"drift":{"total":2}},"c":{}}`,
			"api": `{"a":{"reason":"\"drift\":{"}}`,
		} {
			data := `{"decision":{"envs":[{"environment":"qa","targets":` + targets + `}]}}`
			if err := tx.PutUnit(t.Context(), store.Unit{Key: name, Repo: "fleet", Pipeline: "shop", Component: name, Digest: "1", Data: json.RawMessage(data)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newDriftCollector(db))
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if want := `liftlock_targets_drifted{environment="qa",pipeline="shop"} 2`; !strings.Contains(rec.Body.String(), want+"\n") {
		t.Errorf("no %s in\n%s", want, rec.Body)
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
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCacheCollector(&caches))
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var got []string
	for line := range strings.Lines(rec.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
