package argocd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// argoServer is Argo CD's own API made small, over the objects of an apiServer.
type argoServer struct {
	*apiServer
	url string

	mu         sync.Mutex
	calls      map[string]int
	dropping   bool // events are lost
	maySee     string
	hidden     string         // the project that the token may not see
	hiddenName string         // and the Application
	refused    map[string]int // address → status
	bodies     []string       // of syncs
	queries    []string       // of lists
}

func newArgoServer(t *testing.T) *argoServer {
	s := &argoServer{apiServer: newAPIServer(t), calls: map[string]int{}, refused: map[string]int{}, maySee: "yes"}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.cutWatches) // before Close, which waits for streams
	s.url = server.URL
	return s
}

func (a *argoServer) count(call string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[call]
}

// adjust changes how the server behaves.
func (a *argoServer) adjust(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *argoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address := strings.TrimPrefix(r.URL.Path, "/api/")
	a.mu.Lock()
	call := r.Method + " " + address
	if r.URL.Query().Get("refresh") != "" {
		call += "?refresh"
	}
	a.calls[call]++
	code, maySee := a.refused[address], a.maySee
	if address == "v1/applications" {
		a.queries = append(a.queries, r.URL.RawQuery)
	}
	a.mu.Unlock()
	if code != 0 {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"error": "refused as told", "code": 7, "message": "refused as told"}`)
		return
	}
	resource := map[string]string{"v1/applications": "applications", "v1/applicationsets": "applicationsets", "v1/projects": "appprojects"}[address]
	name, isApp := strings.CutPrefix(address, "v1/applications/")
	switch {
	case address == "version":
		_, _ = io.WriteString(w, `{"Version": "v3.5.7+1a2b3c4"}`)
	case strings.HasPrefix(address, "v1/account/can-i/"):
		_, _ = fmt.Fprintf(w, `{"value": %q}`, maySee)
	case address == "v1/stream/applications":
		a.streamEvents(w, r)
	case resource != "":
		_, _ = fmt.Fprintf(w, `{"metadata": {"resourceVersion": "7"}, "items": [%s]}`, strings.Join(a.listed(resource), ","))
	case address == "v1/clusters":
		_, _ = io.WriteString(w, `{"items": [{"name": "in-cluster", "server": "https://kubernetes.default.svc"}, {"name": "eu", "server": "https://10.0.0.1", "labels": {"env": "prod"}, "config": {}}]}`)
	case isApp && strings.HasSuffix(name, "/sync"):
		body, _ := io.ReadAll(r.Body) // what can't be read isn't as wanted either
		a.adjust(func() { a.bodies = append(a.bodies, string(body)) })
		_, _ = io.WriteString(w, `{}`)
	case isApp:
		a.serveApplication(w, r, name)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *argoServer) serveApplication(w http.ResponseWriter, r *http.Request, name string) {
	a.apiServer.mu.Lock()
	raw, ok := a.objects["applications/"+r.URL.Query().Get("appNamespace")+"/"+name]
	a.apiServer.mu.Unlock()
	if a.hides(raw) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(raw) // a client that is gone needs no answer
}

// hides says that an Application is of the project that may not be seen, or has that name.
func (a *argoServer) hides(raw []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hidden != "" && strings.Contains(string(raw), `"project":"`+a.hidden+`"`) ||
		a.hiddenName != "" && strings.Contains(string(raw), `"name":"`+a.hiddenName+`"`)
}

// listed are the stored objects of a resource.
func (a *argoServer) listed(resource string) []string {
	a.apiServer.mu.Lock()
	defer a.apiServer.mu.Unlock()
	var out []string
	for key, raw := range a.objects {
		if strings.HasPrefix(key, resource+"/") && !a.hides(raw) {
			out = append(out, string(raw))
		}
	}
	sort.Strings(out)
	return out
}

// streamEvents sends changes of Applications from now on.
func (a *argoServer) streamEvents(w http.ResponseWriter, r *http.Request) {
	a.apiServer.mu.Lock()
	at, cut := a.version, a.cut
	a.apiServer.mu.Unlock()
	for {
		a.apiServer.mu.Lock()
		wake := a.wake
		var lines []string
		for _, e := range a.events {
			if e.version > at && e.resource == "applications" {
				lines = append(lines, fmt.Sprintf(`data: {"result": {"type": %q, "application": %s}} `, e.kind, e.raw))
			}
		}
		at = a.version
		a.apiServer.mu.Unlock()
		a.mu.Lock()
		dropping := a.dropping
		a.mu.Unlock()
		if !dropping {
			_, _ = io.WriteString(w, ":\n"+strings.Join(lines, "\n\n")+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-wake:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// startByAPI watches by the API alone, at a quick pace. A stream that says nothing for so long is
// broken.
func startByAPI(t *testing.T, s *argoServer, relist, idle time.Duration, adjust func(*Options)) *testWatcher {
	return startAdjusted(t, s.apiServer, func(o *Options) {
		client, err := api.New(api.Options{URL: s.url, Token: "a-token-of-tests", Wait: time.Millisecond, Idle: idle})
		if err != nil {
			t.Fatal(err)
		}
		o.Config, o.Namespaces, o.API, o.APIAlone, o.Refresh, o.Clusters = nil, nil, client, true, RefreshAPI, true
		if adjust != nil {
			adjust(o)
		}
	}, func(w *Watcher) {
		w.appFeeds[0].(*apiStream).pace = apiPace{relist: relist, settle: 10 * time.Millisecond, retry: 5 * time.Millisecond, maxRetry: 20 * time.Millisecond, spacing: time.Millisecond, busy: 10 * time.Millisecond}
		w.setFeeds[0].(*apiList).interval = 10 * time.Millisecond
		w.projectFeeds[0].(*apiList).interval = 10 * time.Millisecond
	})
}

// TestWatchedByAPI follows everything without any access to Kubernetes.
func TestWatchedByAPI(t *testing.T) {
	s := newArgoServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	s.set("applicationsets", "argocd", "shop", `{"spec": {}}`)
	s.set("appprojects", "argocd", "default", `{}`)
	ready := make(chan struct{}, 10)
	w := startByAPI(t, s, time.Hour, time.Minute, func(o *Options) { o.Projects = []string{"shop"}; o.OnReady = func() { ready <- struct{}{} } })
	w.next("the first state", healthIs("web", "Healthy"))
	<-ready
	if err := w.Ready(); err != nil {
		t.Fatal(err)
	}
	s.set("applications", "argocd", "web", object("Degraded"))
	w.next("a change", healthIs("web", "Degraded"))
	s.set("applications", "other", "api", object("Healthy"))
	w.next("another namespace's", isNamed("api"))
	s.remove("applications", "argocd", "web")
	w.next("that it is gone", func(c appChange) bool { return c.deleted && c.app.Name == "web" })
	if got := s.count("GET v1/applications"); got != 1 || !slices.Equal(s.queries, []string{"projects=shop"}) {
		t.Errorf("%d lists, by %q", got, s.queries)
	}
	w.until("the set, the project and the line", func() bool {
		sets, err := w.Sets()
		projects, projectsErr := w.Projects()
		return err == nil && projectsErr == nil && len(sets) == 1 && slices.Equal(projects, []string{"default"}) && w.Version().Line == "3.5"
	})
	s.remove("applicationsets", "argocd", "shop")
	w.until("no set", func() bool { sets, err := w.Sets(); return err == nil && len(sets) == 0 })
	clusters, err := w.Clusters(t.Context())
	want := []Cluster{{Secret: "cluster-eu", Name: "eu", Server: "https://10.0.0.1", Labels: map[string]string{"env": "prod", clusterLabel: clusterLabelValue}}}
	if diff := cmp.Diff(want, clusters); err != nil || diff != "" {
		t.Errorf("the clusters: %v %s", err, diff)
	}
	whole, err := w.Selected(t.Context(), "other", "team=shop")
	if err != nil || len(whole) != 1 || s.queries[len(s.queries)-1] != "appNamespace=other&projects=shop&selector=team%3Dshop" {
		t.Errorf("whole objects: %v, %v, %q", whole, err, s.queries)
	}
	one, err := w.Whole(t.Context(), &verification.App{Namespace: "other", Name: "api", Project: "shop"})
	if err != nil || !strings.Contains(string(one), `"api"`) {
		t.Errorf("one whole object: %s, %v", one, err)
	}
}

// TestStreamIsAHint sees by a list what the stream lost, and believes no list that is
// older than what the stream brought.
func TestStreamIsAHint(t *testing.T) {
	s := newArgoServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	s.set("applications", "argocd", "old", object("Healthy"))
	w := startByAPI(t, s, 30*time.Millisecond, 200*time.Millisecond, nil)
	w.next("the first state", healthIs("web", "Healthy"))
	s.adjust(func() { s.dropping = true })
	s.set("applications", "argocd", "web", object("Degraded"))
	s.remove("applications", "argocd", "old")
	w.next("what was lost", healthIs("web", "Degraded"))
	w.until("that one is gone", func() bool { _, ok := w.Get("argocd", "old"); return !ok })
	// Streams without a sign of life are broken.
	before := s.count("GET v1/stream/applications")
	w.until("another stream", func() bool { return s.count("GET v1/stream/applications") > before })
}

// TestBusyApplicationsAreFollowed sees by itself what became of an Application that was
// busy, where the stream has lost it and the next list is far off.
func TestBusyApplicationsAreFollowed(t *testing.T) {
	s := newArgoServer(t)
	s.set("applications", "argocd", "web", object("Progressing"))
	s.set("applications", "argocd", "db", object("Healthy"))
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	w.next("the first state", healthIs("web", "Progressing"))
	w.until("ready", func() bool { return w.Ready() == nil })
	s.adjust(func() { s.dropping = true })
	s.set("applications", "argocd", "web", object("Healthy"))
	w.next("what became of it", healthIs("web", "Healthy"))
	if got := s.count("GET v1/applications/db"); got != 0 {
		t.Errorf("of one that isn't busy it was asked %d times", got)
	}
}

// TestReliedUponApplicationsAreFollowed sees that a healthy Application under verification
// degraded, where the stream has lost the change and the next list is far off. It asks for the
// Application no longer than a caller relies on it.
func TestReliedUponApplicationsAreFollowed(t *testing.T) {
	s := newArgoServer(t)
	s.set("applications", "argocd", "web", object("Healthy"))
	s.set("applications", "argocd", "db", object("Healthy"))
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	w.next("the first state", healthIs("web", "Healthy"))
	w.until("ready", func() bool { return w.Ready() == nil })
	w.Follow("argocd", "db", time.Now().Add(-time.Second))
	w.Follow("argocd", "web", time.Now().Add(time.Hour))
	s.adjust(func() { s.dropping = true })
	s.set("applications", "argocd", "web", object("Degraded"))
	w.next("that it degraded", healthIs("web", "Degraded"))
	if got := s.count("GET v1/applications/db"); got != 0 {
		t.Errorf("of one that nobody relies on any more it was asked %d times", got)
	}
}

// TestListsBesideEvents keeps the order of what comes by two ways.
func TestListsBesideEvents(t *testing.T) {
	now := time.Unix(1000, 0)
	store := newAppStore("hub", zap.NewNop(), nil, &versionCounter{onChange: func() {}})
	f := &apiStream{feedState: feedState{now: func() time.Time { return now }}, sink: appSink{store}, apps: store, versions: map[string]seenVersion{}}
	at := func(version int, health string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"metadata": {"namespace": "argocd", "name": "web", "resourceVersion": "%d"}, "spec": {}, "status": {"health": {"status": %q}}}`, version, health))
	}
	listed := map[string]bool{}
	health := func() string {
		app, ok := store.getApplication("argocd", "web")
		if !ok {
			return "gone"
		}
		return app.Health
	}
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() { f.takeListed(at(5, "Healthy"), now, listed) }, "Healthy"},
		{func() { f.takeEvent(api.Event{Type: "MODIFIED", Application: at(7, "Degraded")}) }, "Degraded"},
		{func() { f.takeEvent(api.Event{Type: "MODIFIED", Application: at(6, "Healthy")}) }, "Degraded"}, // it came late
		{func() { f.takeListed(at(6, "Healthy"), now, listed) }, "Degraded"},                             // of a server that lags behind
		{func() { f.takeEvent(api.Event{Type: "DELETED", Application: at(8, "Degraded")}) }, "gone"},
		{func() { f.takeListed(at(7, "Degraded"), now, listed) }, "gone"},
		{func() { now = now.Add(2 * staleVersion); f.takeListed(at(7, "Progressing"), now, listed) }, "Progressing"}, // the list is the truth
		{func() { f.dropUnlisted(now.Add(-time.Second), map[string]bool{}, nil) }, "Progressing"},                    // it came since
		{func() { now = now.Add(time.Second); f.dropUnlisted(now, map[string]bool{}, nil) }, "gone"},
		{func() { f.takeEvent(api.Event{Type: "MODIFIED", Application: json.RawMessage(`{"metadata": {}}`)}) }, "gone"},
	} {
		step.do()
		if got := health(); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	f.takeListed(at(9, "Healthy"), now, listed)
	if key, version := identify(at(9, "Healthy")); !f.isUnchanged(key, version) {
		t.Errorf("the same version: %q", key)
	}
	if key, version := identify(at(10, "Healthy")); f.isUnchanged(key, version) {
		t.Errorf("another version: %q", key)
	}
	now = now.Add(time.Second)
	f.dropUnlisted(now, map[string]bool{}, nil)
	if len(f.versions) != 0 {
		t.Errorf("%v is still remembered", f.versions)
	}
}

// TestProjectsThatAreHidden keeps apart what is gone from what the token may no longer see: that
// a list leaves out as well.
func TestProjectsThatAreHidden(t *testing.T) {
	s := newArgoServer(t)
	in := func(project string) string {
		return fmt.Sprintf(`{"spec": {"project": %q}, "status": {"health": {"status": "Healthy"}}}`, project)
	}
	for i := range 3 {
		s.set("applications", "argocd", fmt.Sprint("shop-", i), in("shop"))
	}
	for i := range maxVanished + 2 {
		s.set("applications", "argocd", fmt.Sprint("bank-", i), in("bank"))
	}
	w := startByAPI(t, s, 50*time.Millisecond, time.Minute, nil)
	for i := range maxVanished + 2 { // of a project that is seen, all but one name
		s.set("applications", "argocd", fmt.Sprint("many-", i), in("many"))
	}
	w.until("all", func() bool { return w.Ready() == nil && len(w.List()) == 3+2*(maxVanished+2) })
	s.adjust(func() { s.dropping, s.hidden = true, "bank" })
	s.remove("applications", "argocd", "shop-1")
	unreadable := func(name string) bool {
		app, ok := w.Get("argocd", name)
		return ok && len(app.Conditions) == 1 && app.Conditions[0].Type == unreadableCondition &&
			strings.Contains(app.Conditions[0].Message, "may no longer see it; allow it to its account in argocd-rbac-cm: p, <role>, applications, get, bank/*, allow")
	}
	w.until("one is gone", func() bool { _, ok := w.Get("argocd", "shop-1"); return !ok })
	for _, name := range []string{"bank-0", fmt.Sprint("bank-", maxVanished+1)} {
		w.until("nobody knows of "+name, func() bool { return unreadable(name) })
	}
	if app, ok := w.Get("argocd", "shop-0"); !ok || app.Conditions != nil || w.Ready() != nil {
		t.Errorf("what is seen still: %+v, %v", app, w.Ready())
	}
	s.adjust(func() { s.hidden = "" })
	w.until("they are seen again", func() bool {
		app, ok := w.Get("argocd", "bank-0")
		return ok && app.Conditions == nil && app.Health == "Healthy"
	})

	s.adjust(func() { s.hiddenName = fmt.Sprint("many-", maxVanished) })
	for i := range maxVanished + 2 {
		if i != maxVanished {
			s.remove("applications", "argocd", fmt.Sprint("many-", i))
		}
	}
	w.until("what is gone is", func() bool { return len(w.List()) == 2+maxVanished+2+1 })
	if app, ok := w.Get("argocd", s.hiddenName); !ok || len(app.Conditions) != 1 || app.Conditions[0].Type != unreadableCondition {
		t.Errorf("what may no longer be seen: %+v, %t", app, ok)
	}
}

// TestSomeProjects doesn't take the projects that a token may see for all that there are.
func TestSomeProjects(t *testing.T) {
	s := newArgoServer(t)
	s.maySee = "no"
	s.set("applications", "argocd", "web", object("Healthy"))
	s.set("appprojects", "argocd", "shop", `{"spec": {"syncWindows": [{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}]}}`)
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	w.until("why others aren't known", func() bool {
		names, err := w.Projects()
		return names == nil && err != nil && strings.Contains(err.Error(), "projects, get, *, allow")
	})
	if isOpen, _, err := w.SyncWindow(&verification.App{Namespace: "argocd", Name: "web", Project: "shop"}, time.Now()); isOpen || err != nil {
		t.Errorf("the windows of those that are seen count: %t, %v", isOpen, err)
	}
}

// TestStreamsThatBreak lists again after each, and is ready in between.
func TestStreamsThatBreak(t *testing.T) {
	s := newArgoServer(t)
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	s.set("applications", "argocd", "web", object("Healthy"))
	w.next("the first state", healthIs("web", "Healthy"))
	w.until("ready", func() bool { return w.Ready() == nil })
	for i := range 5 {
		s.cutWatches()
		s.set("applications", "argocd", "web", fmt.Sprintf(`{"spec": {}, "status": {"health": {"status": "Healthy", "message": "%d"}}}`, i))
		w.next("a change behind a break", func(c appChange) bool { return c.app.HealthMessage == fmt.Sprint(i) })
		if err := w.Ready(); err != nil {
			t.Errorf("after break %d: %v", i, err)
		}
	}
	// No stream lasts until it may list.
	s.adjust(func() { s.refused["v1/stream/applications"] = http.StatusNotFound })
	s.cutWatches()
	s.set("applications", "argocd", "web", object("Degraded"))
	w.next("what only a list says", healthIs("web", "Degraded"))
	if err := w.Ready(); err != nil {
		t.Errorf("between streams: %v", err)
	}
	f := &apiStream{feedState: feedState{now: time.Now}, pace: apiPace{spacing: time.Second}}
	if got := f.untilList(); got != 0 {
		t.Errorf("the first list waits %s", got)
	}
	f.lastList = time.Now()
	f.lastTook = f.lastList.Add(10 * time.Second)
	if got := f.untilList(); got < 199*time.Second || got > 200*time.Second {
		t.Errorf("after a long list the next waits %s", got)
	}
}

// TestHiddenIsNotAbsent keeps apart what is not there and what isn't shown.
func TestHiddenIsNotAbsent(t *testing.T) {
	s := newArgoServer(t)
	s.maySee = "no"
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	w.until("the reason", func() bool {
		return strings.Contains(fmt.Sprint(w.Ready()), "the token of argocd[].api in the server's file sees none; allow them to its account in argocd-rbac-cm: p, <role>, applications, get, */*, allow")
	})
	w.until("why sets are unknown", func() bool {
		_, err := w.Sets()
		return err != nil && strings.Contains(err.Error(), "applicationsets, get")
	})
	if projects, err := w.Projects(); projects != nil || err == nil {
		t.Errorf("projects: %v, %v", projects, err)
	}
	s.adjust(func() { s.maySee = "yes" })
	w.until("ready", func() bool { return w.Ready() == nil })
	s.adjust(func() {
		s.refused["v1/account/can-i/clusters/get/*"] = http.StatusForbidden
		s.refused["v1/clusters"] = http.StatusForbidden
	})
	if _, err := w.Clusters(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("clusters: %v", err)
	}
}

// TestRefreshByAPI asks once however often it is wanted, and knows when it is done.
func TestRefreshByAPI(t *testing.T) {
	s := newArgoServer(t)
	s.set("applications", "argocd", "web", `{"spec": {"project": "shop"}, "status": {"reconciledAt": "2026-03-02T12:00:00Z"}}`)
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	w.next("the first state", isNamed("web"))
	if err := w.Refresh(t.Context(), "argocd", "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of one that isn't there: %v", err)
	}
	s.adjust(func() { s.dropping = true })
	s.set("applications", "argocd", "web", `{"spec": {"project": "shop"}, "status": {"reconciledAt": "2026-03-02T12:05:00Z"}}`)
	if err := w.Refresh(t.Context(), "argocd", "web"); err != nil {
		t.Fatal(err)
	}
	w.next("that it is done", func(c appChange) bool { return c.app.RefreshedAt.Equal(time.Date(2026, 3, 2, 12, 5, 0, 0, time.UTC)) })
	if got := s.count("GET v1/applications/web?refresh"); got != 1 {
		t.Errorf("it was asked for %d times", got)
	}
	r := newRefresher(nil, nil)
	for i := range maxRefreshes {
		if err := errors.Join(r.enqueue(refreshKey{name: fmt.Sprint(i)}), r.enqueue(refreshKey{name: fmt.Sprint(i)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.enqueue(refreshKey{name: "one more"}); !errors.Is(err, errRefreshesQueued) {
		t.Errorf("too many: %v", err)
	}
}

// TestSyncByAPI asks for what a sync by a patch would, where none is under way.
func TestSyncByAPI(t *testing.T) {
	s := newArgoServer(t)
	w := startByAPI(t, s, time.Hour, time.Minute, nil)
	for _, c := range []struct {
		name, app, want string
	}{
		{"manual", `{"spec": {"project": "shop", "syncPolicy": {"syncOptions": ["CreateNamespace=true"], "retry": {"limit": 2}}}}`,
			`{"name":"manual","appNamespace":"argocd","project":"shop","revision":"abc","prune":false,"infos":[{"name":"Reason","value":"why"}],"retryStrategy":{"limit":2},"syncOptions":{"items":["CreateNamespace=true"]}}`},
		{"automated", `{"spec": {"project": "shop", "syncPolicy": {"automated": {"prune": true}}}}`, `{"name":"automated","appNamespace":"argocd","project":"shop","prune":true,"infos":[{"name":"Reason","value":"why"}]}`},
		{"switched-off", `{"spec": {"project": "shop", "syncPolicy": {"automated": {"enabled": false}}}}`, `{"name":"switched-off","appNamespace":"argocd","project":"shop","revision":"abc","prune":false,"infos":[{"name":"Reason","value":"why"}]}`},
		{"busy", `{"spec": {"project": "shop"}, "operation": {"sync": {}}}`, ""},
	} {
		s.set("applications", "argocd", c.name, c.app)
		w.next(c.name, isNamed(c.name))
		s.adjust(func() { s.bodies = nil })
		if err := w.Sync(t.Context(), "argocd", c.name, verification.SyncRequest{Revisions: []string{"abc"}, Prune: verification.PruneAuto, Reason: "why"}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := strings.Join(s.bodies, "\n"); got != c.want {
			t.Errorf("%s: it asks for\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	if err := w.Sync(t.Context(), "argocd", "none", verification.SyncRequest{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("of one that isn't there: %v", err)
	}
	s.adjust(func() { s.refused["v1/applications/manual/sync"] = http.StatusForbidden })
	if err := w.Sync(t.Context(), "argocd", "manual", verification.SyncRequest{}); err == nil || !strings.Contains(err.Error(), "refused as told; allow it to Liftlock's account") {
		t.Errorf("forbidden: %v", err)
	}
}

// TestSyncBarred says beforehand whether a sync would be refused, by either way to ask for it.
func TestSyncBarred(t *testing.T) {
	app := &verification.App{Namespace: "argocd", Name: "web", Project: "shop"}
	s := newArgoServer(t)
	byAPI := startByAPI(t, s, time.Hour, time.Minute, nil)
	k := newAPIServer(t)
	byPatch := startWatcher(t, k, nil)
	for _, c := range []struct {
		name string
		of   *testWatcher
		make func()
		want string
		err  string
	}{
		{"by the API", byAPI, func() {}, "", ""},
		{"the token may not", byAPI, func() { s.maySee = "no" }, "the token of argocd[].api in the server's file may not; allow it in argocd-rbac-cm: p, <role>, applications, sync, shop/*, allow", ""},
		{"the API refuses", byAPI, func() { s.refused["v1/account/can-i/applications/sync/shop/web"] = http.StatusForbidden }, "", "ask Argo CD whether it may be synced: Argo CD answers 403"},
		{"by a patch", byPatch, func() {}, "", ""},
		{"the account may not", byPatch, func() { k.failures["patch"] = http.StatusForbidden }, "resources [applications], verbs [patch]", ""},
		{"no review", byPatch, func() { k.failures["review"] = http.StatusForbidden }, "", "ask Kubernetes whether it may be synced: "},
	} {
		s.adjust(func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			c.make()
		})
		got, err := c.of.SyncBarred(t.Context(), app)
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") || (c.err == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), c.err) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// TestIdentify reads what is in front, whatever is behind.
func TestIdentify(t *testing.T) {
	for raw, want := range map[string]string{
		`{"metadata": {"namespace": "a", "name": "b", "resourceVersion": "7"}, "spec": {"metadata": 1}}`:             "a/b 7",
		`{"kind": "Application", "x": {"metadata": {}}, "metadata": {"name": "b", "resourceVersion": "old"}, broken`: "/b 0",
		`{"metadata": {"namespace": "a"}}`: " 0",
		`{"spec": {}}`:                     " 0",
		`[]`:                               " 0",
		`"metadata"`:                       " 0",
		``:                                 " 0",
	} {
		key, version := identify([]byte(raw))
		if got := fmt.Sprint(key, " ", version); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// FuzzIdentify finds the key and the version that decoding the whole finds.
func FuzzIdentify(f *testing.F) {
	f.Add([]byte(`{"kind": "Application", "metadata": {"namespace": "a", "name": "b", "resourceVersion": "7"}, "spec": {}}`))
	f.Add([]byte(`{"spec": {"metadata": {"name": "c"}}, "metadata": {"name": "b"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var whole map[string]json.RawMessage
		if json.Unmarshal(raw, &whole) != nil || strings.Count(strings.ToLower(string(raw)), "metadata") != 1 {
			return // it is no object, or which of several counts isn't said
		}
		if key, _ := identify(raw); key != "" && key != keyOf(raw) {
			t.Errorf("%q, want %q", key, keyOf(raw))
		}
	})
}
