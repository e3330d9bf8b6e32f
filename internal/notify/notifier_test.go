package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/store"
)

const signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// received is one request that came to a receiver.
type received struct {
	header http.Header
	body   string
}

// fixture is a store with events, a receiver that answers as a test says, and notifiers.
type fixture struct {
	pullPages string // what the addresses of pull requests begin with
	t         *testing.T
	clock     *clocktesting.FakeClock
	store     *store.Store
	url       string
	routes    map[string]map[string][]string // by pipeline; nil: they can't be read
	logs      *observer.ObservedLogs
	log       *zap.Logger

	mu     sync.Mutex
	answer func(n int) (status int, header map[string]string)
	got    []received
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, pullPages: "https://hub.example/acme/fleet/pull", clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), routes: map[string]map[string][]string{"shop": {"main": {"degraded", "opened"}}}}
	f.store = store.OpenMemory(store.Options{Now: f.clock.Now})
	t.Cleanup(func() { _ = f.store.Close() })
	core, logs := observer.New(zapcore.DebugLevel)
	f.log, f.logs = zap.New(core), logs
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.got = append(f.got, received{r.Header, string(body)})
		status := http.StatusOK
		if f.answer != nil {
			var header map[string]string
			status, header = f.answer(len(f.got))
			for k, v := range header {
				w.Header().Set(k, v)
			}
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL + "/hooks/a-secret-part"
	return f
}

func (f *fixture) notifier(owner, kind string) *Notifier {
	f.t.Helper()
	n, err := New(Options{Store: f.store, Channels: []Channel{{Name: "main", Type: kind, URL: f.url, Secret: signingSecret}}, Console: "https://liftlock.example", Owner: owner, Clock: f.clock, Log: f.log,
		Routes: func(_ context.Context, _, name string) (map[string][]string, bool) {
			if f.routes == nil {
				return nil, false
			}
			return f.routes[name], true
		},
		PullURL: func(_ context.Context, _ string, number int) string {
			return fmt.Sprintf("%s/%d", f.pullPages, number)
		}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	first := len(f.got) == 0
	f.mu.Unlock()
	if first { // what was before isn't told
		if _, err := n.Step(f.t.Context(), "main"); err != nil {
			f.t.Fatal(err)
		}
	}
	return n
}

func (f *fixture) add(kind, component, message string) {
	f.t.Helper()
	if _, err := f.store.AddEvents(f.t.Context(), store.Event{At: f.clock.Now(), Repo: "hub:acme/fleet", Pipeline: "shop", Component: component, Environment: "prod", Pull: 7, Kind: event.Kind(kind), Message: message}); err != nil {
		f.t.Fatal(err)
	}
}

// run steps until there is nothing to do for a while, and gives how often a step failed.
func (f *fixture) run(n *Notifier, within time.Duration) (failed int) {
	f.t.Helper()
	for end := f.clock.Now().Add(within); ; {
		next, err := n.Step(f.t.Context(), "main")
		if err != nil {
			failed++
		}
		if next.IsZero() || next.After(end) {
			return failed
		}
		if next.After(f.clock.Now()) {
			f.clock.SetTime(next)
		}
	}
}

func (f *fixture) bodies() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.got {
		out = append(out, r.body)
	}
	return out
}

func TestWebhook(t *testing.T) {
	f := newFixture(t)
	f.add("degraded", "old", "before anybody asked")
	n := f.notifier("me", Webhook)
	f.add("verified", "web", "not asked for")
	f.add("degraded", "web", "web 1.2 in prod is degraded: web: 0 of 2 pods ready")
	f.add("opened", "api", "#7 opened")
	if failed := f.run(n, time.Minute); failed > 0 || len(f.got) != 2 {
		t.Fatalf("%d failed, %d came: %v", failed, len(f.got), f.bodies())
	}
	verifier, err := standardwebhooks.NewWebhook(signingSecret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.VerifyIgnoringTimestamp([]byte(f.got[0].body), f.got[0].header); err != nil {
		t.Errorf("its signature: %v", err)
	}
	var e map[string]any
	if err := json.Unmarshal([]byte(f.got[0].body), &e); err != nil {
		t.Fatal(err)
	}
	if e["id"] != f.got[0].header.Get("Webhook-Id") {
		t.Errorf("the id is %v, in the header %v", e["id"], f.got[0].header.Get("Webhook-Id"))
	}
	delete(e, "id")
	want := map[string]any{"specversion": "1.0", "type": "dev.liftlock.degraded.v1", "source": "liftlock/hub:acme%2Ffleet/shop", "subject": "prod/web", "time": f.clock.Now().UTC().Format(time.RFC3339), "datacontenttype": "application/json",
		"data": map[string]any{"event": "degraded", "repository": "hub:acme/fleet", "pipeline": "shop", "component": "web", "environment": "prod", "pull": 7.0, "pullURL": "https://hub.example/acme/fleet/pull/7",
			"consoleURL": "https://liftlock.example/pipelines/shop/web", "message": "web 1.2 in prod is degraded: web: 0 of 2 pods ready"}}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOneIncidentIsOneMessage holds what people read, and that one incident is one message.
func TestOneIncidentIsOneMessage(t *testing.T) {
	f := newFixture(t)
	n := f.notifier("me", Slack)
	for i := range 12 {
		f.add("degraded", fmt.Sprintf("svc-%d", i), "1.2 in prod is degraded: <b>*x*</b> & more")
		f.clock.Step(500 * time.Millisecond)
	}
	if got := f.run(n, 3*time.Second); got != 0 || len(f.got) != 0 {
		t.Fatalf("told before the others could come: %v", f.bodies())
	}
	f.run(n, time.Minute)
	if len(f.got) != 1 {
		t.Fatalf("%d messages: %v", len(f.got), f.bodies())
	}
	var m struct{ Text string }
	if err := json.Unmarshal([]byte(f.got[0].body), &m); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(m.Text, "\n")
	if len(lines) != 12 || lines[0] != ":rotating_light: *shop: degraded, 12 times*" || lines[11] != "… and 2 more" ||
		lines[1] != "svc-0: 1.2 in prod is degraded: &lt;b&gt;*x*&lt;/b&gt; &amp; more <https://hub.example/acme/fleet/pull/7|#7> <https://liftlock.example/pipelines/shop/svc-0|console>" {
		t.Errorf("it says\n%s", m.Text)
	}
	f.add("opened", "web", "#7 opened: web to prod")
	f.run(n, time.Minute)
	if got := f.bodies(); len(got) != 2 || !strings.Contains(got[1], `*shop/web/prod: opened*\n#7 opened: web to prod`) {
		t.Errorf("alone it says %v", got)
	}
}

// texts are the first lines of the messages, and the events' own words in each.
func (f *fixture) texts() (titles []string, events [][]string) {
	for _, body := range f.bodies() {
		var m struct{ Text string }
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			f.t.Fatal(err)
		}
		lines := strings.Split(m.Text, "\n")
		var own []string
		for _, line := range lines[1:] {
			own = append(own, strings.Fields(strings.TrimPrefix(line[strings.Index(line, ": ")+1:], " "))[0])
		}
		titles, events = append(titles, lines[0]), append(events, own)
	}
	return titles, events
}

// TestEventsInBetween holds that events that belong together are one message although another
// happens in between, which is told after it. A component's events are told in their order.
func TestEventsInBetween(t *testing.T) {
	f := newFixture(t)
	n := f.notifier("me", Slack)
	for i := range 40 {
		f.add("degraded", fmt.Sprintf("svc-%d", i), fmt.Sprintf("d%d", i))
		if i%10 == 0 {
			f.add("opened", fmt.Sprintf("other-%d", i), fmt.Sprintf("o%d", i))
		}
		if i == 20 {
			f.add("verified", "svc-1", "nobody asked")
		}
	}
	f.run(n, time.Minute)
	if titles, _ := f.texts(); !slices.Equal(titles, []string{":rotating_light: *shop: degraded, 40 times*", "*shop: opened, 4 times*"}) {
		t.Errorf("it says %q", titles)
	}

	f = newFixture(t)
	n = f.notifier("me", Slack)
	for _, e := range [][3]string{{"degraded", "web", "1"}, {"opened", "web", "2"}, {"degraded", "web", "3"}, {"degraded", "api", "4"}, {"opened", "api", "5"}, {"opened", "db", "6"}} {
		f.add(e[0], e[1], e[2])
	}
	f.run(n, time.Minute)
	if _, events := f.texts(); cmp.Diff([][]string{{"1", "4"}, {"2", "5", "6"}, {"3"}}, events) != "" {
		t.Errorf("it says %q", events)
	}
}

// TestRandomEventsAreSent holds, over random events, outages and restarts, that each is told, and a
// component's in their order. None is told twice where the receiver took all of it.
func TestRandomEventsAreSent(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		f := newFixture(t)
		n := f.notifier("me", Slack)
		isDown := rnd.IntN(2) == 0
		refused := map[int]bool{}
		f.answer = func(k int) (int, map[string]string) {
			if isDown && rnd.IntN(2) == 0 {
				refused[k] = true
				return http.StatusServiceUnavailable, nil
			}
			return http.StatusOK, nil
		}
		component := map[string]string{}
		want := 0
		for i := range 30 {
			kind := []string{"degraded", "opened", "verified"}[rnd.IntN(3)]
			text := fmt.Sprintf("e%d", i)
			component[text] = []string{"web", "api", "db", ""}[rnd.IntN(4)]
			if f.add(kind, component[text], text); kind != "verified" {
				want++
			}
			f.clock.Step(time.Duration(rnd.IntN(8)) * time.Second)
			switch step := rnd.IntN(6); {
			case step == 0:
				_, _ = n.Step(t.Context(), "main") // it fails where the receiver is down
			case step == 1 && len(f.bodies()) > 0:
				f.clock.Step(2 * slotFor)
				n = f.notifier(fmt.Sprint("another-", i), Slack)
			}
		}
		f.clock.Step(2 * slotFor)
		f.run(n, time.Hour)
		_, events := f.texts()
		sent, last := map[string]bool{}, map[string]int{}
		for k, texts := range events {
			if refused[k+1] {
				continue
			}
			for _, text := range texts {
				i, err := strconv.Atoi(strings.TrimPrefix(text, "e"))
				if err != nil {
					t.Fatalf("seed %d: %q is no event", seed, text)
				}
				c := component[text]
				if at, is := last[c]; is && at >= i {
					t.Errorf("seed %d: %s of %q is told after e%d", seed, text, c, at)
				}
				last[c], sent[text] = i, true
			}
		}
		if len(sent) != want {
			t.Errorf("seed %d: %d of %d events are told: %q", seed, len(sent), want, events)
		}
	}
}

func TestTeamsCard(t *testing.T) {
	f := newFixture(t)
	n := f.notifier("me", Teams)
	f.add("degraded", "web", "a [link](https://evil.example) and *more*")
	f.run(n, time.Minute)
	if len(f.got) != 1 {
		t.Fatalf("%d messages", len(f.got))
	}
	for _, want := range []string{`"contentType":"application/vnd.microsoft.card.adaptive"`, `"text":"shop/web/prod: degraded"`, `a \\[link\\](https://evil.example) and \\*more\\*`, `[7](https://hub.example/acme/fleet/pull/7)`, `"color":"Attention"`} {
		if !strings.Contains(f.got[0].body, want) {
			t.Errorf("%s is not in %s", want, f.got[0].body)
		}
	}
}

// TestWordsOfGitLab tells of what is on GitLab in its people's words.
func TestWordsOfGitLab(t *testing.T) {
	for kind, link := range map[string]string{Teams: `[7](https://git.example/acme/fleet/-/merge_requests/7)`, Slack: `|!7`} {
		f := newFixture(t)
		f.pullPages = "https://git.example/acme/fleet/-/merge_requests"
		n := f.notifier("me", kind)
		f.add("degraded", "web", "the pull request of the revert waits")
		f.run(n, time.Minute)
		if len(f.got) != 1 || !strings.Contains(f.got[0].body, "the merge request of the revert waits") || !strings.Contains(f.got[0].body, link) {
			t.Errorf("%s: %+v", kind, f.got)
		}
	}
}

// TestNothingIsLost lets the receiver fail every other time and processes die between any
// two steps: everything comes, in order, whatever comes twice.
func TestNothingIsLost(t *testing.T) {
	f := newFixture(t)
	f.answer = func(n int) (int, map[string]string) {
		if n%2 == 1 {
			return http.StatusBadGateway, nil
		}
		return http.StatusNoContent, nil
	}
	n := f.notifier("a", Webhook)
	for i := range 20 {
		f.add("degraded", "web", fmt.Sprintf("event %02d", i))
	}
	for i := range 200 {
		if i%3 == 2 {
			f.clock.Step(2 * slotFor) // the one before is gone with its slot
			n = f.notifier(fmt.Sprintf("process %d", i), Webhook)
		}
		next, _ := n.Step(t.Context(), "main")
		if next.After(f.clock.Now()) {
			f.clock.SetTime(next)
		}
	}
	var order, ids []string
	for i, r := range f.got {
		if i%2 == 0 {
			continue // refused
		}
		_, rest, _ := strings.Cut(r.body, "event ")
		order = append(order, rest[:2])
		ids = append(ids, r.header.Get("Webhook-Id"))
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != 20 || len(slices.Compact(ids)) != 20 {
		t.Errorf("what came is %v", order)
	}
}

// TestOneProcessSends holds that of two processes one sends, and the other when that is gone.
func TestOneProcessSends(t *testing.T) {
	f := newFixture(t)
	a, b := f.notifier("a", Webhook), f.notifier("b", Webhook)
	f.add("degraded", "web", "once")
	f.run(b, time.Second)
	f.run(a, time.Second)
	f.run(b, time.Second)
	if len(f.got) != 1 {
		t.Fatalf("it was sent %d times", len(f.got))
	}
	f.clock.Step(2 * slotFor)
	f.add("degraded", "web", "twice")
	f.run(b, time.Second)
	if len(f.got) != 2 {
		t.Errorf("nobody took over: %d", len(f.got))
	}
}

func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(n int) (int, map[string]string)
		tries   int           // in an hour
		within  time.Duration // the last of them
		sent    bool          // what comes after is told
		failing bool
	}{
		"a receiver that wants a pause": {func(n int) (int, map[string]string) {
			if n == 1 {
				return http.StatusTooManyRequests, map[string]string{"Retry-After": "600"}
			}
			return http.StatusOK, nil
		}, 3, 601 * time.Second, true, false},
		"a channel that is gone": {func(int) (int, map[string]string) { return http.StatusNotFound, nil }, 17, time.Hour, false, true},
		"a message that is refused": {func(n int) (int, map[string]string) {
			if n <= maxRefusals {
				return http.StatusBadRequest, nil
			}
			return http.StatusOK, nil
		}, maxRefusals + 1, time.Minute, true, false},
		"a redirect": {func(int) (int, map[string]string) {
			return http.StatusTemporaryRedirect, map[string]string{"Location": "https://evil.example"}
		}, 17, time.Hour, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.answer = c.answer
			n := f.notifier("me", Webhook)
			began := f.clock.Now()
			f.add("degraded", "web", "first")
			f.add("degraded", "web", "second")
			f.run(n, time.Hour)
			if len(f.got) != c.tries || f.clock.Since(began) > c.within {
				t.Errorf("%d tries in %v", len(f.got), f.clock.Since(began))
			}
			if sent := strings.Contains(f.got[len(f.got)-1].body, "second"); sent != c.sent {
				t.Errorf("the second was sent: %t", sent)
			}
			if _, failing := n.Failures()["main"]; failing != c.failing {
				t.Errorf("it counts as failing: %t, %+v", failing, n.Failures())
			}
			f.holdsNoSecret(n)
		})
	}
}

// holdsNoSecret holds that a channel's address is in no log and no error.
func (f *fixture) holdsNoSecret(n *Notifier) {
	f.t.Helper()
	for _, e := range f.logs.All() {
		if text := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(text, "a-secret-part") || strings.Contains(text, "MfKQ9r8GKYq") {
			f.t.Errorf("a log line shows a secret: %s", text)
		}
	}
	for _, x := range n.Failures() {
		if strings.Contains(x.Err, "a-secret-part") {
			f.t.Errorf("an error shows a secret: %s", x.Err)
		}
	}
}

func TestReceiverAway(t *testing.T) {
	f := newFixture(t)
	f.url = "http://127.0.0.1:1/hooks/a-secret-part"
	n := f.notifier("me", Slack)
	f.add("degraded", "web", "x")
	if failed := f.run(n, time.Minute); failed == 0 || len(n.Failures()) != 1 {
		t.Errorf("%d failed: %v", failed, n.Failures())
	}
	f.holdsNoSecret(n)
	f.clock.Step(maxAge)
	f.run(n, time.Minute)
	if left := f.logs.FilterMessage("a notification is too old and is left out").Len(); left != 1 {
		t.Errorf("%d were left out", left)
	}
}

// TestRulesThatCannotBeRead holds that an event waits for its pipeline's rules, for a while.
func TestRulesThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	n := f.notifier("me", Webhook)
	routes := f.routes
	f.routes = nil
	f.add("degraded", "web", "waits")
	f.run(n, time.Minute)
	if len(f.got) != 0 {
		t.Fatal("it was sent without rules")
	}
	f.routes = routes
	f.run(n, time.Minute)
	if len(f.got) != 1 {
		t.Errorf("%d came with the rules", len(f.got))
	}
	f.routes = nil
	f.add("degraded", "web", "waits in vain")
	f.clock.Step(rulesWithin)
	f.run(n, time.Minute)
	f.routes = routes
	f.run(n, time.Minute)
	if len(f.got) != 1 {
		t.Errorf("%d came", len(f.got))
	}
}

// TestRun holds that a new event is told without anybody stepping.
func TestRun(t *testing.T) {
	f := newFixture(t)
	n := f.notifier("me", Webhook)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	f.add("degraded", "web", "x")
	deadline := time.Now().Add(20 * time.Second)
	for len(f.bodies()) == 0 && time.Now().Before(deadline) {
		if f.clock.HasWaiters() {
			f.clock.Step(time.Second)
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if len(f.bodies()) != 1 {
		t.Errorf("%d came", len(f.bodies()))
	}
}

func TestBadChannels(t *testing.T) {
	for want, c := range map[string]Channel{
		"the channel x: its secret is not whsec_":   {Name: "x", Type: Webhook, URL: "https://a.example", Secret: "whsec_%%"},
		"the channel y: there is no type \"pager\"": {Name: "y", Type: "pager"},
	} {
		if _, err := New(Options{Channels: []Channel{c}, Clock: clocktesting.NewFakeClock(time.Now())}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestAClockThatWasAhead holds that neither an event nor a wait that was written by a clock
// that was far ahead keeps a channel silent until that time comes.
func TestAClockThatWasAhead(t *testing.T) {
	for name, ahead := range map[string]func(f *fixture, n *Notifier){
		"an event": func(f *fixture, _ *Notifier) {
			f.clock.Step(9000 * time.Hour)
			f.add("degraded", "web", "of then")
			f.clock.SetTime(f.clock.Now().Add(-9000 * time.Hour))
		},
		"a wait": func(f *fixture, n *Notifier) {
			f.answer = func(k int) (int, map[string]string) { return map[bool]int{true: 503, false: 200}[k == 1], nil }
			f.clock.Step(9000 * time.Hour)
			f.add("degraded", "web", "of then")
			f.clock.Step(gatherFor)
			if _, err := n.Step(f.t.Context(), "main"); err == nil {
				f.t.Fatal("it was sent")
			}
			f.clock.SetTime(f.clock.Now().Add(-9000 * time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			n := f.notifier("me", Slack)
			ahead(f, n)
			f.clock.Step(2 * slotFor)
			f.add("opened", "web", "of now")
			f.run(n, 10*time.Minute)
			f.mu.Lock()
			defer f.mu.Unlock()
			if last := f.got[max(len(f.got)-1, 0):]; len(last) == 0 || !strings.Contains(last[0].body, "of now") {
				t.Errorf("%d were sent: %+v", len(f.got), f.got)
			}
		})
	}
}
