package argocd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// benchmarkApp is an Application of about 17 KB, before and after its name.
func benchmarkApp(b *testing.B) (before, after string) {
	b.Helper()
	raw, err := os.ReadFile("testdata/kustomize-synced.json")
	if err != nil {
		b.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		b.Fatal(err)
	}
	resource := `{"group":"apps","health":{"status":"Healthy"},"kind":"Deployment","name":"some-deployment-name","namespace":"web-qa","status":"Synced","version":"v1"},`
	big := strings.Replace(compact.String(), `"resources":[{"health"`, `"resources":[`+strings.Repeat(resource, 95)+`{"health"`, 1)
	before, after, ok := strings.Cut(big, `"name":"web-qa"`)
	if !ok {
		b.Fatal("the Application has another name")
	}
	return before, after
}

// BenchmarkListByAPI10000 lists 10,000 Applications of about 17 KB each by the API over HTTP. The
// server is in the same process, and holds one of them at a time. B/app-kept is the heap that
// stays. cpu-s/list is the processor time of a list without that of the server and of HTTP, and
// cpu-s/serving is theirs. peak-MB is the most there was above the start, and s/list-again how long
// the same list takes when nothing has changed.
func BenchmarkListByAPI10000(b *testing.B) {
	before, after := benchmarkApp(b)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[`)
		for i := range 10_000 {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = io.WriteString(w, before)
			_, _ = fmt.Fprintf(w, `"name":"web-%d"`, i)
			_, _ = io.WriteString(w, after)
		}
		_, _ = io.WriteString(w, "]}")
	}))
	defer server.Close()
	client, err := api.New(api.Options{URL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	serving := func() time.Duration { // what the server in this process takes, and the way through HTTP
		began := processorTime(b)
		body, err := client.ListApplications(b.Context(), api.ApplicationFilter{})
		if err != nil {
			b.Fatal(err)
		}
		defer body.Close()
		if _, err := io.Copy(io.Discard, body); err != nil {
			b.Fatal(err)
		}
		return processorTime(b) - began
	}
	b.ReportAllocs()
	for b.Loop() {
		own := serving()
		var start, end runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&start)
		peak, stop, done := uint64(0), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc-min(start.HeapAlloc, now.HeapAlloc))
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		s := newAppStore("hub", zap.NewNop(), func(verification.App, bool) {}, &versionCounter{onChange: func() {}})
		f := &apiStream{feedState: feedState{log: zap.NewNop(), now: time.Now, onReadyChange: func(bool) {}}, client: client, sink: appSink{s}, apps: s, versions: map[string]seenVersion{}}
		calls.Store(0)
		began := processorTime(b)
		if err := f.listAll(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := processorTime(b) - began
		close(stop)
		<-done
		runtime.GC()
		runtime.ReadMemStats(&end)
		if got := len(s.listApplications()); got != 10_000 || calls.Load() != 1 {
			b.Fatalf("%d Applications by %d calls", got, calls.Load())
		}
		again := time.Now()
		if err := f.listAll(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((took - own).Seconds(), "cpu-s/list")
		b.ReportMetric(own.Seconds(), "cpu-s/serving")
		b.ReportMetric(time.Since(again).Seconds(), "s/list-again")
		b.ReportMetric(float64(end.HeapAlloc-start.HeapAlloc)/10_000, "B/app-kept")
		b.ReportMetric(float64(peak)/1e6, "peak-MB")
		b.ReportMetric(float64(len(before)+len(after)), "B/app-wire")
		runtime.KeepAlive(s)
		runtime.KeepAlive(f)
	}
}
