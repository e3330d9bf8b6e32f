package console

import (
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// BenchmarkHome is the first page over 1,000 components in three environments.
func BenchmarkHome(b *testing.B) {
	w := newTestConsole(b, nil)
	for i := range 1000 {
		w.unit(testRepo, "shop", fmt.Sprintf("c%04d", i), "", env("dev", promotion.Verified, "1", time.Hour, 1), env("qa", promotion.Verified, "1", time.Hour, 2), env("prod", promotion.Verified, "1", time.Hour, 3))
	}
	h, err := New(w.options)
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"/", "/?q=c0007", "/api/v1/pipelines", "/api/v1/pipelines/shop"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
				if rec.Code != 200 {
					b.Fatal(rec.Code)
				}
				n, _ := io.Copy(io.Discard, rec.Body)
				b.ReportMetric(float64(n), "bytes")
			}
		})
	}
}
