package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/store"
)

// signedDelivery is a delivery of GitHub's, made anew for every request.
type signedDelivery struct {
	event, signature string
	body             []byte
}

func newSignedDelivery(event, body string) signedDelivery {
	mac := hmac.New(sha256.New, []byte("a-webhook-secret"))
	mac.Write([]byte(body))
	return signedDelivery{event: event, signature: "sha256=" + hex.EncodeToString(mac.Sum(nil)), body: []byte(body)}
}

func (s signedDelivery) send(h http.Handler, id int64) int {
	req := httptest.NewRequest(http.MethodPost, "/webhooks/hub", bytes.NewReader(s.body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", s.event)
	req.Header.Set("X-GitHub-Delivery", fmt.Sprint(id))
	req.Header.Set("X-Hub-Signature-256", s.signature)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Code
}

// BenchmarkStatusWebhook answers a status of an open pull request's head, beside
// pull requests that have long been closed.
func BenchmarkStatusWebhook(b *testing.B) {
	for _, closed := range []int{0, 20_000} {
		b.Run(fmt.Sprintf("closed=%d", closed), func(b *testing.B) {
			s := newTestServer(b, "")
			seedPulls(b, s.store, closed)
			main, _ := s.handlers(b)
			d := newSignedDelivery("status", fmt.Sprintf(`{"sha":"%040d","state":"success","branches":[{"name":"liftlock/shop/qa/web"}],"repository":{"full_name":"acme/fleet"},"sender":{"login":"ci"}}`, 1))
			var id atomic.Int64
			b.ReportAllocs()
			for b.Loop() {
				if code := d.send(main, id.Add(1)); code != http.StatusOK {
					b.Fatal(code)
				}
			}
			if d, err := s.store.Depth(b.Context()); err != nil || d.Due != 1 {
				b.Fatalf("%d keys are due, want the open pull request's: %v", d.Due, err)
			}
		})
	}
}

// seedPulls stores one open pull request and many closed ones.
func seedPulls(b *testing.B, s *store.Store, closed int) {
	b.Helper()
	var rows []store.Pull
	for i := range closed + 1 {
		row := store.Pull{Repo: "hub:acme/fleet", Number: i + 1, Branch: fmt.Sprintf("liftlock/shop/qa/c%d", i), State: "open", Pipeline: "shop", Environment: "qa", Component: fmt.Sprintf("c%d", i),
			Head: fmt.Sprintf("%040d", i+1), CreatedAt: time.Unix(int64(i), 0), UpdatedAt: time.Unix(int64(i), 0)}
		if i > 0 {
			row.State, row.ClosedAt = "closed", row.UpdatedAt
		}
		row.Data = fmt.Appendf(nil, `{"pr":{"Number":%d,"Title":"Promote web 1.%d.0 to qa","State":%q,"HeadSHA":%q,"Body":%q}}`, i+1, i, row.State, row.Head, strings.Repeat("| image | old | new |\n", 100))
		rows = append(rows, row)
	}
	for len(rows) > 0 {
		n := min(len(rows), 1000)
		if err := s.PutPulls(context.Background(), rows[:n]...); err != nil {
			b.Fatal(err)
		}
		rows = rows[n:]
	}
}

// BenchmarkDelivery takes usual deliveries, many at once: what they cost beside the
// network is reading, verifying and storing them.
func BenchmarkDelivery(b *testing.B) {
	s := newTestServer(b, "")
	main, _ := s.handlers(b)
	d := newSignedDelivery("pull_request", fmt.Sprintf(`{"action":"synchronize","number":7,"pull_request":{%s"head":{"ref":"x"}},"repository":{"full_name":"acme/fleet"},"sender":{"login":"linus"}}`,
		strings.Repeat(`"label":{"id":1234567,"url":"https://api.github.example/repos/acme/fleet/labels{/name}","name":"a \"label\"","default":false},`, 200)))
	var id atomic.Int64
	b.SetParallelism(16)
	b.SetBytes(int64(len(d.body)))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if code := d.send(main, id.Add(1)); code != http.StatusOK {
				b.Error(code)
			}
		}
	})
}
