package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

const (
	httpQA         = "    - {name: qa, after: [dev], merge: auto, gates: [{http: {endpoint: board, path: /approve, every: 1m, maxAge: 3m}}], verify: " + quickly + "}\n"
	endpointSecret = "a-secret-of-the-board"
)

// endpointServer is an endpoint that answers what a test says.
type endpointServer struct {
	mu       sync.Mutex
	status   int
	outcome  string // of a 200
	requests []policies.EndpointRequest
}

func (e *endpointServer) set(status int, outcome string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.outcome = status, outcome
}

// last is the last request, and how many there were.
func (e *endpointServer) last() (policies.EndpointRequest, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.requests) == 0 {
		return policies.EndpointRequest{}, 0
	}
	return e.requests[len(e.requests)-1], len(e.requests)
}

// withEndpoint lets the fixture's process ask an endpoint.
func (f *fixture) withEndpoint() *endpointServer {
	f.t.Helper()
	b := &endpointServer{status: http.StatusAccepted}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request policies.EndpointRequest
		if err != nil || json.Unmarshal(body, &request) != nil || r.URL.Path != "/gate/approve" || r.Header.Get("Idempotency-Key") != request.ID {
			f.t.Errorf("a request to %s can't be read: %s", r.URL, body)
		}
		if _, err := policies.VerifyEndpoint([]byte(endpointSecret), r.Header.Get(policies.EndpointSignature), body, f.clock.Now()); err != nil {
			f.t.Errorf("a request isn't signed: %v", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests = append(b.requests, request)
		rw.WriteHeader(b.status)
		fmt.Fprintf(rw, `{"id":%q,"outcome":%q,"reason":"CHG-7"}`, request.ID, b.outcome)
	}))
	f.t.Cleanup(s.Close)
	e, err := gateclient.NewEndpoints([]gateclient.Endpoint{{Name: "board", URL: s.URL + "/gate", Secret: endpointSecret}}, "https://liftlock.example", f.clock.Now, nil)
	f.must(err)
	f.endpoints = e
	f.addProcess(f.opts.Store, "another")
	f.runRepository()
	return b
}

// lookAfter runs a unit and the repository's merges some time later.
func (f *fixture) lookAfter(component string, d time.Duration) {
	f.t.Helper()
	f.clock.Step(d)
	f.must(f.run(wake.ForUnit(f.unit(component))))
	f.must(f.run(wake.ForMerge(f.repo.ID)))
}

// gateWaits holds that the promotion isn't merged, because of what a gate says.
func (f *fixture) gateWaits(component, kind string, outcome policies.Outcome, want string) {
	f.t.Helper()
	if f.pulls()[0].Merged {
		f.t.Fatalf("it is merged; want %q", want)
	}
	if g := f.gateResult(component, kind); g.Outcome != outcome || !strings.Contains(g.Reason, want) {
		f.t.Fatalf("it says %+v, want %s: %s", g, outcome, want)
	}
}

// callback is the board's later answer to a request, signed now.
func (f *fixture) callback(r policies.EndpointRequest, o policies.Outcome) error {
	f.t.Helper()
	return facts.AcceptCallback(f.t.Context(), f.opts.Store, "board", policies.EndpointAnswer{ID: r.ID, Outcome: o, Reason: "CHG-7", At: f.clock.Now().Truncate(time.Second)})
}

// TestEndpointIsWaitedFor holds that a promotion is merged once its endpoint says pass, at
// that very moment: what it said before doesn't count when it is away.
func TestEndpointIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, httpQA, c.components...)
			b := w.withEndpoint()
			p := w.openOne(c.key, "2.0.0", c.components...)
			w.gateWaits(c.key, "http", policies.Wait, "board hasn't decided yet")
			r, _ := b.last()
			if r.Version != 1 || r.Pipeline != "shop" || r.Environment != "qa" || r.Head != p.Head || r.Pull != int64(p.Number) || r.Attempt < 1 || len(r.Targets) != 1 || r.Release == nil || len(r.Release.Images) != 1 ||
				r.Release.Images[0].Tag != "2.0.0" || r.Callback != "https://liftlock.example/api/v1/promotions/"+r.ID+"/gates/board" {
				t.Errorf("it was sent %+v", r)
			}
			b.set(200, "wait")
			w.lookAfter(c.key, time.Minute)
			w.gateWaits(c.key, "http", policies.Wait, "board says wait: CHG-7")
			b.set(503, "")
			w.lookAfter(c.key, time.Minute)
			w.gateWaits(c.key, "http", policies.Wait, "board can't be asked: it answers 503")
			b.set(200, "pass")
			w.clock.Step(time.Minute)
			w.must(w.run(wake.ForUnit(w.unit(c.key))))
			w.gateWaits(c.key, "http", policies.Pass, "board says pass: CHG-7")
			b.set(503, "") // it is away at the merge
			w.lookAfter(c.key, 30*time.Second)
			w.gateWaits(c.key, "http", policies.Pass, "board says pass: CHG-7")
			b.set(200, "pass")
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
			if again, n := b.last(); again.Attempt < 4 || n < 4 {
				t.Errorf("the last of %d requests is the attempt %d", n, again.Attempt)
			}
			kept, err := w.opts.Store.Records(t.Context(), store.RecordFilter{})
			w.must(err)
			kept = slices.DeleteFunc(kept, func(r store.Record) bool { return !strings.HasPrefix(r.Kind, "endpoint") })
			if len(kept) != 0 {
				t.Errorf("what it said is kept: %v", kept)
			}
		})
	}
}

// TestEndpointCallsBack holds that what comes by the callback merges, that a pass expires,
// and that what was seen before and is sent again changes nothing.
func TestEndpointCallsBack(t *testing.T) {
	w := newFixture(t, "", httpQA, "web")
	b := w.withEndpoint()
	if err := w.callback(policies.EndpointRequest{ID: "unknown"}, policies.Pass); !errors.Is(err, facts.ErrNoRequest) {
		t.Errorf("an answer to nothing: %v", err)
	}
	w.openOne("web", "2.0.0", "web")
	w.lookAfter("web", 0)
	r, _ := b.last()
	if err := facts.AcceptCallback(t.Context(), w.opts.Store, "other", policies.EndpointAnswer{ID: r.ID, Outcome: policies.Pass, At: w.clock.Now()}); !errors.Is(err, facts.ErrNoRequest) {
		t.Errorf("another endpoint's answer: %v", err)
	}
	w.clock.Step(5 * time.Second)
	w.must(w.callback(r, policies.Pass))
	b.set(503, "") // so that it isn't merged
	w.clock.Step(3 * time.Minute)
	w.addProcess(w.opts.Store, "a third")
	w.runRepository()
	b.set(http.StatusAccepted, "")
	w.lookAfter("web", 0)
	w.gateWaits("web", "http", policies.Wait, "which counts for 3m; it is asked again")
	w.clock.Step(5 * time.Second)
	w.must(w.callback(r, policies.Wait))
	w.lookAfter("web", 0)
	w.gateWaits("web", "http", policies.Wait, "board says wait: CHG-7")
	old := policies.EndpointAnswer{ID: r.ID, Outcome: policies.Pass, Reason: "CHG-7", At: w.clock.Now().Add(-time.Minute).Truncate(time.Second)}
	if err := facts.AcceptCallback(t.Context(), w.opts.Store, "board", old); !errors.Is(err, facts.ErrStaleCallback) {
		t.Errorf("an older answer: %v", err)
	}
	w.clock.Step(5 * time.Second)
	w.must(w.callback(r, policies.Pass))
	w.must(w.callback(r, policies.Pass)) // what arrives twice is no error
	w.lookAfter("web", 0)
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
	if err := w.callback(r, policies.Pass); !errors.Is(err, facts.ErrNoRequest) {
		t.Errorf("an answer after the merge: %v", err)
	}
}

// TestEndpointFails holds that a fail is final for the head, also for a callback and while
// the endpoint says otherwise, until somebody has it asked again.
func TestEndpointFails(t *testing.T) {
	w := newFixture(t, "", httpQA, "web")
	b := w.withEndpoint()
	b.set(200, "fail")
	p := w.openOne("web", "2.0.0", "web")
	w.lookAfter("web", 0)
	w.gateWaits("web", "http", policies.Fail, "board says fail: CHG-7")
	r, before := b.last()
	b.set(200, "pass")
	w.lookAfter("web", 5*time.Minute)
	w.gateWaits("web", "http", policies.Fail, "board says fail: CHG-7")
	if err := w.callback(r, policies.Pass); !errors.Is(err, facts.ErrFinal) {
		t.Errorf("a callback after a fail: %v", err)
	}
	if _, n := b.last(); n != before {
		t.Errorf("it was asked %d more times", n-before)
	}
	if _, err := w.command("linus", p.Number, "web", command.Command{Verb: command.Retry, Environment: "qa"}); err != nil {
		t.Fatal(err)
	}
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
}

// TestUnknownEndpoint holds that a name that the server's file doesn't have is said.
func TestUnknownEndpoint(t *testing.T) {
	w := newFixture(t, "", httpQA, "web")
	w.openOne("web", "2.0.0", "web")
	w.gateWaits("web", "http", policies.Wait, "board can't be asked: no endpoint is asked from here")
	e, err := gateclient.NewEndpoints(nil, "", w.clock.Now, nil)
	w.must(err)
	w.endpoints = e
	w.addProcess(w.opts.Store, "another")
	w.runRepository()
	w.gateWaits("web", "http", policies.Wait, "board can't be asked: the server's file has no such name under endpoints")
}
