package gateclient

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// TestCallsAreCounted holds that every call that is made is observed with how it ended and how long
// it took, and none that isn't made.
func TestCallsAreCounted(t *testing.T) {
	for want, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"pass":      answers(200, `{"id":"a","outcome":"pass"}`),
		"wait":      answers(200, `{"id":"a","outcome":"wait"}`),
		"fail":      answers(200, `{"id":"a","outcome":"fail"}`),
		"undecided": answers(202, ""),
		"refused":   answers(403, ""),
		"away":      answers(503, ""),
		"given up":  nil,
	} {
		var f *endpointFixture
		ctx, cancel := context.WithCancel(t.Context())
		f = newEndpointFixture(t, func(w http.ResponseWriter, r *http.Request) {
			f.clock.Step(3 * time.Second)
			if answer == nil {
				cancel()
				return
			}
			answer(w, r)
		})
		request := policies.EndpointRequest{ID: "a"}
		if _, _, err := f.Call(ctx, "other", "", time.Minute, time.Minute, request); err == nil {
			t.Error("an unknown endpoint is asked")
		}
		_, _, _ = f.Call(ctx, "board", "", time.Minute, time.Minute, request)
		if want == "refused" || want == "away" {
			_, _, _ = f.Call(ctx, "board", "", time.Minute, time.Minute, request) // it isn't its time
		}
		cancel()
		if expected := []Call{{Gate: "http", Server: "board", Outcome: want, Took: 3 * time.Second}}; !slices.Equal(f.observed, expected) {
			t.Errorf("%s: observed are %+v", want, f.observed)
		}
	}
	for want, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"answered": success("scalar", `[1,"1"]`),
		"refused":  answers(422, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
		"away":     answers(500, ""),
	} {
		var f *promFixture
		f = newPromFixture(t, func(w http.ResponseWriter, r *http.Request) {
			f.clock.Step(2 * time.Second)
			answer(w, r)
		}, nil)
		var observed []Call
		f.OnCall = func(c Call) { observed = append(observed, c) }
		for range 2 { // the second is answered from memory
			_, _, _ = f.sample("up")
		}
		if expected := []Call{{Gate: "metric", Server: "main", Outcome: want, Took: 2 * time.Second}}; !slices.Equal(observed, expected) {
			t.Errorf("%s: observed are %+v", want, observed)
		}
	}
	f := newPromFixture(t, success("scalar", `[1,"1"]`), nil)
	calls := 0
	f.OnCall = func(Call) { calls++ }
	for i := range callsPerSecond + 2 { // those beyond the budget aren't made
		_, _, _ = f.sample(fmt.Sprint("up", i))
	}
	if calls != callsPerSecond || f.calls.Load() != callsPerSecond {
		t.Errorf("%d are observed of %d", calls, f.calls.Load())
	}
}
