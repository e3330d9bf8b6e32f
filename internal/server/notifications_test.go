package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const busSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receivedEvent is what a receiver was told.
type receivedEvent struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Data struct {
		Component, Environment, Message, PullURL, ConsoleURL string
		Pull                                                 int
	} `json:"data"`
}

// receiver takes notifications, and fails every fourth time.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	tries    int
	accepted []receivedEvent
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	verifier, err := standardwebhooks.NewWebhook(busSecret)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = verifier.Verify(body, req.Header)
		}
		var e receivedEvent
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			t.Errorf("a notification that isn't one: %v\n%s", err, body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.tries++; r.tries%4 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.accepted = append(r.accepted, e)
	}))
	t.Cleanup(r.Close)
	return r
}

// events are what the receiver was told.
func (r *receiver) events() []receivedEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.accepted)
}

// describeEvents lists events as "degraded web qa".
func describeEvents(all []receivedEvent) (out []string) {
	for _, e := range all {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(e.Type, "dev.liftlock."), ".v1")+" "+e.Data.Component+" "+e.Data.Environment)
	}
	return out
}

// TestNotifications has a channel that is down now and then be told of a promotion and of a revert,
// with the cause and a link, over a restart.
func TestNotifications(t *testing.T) {
	bus := newReceiver(t)
	s := startHarness(t, harnessOptions{
		pipeline:    pipelineYAML([]string{"notify: [{to: bus, on: [opened, waiting, verified, degraded, reverted]}, {to: nowhere, on: [opened]}]"}, dev, qa, prod),
		serverLines: "channels:\n  - {name: bus, type: webhook, url: \"" + bus.URL + "\", secret: " + busSecret + "}\n",
	})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitPromotion("web", "prod", "1.1.0")
	s.stop()
	s.start()
	const bad = "1.2.0-broken-in-qa"
	s.commitRelease("web", bad)
	s.waitFor("the revert merges", func() (bool, string) {
		rs := s.listReverts("web", "qa")
		return len(rs) == 1 && rs[0].Merged, ""
	})
	want := []string{"verified web dev", "opened web qa", "verified web qa", "opened web prod", "waiting web prod", "degraded web qa", "reverted web qa"}
	s.waitFor("all is told", func() (bool, string) {
		got := describeEvents(bus.events())
		return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) }), strings.Join(got, ", ")
	})
	all, ids := bus.events(), map[string]bool{}
	for _, e := range all {
		if ids[e.ID] {
			t.Errorf("%s was told twice: %s", e.ID, e.Data.Message)
		}
		ids[e.ID] = true
		if e.Data.ConsoleURL != "http://server.example/pipelines/shop/web" || e.Data.Pull > 0 && !strings.HasSuffix(e.Data.PullURL, s.pullPage(e.Data.Pull)) {
			t.Errorf("where to look: %+v", e)
		}
		if e.Type == "dev.liftlock.degraded.v1" && !strings.Contains(e.Data.Message, "is degraded in qa: web-qa: ") {
			t.Errorf("without the cause: %s", e.Data.Message)
		}
	}
	if got := describeEvents(all); slices.Index(got, "opened web qa") > slices.Index(got, "verified web qa") {
		t.Errorf("out of order: %v", got)
	}
}
