package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

const approverSecret = "a-secret-of-the-board"

// TestGateCallbacks holds who is believed to be an endpoint that calls back, and of what.
func TestGateCallbacks(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "readAccess: token\nendpoints: [{name: board, url: \"https://board.example\", secret: "+approverSecret+"}, {name: other, url: \"https://other.example\", secret: another-secret-of-16}]\n")
	main, _ := s.handlers(t)
	const path = "/api/v1/promotions/a/gates/board"
	const unit = "unit:hub:acme/fleet|shop|web"
	reset := func() {
		t.Helper()
		if err := s.store.PutRecord(t.Context(), store.RecordKey{Kind: "endpoint-state", Name: "a"}, []byte(`{"id":"a","endpoint":"board","unit":"`+unit+`","attempts":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (state struct{ Outcome, Reason string }) {
		t.Helper()
		raw, _, err := s.store.Record(t.Context(), store.RecordKey{Kind: "endpoint-state", Name: "a"})
		if err != nil || json.Unmarshal(raw, &state) != nil {
			t.Fatalf("it can't be read: %s, %v", raw, err)
		}
		return state
	}
	send := func(path, signature, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", "http://127.0.0.1"+path, strings.NewReader(body))
		if signature != "" {
			req.Header.Set("Liftlock-Signature", signature)
		}
		rec := httptest.NewRecorder()
		main.ServeHTTP(rec, req)
		return rec
	}
	sign := func(secret, body string, at time.Time) string {
		return policies.SignEndpoint([]byte(secret), at, []byte(body))
	}
	now := s.o.Clock.Now()
	const good = `{"id":"a","outcome":"pass","reason":"CHG-7"}`
	request, err := json.Marshal(policies.EndpointRequest{Version: 1, ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, signature, body string
		status                int
		error                 string
	}{
		"as it should be":            {path, sign(approverSecret, good, now), good, 200, ""},
		"not signed":                 {path, "", good, 401, "the header Liftlock-Signature is missing or isn't t=SECONDS,v1=HEX"},
		"signed by somebody":         {path, sign("made-up", good, now), good, 401, "the signature is not that of the endpoint's secret"},
		"signed by another":          {path, sign("another-secret-of-16", good, now), good, 401, "the signature is not that of the endpoint's secret"},
		"of another, about this":     {"/api/v1/promotions/a/gates/other", sign("another-secret-of-16", good, now), good, 404, "no open promotion waits"},
		"an endpoint that is none":   {"/api/v1/promotions/a/gates/none", sign("", good, now), good, 401, "the signature is not that of the endpoint's secret"},
		"another body":               {path, sign(approverSecret, good, now), strings.Replace(good, "pass", "fail", 1), 401, "the signature is not that of the endpoint's secret"},
		"of ten minutes ago":         {path, sign(approverSecret, good, now.Add(-10*time.Minute)), good, 401, "it was signed at "},
		"of tomorrow":                {path, sign(approverSecret, good, now.Add(24*time.Hour)), good, 401, "it was signed at "},
		"another request's":          {"/api/v1/promotions/b/gates/board", sign(approverSecret, good, now), good, 400, `the answer is to the request \"a\", not to this one`},
		"an unknown request's":       {"/api/v1/promotions/b/gates/board", sign(approverSecret, `{"id":"b","outcome":"pass"}`, now), `{"id":"b","outcome":"pass"}`, 404, "no open promotion waits"},
		"our own request, sent back": {path, sign(approverSecret, string(request), now), string(request), 400, `the answer has the outcome \"\"; it must be pass, wait or fail`},
		"too much":                   {path, "", strings.Repeat("x", policies.MaxEndpointAnswer+1), 413, "the body is larger than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			reset()
			rec := send(c.path, c.signature, c.body)
			if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.error) {
				t.Errorf("it is answered %d %s, want %d %s", rec.Code, rec.Body, c.status, c.error)
			}
			if got, counts := read(), c.status == 200; (got.Outcome == "pass" && got.Reason == "CHG-7") != counts {
				t.Errorf("it is kept as %+v", got)
			}
		})
	}
	counted := []string{`liftlock_gate_callbacks_total{outcome="malformed",server="board"} 2`, `liftlock_gate_callbacks_total{outcome="pass",server="board"} 1`, `liftlock_gate_callbacks_total{outcome="unknown",server="board"} 1`,
		`liftlock_gate_callbacks_total{outcome="unknown",server="other"} 1`, `liftlock_gate_callbacks_total{outcome="unsigned",server=""} 7`}
	if diff := cmp.Diff(counted, scrape(s.metrics.callbacks)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	// A delivery that was seen on the way and sent again takes nothing back.
	reset()
	const wait = `{"id":"a","outcome":"wait"}`
	pass, later := sign(approverSecret, good, now.Add(-2*time.Second)), sign(approverSecret, wait, now)
	for i, c := range []struct {
		signature, body string
		status          int
		outcome         string
	}{{pass, good, 200, "pass"}, {pass, good, 200, "pass"}, {later, wait, 200, "wait"}, {pass, good, 409, "wait"}, {later, wait, 200, "wait"}} {
		if rec := send(path, c.signature, c.body); rec.Code != c.status || read().Outcome != c.outcome {
			t.Errorf("callback %d is answered %d %s, and %q counts", i+1, rec.Code, rec.Body, read().Outcome)
		}
	}
	claims, err := s.store.Claim(t.Context(), "me", 10)
	if err != nil || len(claims) != 1 || claims[0].Key != unit {
		t.Errorf("who waits for it isn't woken: %+v, %v", claims, err)
	}
	// Strangers whose bodies never come keep nobody out.
	reset()
	front := httptest.NewServer(main)
	defer front.Close()
	for range 200 {
		c, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{", path)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+path, strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Liftlock-Signature", sign(approverSecret, good, now))
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("a callback among 200 that stall is answered %v, %v", res, err)
	}
	res.Body.Close()
}
