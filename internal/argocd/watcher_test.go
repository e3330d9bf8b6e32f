package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

type appChange struct {
	app     verification.App
	deleted bool
}

type testWatcher struct {
	*apiServer
	*Watcher
	t       *testing.T
	changes chan appChange
	logs    *observer.ObservedLogs
}

func startWatcher(t *testing.T, s *apiServer, adjust func(*Options)) *testWatcher {
	t.Helper()
	return startAdjusted(t, s, adjust, func(w *Watcher) {
		for _, f := range slices.Concat(w.appFeeds, w.setFeeds, w.projectFeeds) {
			f.(*feed).retry = 5 * time.Millisecond
		}
	})
}

// startAdjusted starts a Watcher after its options, and itself, were adjusted.
func startAdjusted(t *testing.T, s *apiServer, adjust func(*Options), hurry func(*Watcher)) *testWatcher {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	w := &testWatcher{apiServer: s, t: t, changes: make(chan appChange, 100_000), logs: logs}
	o := Options{Name: "hub", Config: s.config(), Namespaces: []string{"argocd"}, Log: zap.New(core), OnChange: func(app verification.App, deleted bool) { w.changes <- appChange{app, deleted} }}
	if adjust != nil {
		adjust(&o)
	}
	watcher, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Watcher = watcher
	hurry(watcher)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := watcher.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("Run doesn't end")
		}
	})
	return w
}

// next waits for a change that is as wanted, and ignores others before it.
func (t *testWatcher) next(what string, wanted func(appChange) bool) appChange {
	t.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case c := <-t.changes:
			if wanted(c) {
				return c
			}
		case <-timeout:
			t.t.Fatalf("waited in vain for %s; Ready: %v", what, t.Ready())
		}
	}
}

// until waits for a condition that nothing announces.
func (t *testWatcher) until(what string, ok func() bool) {
	t.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ; !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.t.Fatalf("waited in vain for %s; Ready: %v", what, t.Ready())
		}
	}
}

func isNamed(name string) func(appChange) bool {
	return func(c appChange) bool { return c.app.Name == name }
}

func healthIs(name, health string) func(appChange) bool {
	return func(c appChange) bool { return c.app.Name == name && c.app.Health == health }
}

func object(health string) string {
	return fmt.Sprintf(`{"spec":{},"status":{"health":{"status":%q}}}`, health)
}

func TestListsInPagesThenWatches(t *testing.T) {
	s := newAPIServer(t)
	for i := range 2*pageSize + 7 {
		s.set("applications", "argocd", fmt.Sprintf("app-%04d", i), object("Healthy"))
	}
	s.set("applications", "other", "not-ours", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.next("the last one", isNamed(fmt.Sprintf("app-%04d", 2*pageSize+6)))
	w.until("ready", func() bool { return w.Ready() == nil })
	if got := len(w.List()); got != 2*pageSize+7 {
		t.Errorf("%d applications", got)
	}
	if got := s.seen("/applications?") - s.watches("applications"); got != 3 {
		t.Errorf("%d pages", got)
	}
	if list := w.List(); list[0].Name != "app-0000" || list[0].ArgoCD != "hub" {
		t.Errorf("first is %+v", list[0])
	}
	s.set("applications", "argocd", "new", object("Progressing"))
	w.next("the new one", isNamed("new"))
	s.set("applications", "argocd", "new", object("Healthy"))
	w.next("its health", healthIs("new", "Healthy"))
	s.remove("applications", "argocd", "new")
	c := w.next("its end", isNamed("new"))
	if _, ok := w.Get("argocd", "new"); ok || !c.deleted || c.app.Health != "Healthy" {
		t.Errorf("%+v, still there: %v", c, ok)
	}
	if _, ok := w.Get("argocd", "app-0003"); !ok {
		t.Error("app-0003 is missing")
	}
}

func TestOnlyRelevantChangesReported(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.next("web", isNamed("web"))
	s.set("applications", "argocd", "web", `{"metadata":{"annotations":{"a":"b"}},"status":{"health":{"status":"Healthy"},"summary":{"externalURLs":["https://web.example"]}}}`)
	s.set("applications", "argocd", "web", `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}},"status":{"health":{"status":"Healthy"}}}`)
	if c := w.next("the mark", isNamed("web")); !c.app.RefreshPending {
		t.Errorf("told of %+v", c)
	}
	s.set("applications", "argocd", "web", `{"status":{"health":{"status":"Healthy"},"reconciledAt":"2025-03-04T10:00:00Z"}}`)
	c := w.next("its end", isNamed("web"))
	if want := time.Date(2025, 3, 4, 10, 0, 0, 0, time.UTC); c.app.RefreshPending || !c.app.RefreshedAt.Equal(want) || !c.app.ReconciledAt.Equal(want) {
		t.Errorf("%+v", c.app)
	}
	s.set("applications", "argocd", "web", `{"metadata":{"labels":{"team":"shop"}},"status":{"health":{"status":"Healthy"},"reconciledAt":"2025-03-04T10:00:00Z"}}`)
	if c := w.next("its label", isNamed("web")); c.app.Labels["team"] != "shop" {
		t.Errorf("told of %+v", c)
	}
	s.set("applications", "argocd", "web", `{"status":{"health":{"status":"Healthy"},"summary":{"images":["web:2"]},"reconciledAt":"2025-03-04T10:00:00Z"}}`)
	if c := w.next("what runs", isNamed("web")); !slices.Equal(c.app.Images, []string{"web:2"}) {
		t.Errorf("told of %+v", c)
	}
}

func TestContinuesAfterWatchEnds(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.next("web", isNamed("web"))
	w.until("a watch", func() bool { return s.watches("applications") == 1 })
	s.set("applications", "argocd", "web", object("Progressing")) // a watch that says nothing counts as broken
	w.next("what it says", healthIs("web", "Progressing"))
	s.cutWatches()
	s.set("applications", "argocd", "web", object("Degraded")) // while nobody watches
	w.next("what was missed", healthIs("web", "Degraded"))
	if got := s.seen("applications?limit="); got != 1 {
		t.Errorf("listed %d times, want the watch to go on from where it was", got)
	}
}

func TestBookmarksMoveWatchStart(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.next("web", isNamed("web"))
	w.until("a watch", func() bool { return s.watches("applications") == 1 })
	s.bookmark("applications")
	s.mu.Lock()
	at := s.version
	s.mu.Unlock()
	s.set("applications", "argocd", "web", object("Degraded")) // tells that the bookmark was read
	w.next("degraded", healthIs("web", "Degraded"))
	s.bookmark("applications")
	w.until("a watch from a bookmark", func() bool {
		s.cutWatches()
		return s.seen(fmt.Sprintf("resourceVersion=%d", at+2)) > 0
	})
}

func TestListsAgainWhenTheWatchIsTooOld(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "goes", object("Healthy"))
	s.set("applications", "argocd", "stays", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.until("both", func() bool { return len(w.List()) == 2 && s.watches("applications") == 1 })
	s.failWith("applications", http.StatusServiceUnavailable)
	s.cutWatches()
	s.remove("applications", "argocd", "goes")
	s.set("applications", "argocd", "stays", object("Degraded"))
	s.expireWatches()
	s.failWith("applications", 0)
	w.next("the change", healthIs("stays", "Degraded"))
	if c := w.next("the end of the other", isNamed("goes")); !c.deleted {
		t.Errorf("%+v", c)
	}
	w.until("ready", func() bool { return w.Ready() == nil })
}

func TestReadySaysWhyNotAndSince(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	s.failWith("applications", http.StatusForbidden)
	w := startWatcher(t, s, nil)
	w.until("the reason", func() bool { return strings.Contains(fmt.Sprint(w.Ready()), "forbidden") })
	for _, want := range []string{"argocd hub", s.url, "list applications in namespace argocd", "resources [applications], verbs [get, list, watch]", "since 20"} {
		if got := w.Ready().Error(); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	s.failWith("applications", 0)
	w.until("ready", func() bool { return w.Ready() == nil })

	// A watch that breaks is only told after a while; the last state stays.
	f := w.appFeeds[0].(*feed)
	w.until("a watch", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.downSince.IsZero() })
	s.failWith("applications", http.StatusInternalServerError)
	s.cutWatches()
	w.until("the failure", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.lastErr != nil && !f.downSince.IsZero() })
	if err := w.Ready(); err != nil {
		t.Errorf("at once: %v", err)
	}
	f.mu.Lock()
	f.downSince = f.downSince.Add(-brokenGrace)
	f.mu.Unlock()
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "failing as told") {
		t.Errorf("after a while: %v", err)
	}
	if _, ok := w.Get("argocd", "web"); !ok {
		t.Error("the last state is gone")
	}
	s.failWith("applications", 0)
	w.until("ready again", func() bool { return w.Ready() == nil })
	if got := w.logs.FilterMessageSnippet("can't be watched").Len(); got != 2 {
		t.Errorf("%d warnings, want one an outage", got)
	}
}

func TestUnreachable(t *testing.T) {
	s := newAPIServer(t)
	config := s.config()
	config.Host = "http://127.0.0.1:1"
	w := startWatcher(t, s, func(o *Options) { o.Config = config })
	w.until("the reason", func() bool { return strings.Contains(fmt.Sprint(w.Ready()), "refused") })
}

func TestAllNamespaces(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "a", object("Healthy"))
	s.set("applications", "team", "b", object("Healthy"))
	w := startWatcher(t, s, func(o *Options) { o.Namespaces = nil })
	w.until("both", func() bool { return len(w.List()) == 2 })
	s.set("applications", "third", "c", object("Healthy"))
	w.next("c", isNamed("c"))
}

func TestUnreadableParts(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "odd", `{"status":{"health":"a string"}}`)
	s.mu.Lock()
	s.objects["applications/argocd/nameless"] = json.RawMessage(`{"metadata":{"name":7}}`)
	s.mu.Unlock()
	s.set("applications", "argocd", "web", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.until("ready", func() bool { return w.Ready() == nil })
	odd, ok := w.Get("argocd", "odd")
	if !ok || len(odd.Conditions) != 1 || !strings.Contains(odd.Conditions[0].Message, "health") {
		t.Fatalf("%+v", odd)
	}
	e := verification.Expect{Commit: "x"}
	if v, _ := verification.Judge(e, odd, nil, verification.Memory{}, time.Now()); v.State == verification.Absent || v.State == verification.Verified {
		t.Errorf("%+v", v)
	}
	if got := len(w.List()); got != 2 {
		t.Errorf("%d applications", got)
	}
	if w.logs.FilterMessageSnippet("without a readable name").Len() != 1 || w.logs.FilterMessageSnippet("can't be read").Len() != 1 {
		t.Errorf("%v", w.logs.All())
	}
	// An unreadable state doesn't leave the last good one to be believed.
	w.next("web", isNamed("web"))
	s.set("applications", "argocd", "web", `{"status":{"health":{"status":7}}}`)
	if c := w.next("web", isNamed("web")); c.app.Health != "" || c.app.Conditions[0].Type != unreadableCondition {
		t.Errorf("%+v", c)
	}
	s.set("applications", "argocd", "web", object("Healthy"))
	w.next("web again", healthIs("web", "Healthy"))
}

const owned = `{"metadata":{"ownerReferences":[{"kind":"ApplicationSet","name":"shop"}]},"status":{"health":{"status":"Healthy"}}}`

func TestRollingSyncSteps(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "plain", object("Healthy"))
	s.set("applicationsets", "argocd", "shop", `{"status":{"applicationStatus":[{"application":"web-qa","status":"Waiting"},{"application":"plain","status":"Waiting"}]}}`)
	w := startWatcher(t, s, nil)
	w.next("plain", isNamed("plain"))
	s.set("applications", "argocd", "web-qa", owned)
	step := func(want string) {
		t.Helper()
		w.next("step "+want, func(c appChange) bool { return c.app.Name == "web-qa" && c.app.SetStep.Status == want })
	}
	step("Waiting")
	s.set("applicationsets", "argocd", "shop", `{"status":{"applicationStatus":[{"application":"web-qa","status":"Pending"}]}}`)
	step("Pending")
	s.set("applications", "argocd", "web-qa", strings.Replace(owned, "Healthy", "Progressing", 1))
	if c := w.next("health", healthIs("web-qa", "Progressing")); c.app.SetStep.Status != "Pending" || c.app.OwnedBySet != "shop" {
		t.Errorf("%+v", c)
	}
	s.remove("applicationsets", "argocd", "shop")
	step("")
	if app, _ := w.Get("argocd", "plain"); app.SetStep.Status != "" {
		t.Errorf("a set that doesn't own it: %+v", app)
	}
}

func TestForbiddenApplicationSetsAreReportedOnce(t *testing.T) {
	s := newAPIServer(t)
	s.failWith("applicationsets", http.StatusForbidden)
	s.set("applications", "argocd", "web-qa", owned)
	w := startWatcher(t, s, nil)
	w.until("the message", func() bool { return w.logs.FilterMessageSnippet("RollingSync").Len() == 1 })
	w.until("ready", func() bool { return w.Ready() == nil })
	sets, err := w.Sets()
	if len(sets) != 0 || err == nil || !strings.Contains(err.Error(), "resources [applicationsets]") {
		t.Errorf("Sets: %v, %v", sets, err)
	}
}

func TestRefresh(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	w := startWatcher(t, s, nil)
	ctx := context.Background()
	w.next("web", isNamed("web"))
	if err := w.Refresh(ctx, "argocd", "web"); err != nil {
		t.Fatal(err)
	}
	if c := w.next("the mark", isNamed("web")); !c.app.RefreshPending {
		t.Errorf("%+v", c)
	}
	if err := w.Refresh(ctx, "argocd", "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	s.failWith("patch", http.StatusForbidden)
	err := w.Refresh(ctx, "argocd", "web")
	for _, want := range []string{"refresh Application argocd/web", "resources [applications], verbs [patch]", "refresh: off"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	off := startWatcher(t, s, func(o *Options) { o.Refresh = RefreshOff })
	if err := off.Refresh(ctx, "argocd", "web"); !errors.Is(err, ErrRefreshOff) {
		t.Errorf("got %v", err)
	}
}

// TestRefreshHydrates asks the source hydrator too, unless it is at work.
func TestRefreshHydrates(t *testing.T) {
	s := newAPIServer(t)
	for name, phase := range map[string]string{"web": "Hydrated", "busy": "Hydrating"} {
		s.set("applications", "argocd", name, `{"spec":{"sourceHydrator":{"drySource":{"path":"."},"syncSource":{"targetBranch":"env/qa","path":"web"}}},"status":{"sourceHydrator":{"currentOperation":{"phase":"`+phase+`"}}}}`)
	}
	s.set("applications", "argocd", "plain", object("Healthy"))
	w := startWatcher(t, s, nil)
	w.until("ready", func() bool { return w.Ready() == nil })
	for name, want := range map[string]bool{"web": true, "busy": false, "plain": false} {
		if err := w.Refresh(context.Background(), "argocd", name); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		has := strings.Contains(string(s.objects["applications/argocd/"+name]), `"argocd.argoproj.io/hydrate":"normal"`)
		s.mu.Unlock()
		if has != want {
			t.Errorf("%s: hydration is asked for: %v", name, has)
		}
	}
}

func TestSync(t *testing.T) {
	s := newAPIServer(t)
	s.set("applications", "argocd", "web", `{"spec":{"syncPolicy":{"syncOptions":["ServerSideApply=true"],"retry":{"limit":3}}},"status":{"operationState":{"phase":"Succeeded"}}}`)
	w := startWatcher(t, s, nil)
	ctx := context.Background()
	w.next("web", isNamed("web"))
	if err := w.Sync(ctx, "argocd", "web", verification.SyncRequest{Revisions: []string{"abc"}, Prune: verification.PruneAuto, Reason: "web 1.2 in qa"}); err != nil {
		t.Fatal(err)
	}
	if c := w.next("the operation", isNamed("web")); !c.app.Pending {
		t.Errorf("%+v", c)
	}
	operation := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		var o struct{ Operation json.RawMessage }
		_ = json.Unmarshal(s.objects["applications/argocd/web"], &o)
		return string(o.Operation)
	}
	want := `{"info":[{"name":"Reason","value":"web 1.2 in qa"}],"initiatedBy":{"username":"liftlock"},"retry":{"limit":3},"sync":{"revision":"abc","syncOptions":["ServerSideApply=true"]}}`
	if got := operation(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := w.Sync(ctx, "argocd", "web", verification.SyncRequest{Revisions: []string{"other"}}); err != nil || operation() != want {
		t.Errorf("one is pending already: %v, %s", err, operation())
	}
	if err := w.Sync(ctx, "argocd", "none", verification.SyncRequest{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestSyncPrunes where the pipeline, or the Application's own policy, says so.
func TestSyncPrunes(t *testing.T) {
	const policy = `{"spec":{"syncPolicy":{"automated":{"enabled":false,"prune":true}}}}`
	for _, c := range []struct {
		app   string
		prune verification.Prune
		want  bool
	}{
		{`{}`, verification.PruneAuto, false},
		{`{"spec":{"syncPolicy":{"automated":{}}}}`, verification.PruneAuto, false},
		{policy, verification.PruneAuto, true},
		{policy, verification.PruneNever, false},
		{`{}`, verification.PruneAlways, true},
	} {
		var now wireSyncable
		if err := json.Unmarshal([]byte(c.app), &now); err != nil {
			t.Fatal(err)
		}
		sync, _ := now.newOperation(verification.SyncRequest{Prune: c.prune})["sync"].(map[string]any)
		if got := sync["prune"] == true; got != c.want || sync["revision"] != nil {
			t.Errorf("%s with prune: %s: %v", c.app, c.prune, sync)
		}
	}
}

// TestSyncedRevisions are each source's own, and none of an Application whose sources have
// become others.
func TestSyncedRevisions(t *testing.T) {
	for _, c := range []struct {
		app       string
		revisions []string
		want      string
		byAPI     string
	}{
		{`{"spec":{"source":{}}}`, []string{"abc"}, `{"revision":"abc"}`, `"revision":"abc",`},
		{`{"spec":{"sources":[{}]}}`, []string{"abc"}, `{"revisions":["abc"]}`, `"revisions":["abc"],"sourcePositions":[1],`},
		{`{"spec":{"sources":[{},{},{}]}}`, []string{"", "abc", "abc"}, `{"revisions":["","abc","abc"]}`, `"revisions":["abc","abc"],"sourcePositions":[2,3],`},
		{`{"spec":{"sources":[{},{}]}}`, nil, `{}`, ""},
		{`{"spec":{"sources":[{},{}]}}`, []string{"abc"}, `{}`, ""},
		{`{"spec":{"source":{}}}`, []string{"abc", ""}, `{}`, ""},
	} {
		var now wireSyncable
		if err := json.Unmarshal([]byte(c.app), &now); err != nil {
			t.Fatal(err)
		}
		request := verification.SyncRequest{Revisions: c.revisions}
		if got, err := json.Marshal(now.newOperation(request)["sync"]); string(got) != c.want {
			t.Errorf("%s to %q by a patch: %s, %v", c.app, c.revisions, got, err)
		}
		if got, err := json.Marshal(now.newAPISync("", "web", "", request)); string(got) != `{"name":"web",`+c.byAPI+`"prune":false}` {
			t.Errorf("%s to %q by the API: %s, %v", c.app, c.revisions, got, err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for refresh, want := range map[string]string{"api": "there is no API", "never": "unknown"} {
		if _, err := New(Options{Name: "hub", Config: newAPIServer(t).config(), Refresh: refresh}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", refresh, err)
		}
	}
	if _, err := New(Options{Name: "hub", Kubeconfig: "/nonexistent/config"}); err == nil || !strings.Contains(err.Error(), "/nonexistent/config") {
		t.Errorf("got %v", err)
	}
}
