//go:build unix

package console

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// thousand puts 1,000 components in four environments into the store, a tenth of which moves.
func (tc *testConsole) thousand() {
	tc.t.Helper()
	tc.putRecord(func(tx *store.Tx) error {
		for i := range 1000 {
			if err := tx.PutUnit(tc.t.Context(), tc.serviceRow(i, fmt.Sprintf("1.%d.0", i%7))); err != nil {
				return err
			}
		}
		return nil
	})
}

// service puts one of the thousand, with a release in dev.
func (tc *testConsole) service(i int, release string) {
	tc.t.Helper()
	tc.putRecord(func(tx *store.Tx) error { return tx.PutUnit(tc.t.Context(), tc.serviceRow(i, release)) })
}

func (tc *testConsole) serviceRow(i int, release string) store.Unit {
	after := map[string][]string{"qa": {"dev"}, "prod-eu": {"qa"}, "prod-us": {"qa"}}
	envs := []promotion.EnvState{env("dev", promotion.Verified, release, time.Hour, 1), env("qa", promotion.Verified, "1.0.0", time.Hour, 2), env("prod-eu", promotion.Verified, "1.0.0", time.Hour, 3), env("prod-us", promotion.Verified, "1.0.0", time.Hour, 3)}
	if i%10 == 0 {
		envs[1].Promotion, envs[1].Candidate, envs[1].CandidateName, envs[1].Pull = promotion.Opened, releaseID(release), release, 100+i
		gates(&envs[1], `[{"gate":"approvals","outcome":"wait","reason":"1 of 2 approvals: grace","brief":"ada, edsger (1 of 2)","who":["ada","edsger"]},{"gate":"window","outcome":"wait","reason":"closed","until":"2026-03-03T09:00:00Z"}]`)
	}
	if i%100 == 7 {
		envs[2].State, envs[2].Reason = promotion.Degraded, "prod-eu-b: Degraded for 31 s: Deployment: 0 of 3 replicas are available"
	}
	switch i { // some rarer causes
	case 11, 22, 33, 44, 55, 66:
		envs[3].State, envs[3].Reason = promotion.Failed, "prod-us-a: it isn't synced after 15m0s"
	case 12, 23, 34, 45:
		envs[1].State, envs[1].Reason = promotion.Diverged, "grace changed it by hand in 0c1f5be91d02"
	case 13, 24:
		envs[3].State, envs[3].Reason = promotion.Unreadable, "kustomization.yaml:4: it can't be read"
	}
	if tc.teams == nil {
		tc.teams = map[string]string{}
	}
	tc.teams[fmt.Sprintf("svc-%04d", i)] = fmt.Sprintf("team-%02d", i%20)
	return tc.unitRow(testRepo, "shop", fmt.Sprintf("svc-%04d", i), "", after, envs...)
}

// BenchmarkThousand is what pages and answers over 1,000 components cost.
func BenchmarkThousand(b *testing.B) {
	w := newTestConsole(b, nil)
	w.thousand()
	h, err := New(w.options)
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"/", "/pipelines/shop", "/?q=svc-0007+prod-eu", "/?show=attention&page=2", "/api/v1/pipelines/shop"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = sendCompressed(b, h, path)
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}

// sendCompressed asks for an address and says how many bytes are sent.
func sendCompressed(t testing.TB, h http.Handler, path string) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	if rec.Code != 200 || rec.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("%s: %d, encoded as %q", path, rec.Code, rec.Header().Get("Content-Encoding"))
	}
	return rec.Body.Len()
}

// firstPageBytes is how much of the first page is sent, compressed, whatever there is.
const firstPageBytes = 10_000

// The first page of a thousand components is small. BenchmarkThousand says how soon it is there.
func TestFirstPageOfAThousandIsSmall(t *testing.T) {
	w := newTestConsole(t, nil)
	w.thousand()
	h, err := New(w.options)
	w.must(err)
	if n := sendCompressed(t, h, "/"); n > firstPageBytes {
		t.Errorf("the first page is %d bytes", n)
	}
	if n := sendCompressed(t, h, "/pipelines/shop"); n > 100_000 {
		t.Errorf("a page of a hundred is %d bytes", n)
	}
}

// BenchmarkOpenPages is what 200 open pages of a thousand components cost at ten events a
// second, the readers' side of their connections included.
func BenchmarkOpenPages(b *testing.B) {
	const pages, eventsPerSecond = 200, 10
	w := newTestConsole(b, func(o *Options) { o.Streams = 4 * pages })
	w.thousand()
	var open sync.WaitGroup
	paths := []string{"/", "/pipelines/shop", "/?show=attention", "/?q=svc-0007", "/pipelines/shop/svc-0007", "/promotions"}
	for i := range pages {
		path := paths[i%len(paths)]
		res, err := http.Get(w.streamOf(path)) //nolint:noctx // closed below
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		open.Add(1)
		go func() {
			in := bufio.NewScanner(res.Body)
			in.Scan()
			open.Done()
			changes := make(chan struct{}, 1)
			defer close(changes)
			go func() {
				tag := ""
				for range changes {
					<-time.After(rand.N(400 * time.Millisecond)) // as a page's script waits
					tag = w.reload(path, tag)
				}
			}()
			for in.Scan() {
				if in.Text() != "event: changed" {
					continue
				}
				select {
				case changes <- struct{}{}:
				default:
				}
			}
		}()
	}
	open.Wait()
	tick := time.NewTicker(time.Second / eventsPerSecond)
	defer tick.Stop()
	b.ResetTimer()
	begun, before, events := time.Now(), processTime(b), 0
	for b.Loop() {
		<-tick.C
		w.service(events%40*10, fmt.Sprintf("2.%d.0", events))
		w.event(fmt.Sprintf("svc-%04d", events%40*10), "dev", "landed", 0, 0, "it landed")
		events++
	}
	b.ReportMetric(100*float64(processTime(b)-before)/float64(time.Since(begun)), "cpu-%")
}

// reload gets a page again as its script does, and says its new entity tag.
func (tc *testConsole) reload(path, tag string) string {
	r, err := http.NewRequest(http.MethodGet, tc.url+path, nil) //nolint:noctx // the server's end ends it
	if err != nil {
		return ""
	}
	r.Header.Set("If-None-Match", tag)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Header.Get("ETag")
}

// processTime is what this process has used of the processors.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestAnswersAreCompressed(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	h, err := New(w.options)
	w.must(err)
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pipelines/shop", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	in, err := gzip.NewReader(rec.Body)
	w.must(err)
	raw, err := io.ReadAll(in)
	w.must(err)
	if plain := readJSON[api.Pipeline](w, "/api/v1/pipelines/shop"); !strings.Contains(string(raw), `"name":"shop"`) || len(plain.Components) == 0 {
		t.Errorf("%.200s", raw)
	}
	// Streams are not: each change must arrive by itself.
	for _, path := range []string{"/live", "/api/v1/events"} {
		if l := w.openStream(t, w.url+path, map[string]string{"Accept-Encoding": "gzip"}); l.header.Get("Content-Encoding") != "" {
			t.Errorf("%s is encoded as %s", path, l.header.Get("Content-Encoding"))
		}
	}
}
