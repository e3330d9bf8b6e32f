package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/liftlock/liftlock/internal/store"
)

// BenchmarkMetricsScrape is a scrape of what a thousand components in three environments are like,
// of which so many have changed since the one before.
func BenchmarkMetricsScrape(b *testing.B) {
	const units = 1000
	for _, changed := range []int{0, 10, 100} {
		b.Run(fmt.Sprint("changed=", changed), func(b *testing.B) {
			db, err := store.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "liftlock.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			begun, written := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), 0
			write := func(n int) {
				err := db.Tx(b.Context(), "judged", func(tx *store.Tx) error {
					for range n {
						u := benchUnit(written%units, written/units)
						if err := tx.PutUnit(b.Context(), u); err != nil {
							return err
						}
						written++
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			write(units)
			registry := prometheus.NewRegistry()
			registry.MustRegister(newStateCollector(db, func() time.Time { return begun }))
			scraped := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
			for b.Loop() {
				b.StopTimer()
				write(changed)
				b.StartTimer()
				answer := httptest.NewRecorder()
				scraped.ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
				if answer.Code != http.StatusOK {
					b.Fatal(io.ReadAll(answer.Body))
				}
			}
		})
	}
}

// benchUnit is a component's row, as large as one of three environments with four targets each.
func benchUnit(n, generation int) store.Unit {
	name := fmt.Sprint("component-", n)
	var envs []map[string]any
	for _, env := range []string{"dev", "qa", "prod"} {
		targets := map[string]any{}
		for t := range 4 {
			targets[fmt.Sprintf("%s-%s-%d", name, env, t)] = map[string]any{
				"state": "verified", "since": "2026-03-02T08:00:00Z", "health": "Healthy", "reason": strings.Repeat("synced and healthy. ", 20),
			}
		}
		envs = append(envs, map[string]any{
			"environment": env, "state": "verified", "promotion": "open", "readySince": "2026-03-02T08:00:00Z", "targets": targets,
			"gates": []map[string]any{
				{"gate": "approvals", "outcome": "wait", "reason": fmt.Sprint("1 approval of 2 at ", generation)},
				{"gate": "soak", "outcome": "pass", "reason": "was healthy for 2h"},
			},
			"why": strings.Repeat("the release was verified in the environment before. ", 30),
		})
	}
	data, err := json.Marshal(map[string]any{"decision": map[string]any{"envs": envs}, "environments": strings.Repeat("a description of it. ", 200)})
	if err != nil {
		panic(err)
	}
	return store.Unit{Key: name, Repo: "fleet", Pipeline: "shop", Component: name, Digest: fmt.Sprint(generation), UpdatedAt: time.Date(2026, 3, 2, 9, 0, generation, 0, time.UTC), Data: data}
}
