package gateclient

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/policies"
)

const testSecret = "a-secret-of-sixteen"

// endpointFixture is an endpoint that answers what a test says.
type endpointFixture struct {
	*Endpoints
	t        *testing.T
	clock    *clocktesting.FakeClock
	calls    atomic.Int64
	observed []Call
}

func newEndpointFixture(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *endpointFixture {
	t.Helper()
	f := &endpointFixture{t: t, clock: clocktesting.NewFakeClock(noon)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	var err error
	f.Endpoints, err = NewEndpoints([]Endpoint{{Name: "board", URL: s.URL + "/gate/", Secret: testSecret, Authorization: "Bearer abc"}}, "https://liftlock.example", f.clock.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.OnCall = func(c Call) { f.observed = append(f.observed, c) }
	return f
}

func (e *endpointFixture) call() (policies.EndpointAnswer, time.Time, error) {
	return e.Call(e.t.Context(), "board", "/approve", time.Minute, 10*time.Second, policies.EndpointRequest{ID: "a", Environment: "prod", Attempt: 3})
}

func TestCall(t *testing.T) {
	retryAfter := func(status int, value, body string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", value)
			answers(status, body)(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   policies.EndpointAnswer
		again  time.Duration // 0: no wish
		err    string
	}{
		"pass":               {answers(200, `{"id":"a","outcome":"pass","reason":"CHG-7","more":1}`), policies.EndpointAnswer{ID: "a", Outcome: policies.Pass, Reason: "CHG-7"}, 0, ""},
		"wait":               {answers(200, `{"id":"a","outcome":"wait","until":"2026-11-23T13:00:00Z"}`), policies.EndpointAnswer{ID: "a", Outcome: policies.Wait, Until: noon.Add(time.Hour)}, 0, ""},
		"fail":               {answers(200, `{"id":"a","outcome":"fail"}`), policies.EndpointAnswer{ID: "a", Outcome: policies.Fail}, 0, ""},
		"pending":            {answers(202, `whatever`), policies.EndpointAnswer{ID: "a"}, 0, ""},
		"pending for long":   {retryAfter(202, "600", ""), policies.EndpointAnswer{ID: "a"}, 10 * time.Minute, ""},
		"busy":               {retryAfter(429, "120", ""), policies.EndpointAnswer{}, 2 * time.Minute, "it answers 429: nothing"},
		"it isn't well":      {answers(503, "starting"), policies.EndpointAnswer{}, 5 * time.Second, "it answers 503: starting"},
		"it refuses":         {answers(403, "who are you"), policies.EndpointAnswer{}, time.Minute, "it refuses with 403: who are you"},
		"another success":    {answers(204, ""), policies.EndpointAnswer{}, time.Minute, "it answers 204: nothing"},
		"a redirect":         {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) }, policies.EndpointAnswer{}, time.Minute, "it answers 307, a redirect, which isn't followed; correct its url in the server's file"},
		"a cached answer":    {answers(200, `{"id":"b","outcome":"pass"}`), policies.EndpointAnswer{}, time.Minute, `the answer is to the request "b", not to this one; it must have the request's id`},
		"no answer":          {answers(200, `<html>`), policies.EndpointAnswer{}, time.Minute, `the answer is not a JSON object with "id", "outcome" and "reason"`},
		"too long an answer": {answers(200, `{"id":"a","outcome":"pass"}`+strings.Repeat(" ", policies.MaxEndpointAnswer)), policies.EndpointAnswer{}, time.Minute, "the answer is larger than 65536 bytes"},
		"a connection that ends": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"id":"a","outcome":"pass"}`)
		}, policies.EndpointAnswer{}, 5 * time.Second, "it can't be reached: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEndpointFixture(t, c.answer)
			got, again, err := f.call()
			if text := fmt.Sprint(err); text != c.err && (c.err != "" || err != nil) {
				t.Fatalf("the error is %q, want %q", text, c.err)
			}
			if want := noon.Add(c.again); c.again == 0 && !again.IsZero() || c.again != 0 && !again.Equal(want) {
				t.Errorf("it is asked again at %s, want %s", again, want)
			}
			if err != nil {
				if _, _, err := f.call(); err == nil || f.calls.Load() != 1 {
					t.Errorf("it is asked again at once: %d calls, %v", f.calls.Load(), err)
				}
				f.clock.SetTime(again)
				if _, _, err := f.call(); err == nil || f.calls.Load() != 2 {
					t.Errorf("it isn't asked again at its time: %d calls, %v", f.calls.Load(), err)
				}
				return
			}
			c.want.At = noon
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestRequestIsSent holds what an endpoint is sent, and that it is signed.
func TestRequestIsSent(t *testing.T) {
	f := newEndpointFixture(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		const want = `{"version":1,"id":"a","repository":"","pipeline":"","environment":"prod","component":"","release":null,"pull":0,"head":"","targets":null,"attempt":3,"callback":"https://liftlock.example/api/v1/promotions/a/gates/board"}`
		if string(body) != want {
			t.Errorf("the body is %s", body)
		}
		if at, err := policies.VerifyEndpoint([]byte(testSecret), r.Header.Get("Liftlock-Signature"), body, noon); err != nil || !at.Equal(noon) {
			t.Errorf("the signature: %s, %v", at, err)
		}
		if got := strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), r.Header.Get("Content-Type")}, " "); got != "POST /gate/approve a Bearer abc application/json" {
			t.Errorf("it is %s", got)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	if _, _, err := f.call(); err != nil {
		t.Fatal(err)
	}
	if string(f.Secret("board")) != testSecret || f.Secret("other") != nil {
		t.Error("the secrets are others")
	}
	if _, again, err := f.Call(t.Context(), "other", "", time.Minute, time.Second, policies.EndpointRequest{ID: "a"}); err == nil || !again.IsZero() {
		t.Errorf("an unknown endpoint: %s, %v", again, err)
	}
	for range callsPerSecond - 1 {
		if a, _, err := f.call(); err != nil || a.At.IsZero() {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if a, again, err := f.call(); err != nil || !a.At.IsZero() || !again.After(noon) {
		t.Errorf("beyond its budget: %+v, %s, %v", a, again, err)
	}
}

// TestEndpointTakesTooLong holds that an endpoint has its time and no more.
func TestEndpointTakesTooLong(t *testing.T) {
	release := make(chan struct{})
	f := newEndpointFixture(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	_, again, err := f.Call(t.Context(), "board", "", time.Minute, 20*time.Millisecond, policies.EndpointRequest{ID: "a"})
	if err == nil || err.Error() != "it doesn't answer in time" || !again.Equal(noon.Add(firstDelay)) {
		t.Errorf("%s, %v", again, err)
	}
}

func TestBadEndpoints(t *testing.T) {
	for _, bad := range []Endpoint{{Name: "x", URL: "https://u:p@x"}, {Name: "x", URL: "nowhere"}, {Name: "x", URL: "https://x", TLS: TLS{CA: []byte("x")}}} {
		if _, err := NewEndpoints([]Endpoint{bad}, "", time.Now, nil); err == nil || strings.Contains(err.Error(), "u:p") || !strings.HasPrefix(err.Error(), "the endpoint x: ") {
			t.Errorf("%s: %v", bad.URL, err)
		}
	}
}
