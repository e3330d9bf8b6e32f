package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/server/config"
)

const (
	readerToken   = "a-token-of-a-viewer"
	operatorToken = "a-token-of-an-operator"
)

// deadCluster is the kubeconfig of a cluster that can't be reached.
const deadCluster = `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}], clusters: [{name: x, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: x, user: {}}]}`

// newTestServer builds a server that can reach nothing; lines are further keys of its file.
func newTestServer(t testing.TB, lines string) *Server {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	kubeconfig := write("kubeconfig", deadCluster)
	file := write("liftlock.yaml", fmt.Sprintf(`listen: 127.0.0.1:0
dataDir: %s
forges:
  - {name: hub, type: github, url: "http://127.0.0.1:1", auth: {token: x}, webhookSecrets: [a-webhook-secret]}
  - {name: tea, type: gitea, url: "http://127.0.0.1:1", auth: {token: x}, webhookSecrets: [a-webhook-secret]}
repositories: [{forge: hub, name: acme/fleet}]
argocd: [{name: hub, kubernetes: {kubeconfig: %s}}]
api: {tokens: [{name: eyes, role: viewer, token: %s}, {name: ops, role: operator, token: %s}]}
%s`, filepath.Join(dir, "data"), kubeconfig, readerToken, operatorToken, lines))
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(context.Background(), Options{Config: cfg, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// handlers are the main listener's and, nil where there is none, the webhooks' own.
func (s *Server) handlers(t testing.TB) (main, hooks http.Handler) {
	t.Helper()
	all, err := s.buildHandlers()
	if err != nil {
		t.Fatal(err)
	}
	return all[s.main], all[s.hooks]
}

// frontRequest is a request of a test; without a token where that is empty.
type frontRequest struct{ method, path, host, token string }

func (f frontRequest) send(h http.Handler) *httptest.ResponseRecorder {
	req := httptest.NewRequest(f.method, "http://"+f.host+f.path, nil)
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// testRoute is a route with its placeholders filled and its method named.
type testRoute struct {
	method, path string
	access       access
	anyHost      bool
}

// listRoutes are all routes that the server has on both listeners, also the console's own.
func (s *Server) listRoutes(t testing.TB) []testRoute {
	t.Helper()
	hooks, err := s.webhookRoutes()
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("{$}", "", "{pipeline}", "shop", "{component}", "web", "{id}", "1", "{gate}", "none", "{name}", "console.js")
	out := []testRoute{{"GET", "/healthz", forAnybody, true}}
	for _, r := range append(s.mainRoutes(), hooks...) {
		method, path, ok := strings.Cut(r.pattern, " ")
		if !ok {
			method, path = "POST", r.pattern
		}
		if r.access != forConsole {
			out = append(out, testRoute{method, fill.Replace(path), r.access, r.anyHost})
		}
	}
	for _, r := range s.console.Routes() {
		if r.Path == "/api/v1/events" {
			r.Method = http.MethodHead // a stream has no end
		}
		out = append(out, testRoute{r.Method, fill.Replace(r.Path), access(r.Access), false})
	}
	return out
}

// TestOpenAPIHasTheServersRoutes holds what the server answers of the API beside the console, which
// holds its own.
func TestOpenAPIHasTheServersRoutes(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(api.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, "")
	seen := 0
	for _, r := range s.mainRoutes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if strings.HasPrefix(path, "/api/") {
			seen++
			if doc.Paths[path][strings.ToLower(method)] == nil {
				t.Errorf("%s isn't described", r.pattern)
			}
		}
	}
	if seen != 1 {
		t.Errorf("the server answers %d addresses of the API", seen)
	}
}

// sessionRoutes are answered with a page to log in at, or need a form of the console's own.
var sessionRoutes = map[string][2]int{"GET /login": {303, 303}, "POST /login/token": {403, 403}}

// usersRoutes are those for whoever is logged in, which a token alone isn't: pages lead to the login.
var usersRoutes = map[string][2]int{"GET": {303, 303}, "POST": {403, 403}}

// TestEveryRouteIsGuarded goes through the whole table of routes: security headers on
// every answer, who may read behind a token, and names of others refused.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "readAccess: token\n")
	main, _ := s.handlers(t)
	routes := s.listRoutes(t)
	if len(routes) < 28 {
		t.Fatalf("only %d routes", len(routes))
	}
	for _, r := range append(routes, testRoute{"GET", "/none", forReaders, false}, testRoute{"PUT", "/api/none", forReaders, false}) {
		stranger := frontRequest{r.method, r.path, "127.0.0.1:8080", ""}.send(main)
		reader := frontRequest{r.method, r.path, "127.0.0.1:8080", readerToken}.send(main)
		rebound := frontRequest{r.method, r.path, "rebound.example", readerToken}.send(main)
		for who, rec := range map[string]*httptest.ResponseRecorder{"a stranger": stranger, "a reader": reader, "another site": rebound} {
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
				"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Strict-Transport-Security": "", "Set-Cookie": "", "Access-Control-Allow-Origin": "",
			} {
				if got := rec.Header().Get(name); got != want {
					t.Errorf("%s %s answers %s with %s: %q", r.method, r.path, who, name, got)
				}
			}
		}
		want := map[access][2]int{forReaders: {401, 200}, access(console.ForCommands): {401, 403}, forAnybody: {200, 200}, forForges: {415, 415}, forEndpoints: {401, 401}}[r.access]
		if answers, isOfSessions := sessionRoutes[r.method+" "+r.path]; isOfSessions {
			want = answers
		} else if r.access == access(console.ForUsers) {
			want = usersRoutes[r.method]
		}
		if stranger.Code != want[0] || (reader.Code == 401 || reader.Code == 403) != (want[1] == 401 || want[1] == 403) {
			t.Errorf("%s %s (for %s) is answered with %d to a stranger and %d to a reader", r.method, r.path, r.access, stranger.Code, reader.Code)
		}
		if refused := rebound.Code == http.StatusMisdirectedRequest; refused == r.anyHost {
			t.Errorf("%s %s by a name that isn't ours is answered with %d", r.method, r.path, rebound.Code)
		}
	}
}

// TestReadyzSaysWhyToReaders holds that a probe needs no token, and gets no names; and that
// only a store that can't be read takes the server out of service.
func TestReadyzSaysWhyToReaders(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "readAccess: token\n")
	main, _ := s.handlers(t)
	check := func(token string, status int, want string) {
		t.Helper()
		got := (frontRequest{"GET", "/readyz", "127.0.0.1", token}).send(main)
		if got.Code != status || !strings.Contains(got.Body.String(), want) || token == "" && strings.Contains(got.Body.String(), "engine") {
			t.Errorf("with token %q it answers %d %q, not %d with %q", token, got.Code, got.Body, status, want)
		}
	}
	check("", http.StatusOK, "ready\n")
	check(readerToken, http.StatusOK, "engine: not started")
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	check("", http.StatusServiceUnavailable, "not ready; with one of the server's API tokens this says why")
	check(readerToken, http.StatusServiceUnavailable, "store: ")
}

// TestWebhooksHaveTheirOwnListener holds that neither listener answers what is the other's.
func TestWebhooksHaveTheirOwnListener(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "webhooks: {listen: \"127.0.0.1:0\"}\n")
	if s.WebhooksURL() == s.URL() {
		t.Fatal("there is one listener")
	}
	main, hooks := s.handlers(t)
	for _, r := range s.listRoutes(t) {
		onHooks := (frontRequest{r.method, r.path, "127.0.0.1", operatorToken}).send(hooks)
		onMain := (frontRequest{r.method, r.path, "127.0.0.1", operatorToken}).send(main)
		if answered := onHooks.Code != http.StatusNotFound; answered != (r.access == forForges || r.path == "/healthz") {
			t.Errorf("the webhooks' listener answers %s %s with %d", r.method, r.path, onHooks.Code)
		}
		if r.access == forForges && onMain.Code != http.StatusMethodNotAllowed && onMain.Code != http.StatusNotFound {
			t.Errorf("the main listener answers %s %s with %d", r.method, r.path, onMain.Code)
		}
		if onHooks.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("the webhooks' listener answers %s %s without security headers", r.method, r.path)
		}
	}
	one := newTestServer(t, "")
	if one.WebhooksURL() != one.URL() {
		t.Error("without webhooks.listen there are two listeners")
	}
}

func TestHostNames(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "hosts: [liftlock.svc]\nwebhooks: {externalURL: \"https://hooks.example\"}\n")
	s.o.Config.ExternalURL = "https://LIFTLOCK.example:8443/x"
	main, _ := s.handlers(t)
	for host, want := range map[string]int{
		"liftlock.example": 200, "Liftlock.Example:443": 200, "liftlock.example.": 200, "hooks.example": 200, "liftlock.svc:8080": 200, "localhost:1": 200,
		"127.0.0.1": 200, "10.1.2.3:80": 200, "[::1]:8080": 200, "[fd00::1]": 200,
		"evil.example": 421, "liftlock.example.evil.example": 421, "xliftlock.example": 421, "127.0.0.1.nip.example": 421, "localhost.evil.example": 421,
	} {
		rec := (frontRequest{"GET", "/api/v1/pipelines", host, ""}).send(main)
		if rec.Code != want {
			t.Errorf("Host: %s is answered with %d", host, rec.Code)
		}
		if body := rec.Body.String(); want == 421 && (!strings.HasPrefix(body, `{"error":`) || !strings.Contains(body, "externalURL") || !strings.Contains(body, "hosts")) {
			t.Errorf("Host: %s is answered %s", host, body)
		}
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	cfg := config.Config{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}}
	proxied := clientResolver{cfg.ProxyRanges()}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"nobody in between", "192.0.2.1:4711", nil, "192.0.2.1"},
		{"made up by the client", "192.0.2.1:4711", []string{"198.51.100.1"}, "192.0.2.1"},
		{"a proxy", "10.0.0.1:4711", []string{"198.51.100.1"}, "198.51.100.1"},
		{"made up before the proxy", "10.0.0.1:4711", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1:4711", []string{"203.0.113.9, 198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"only proxies", "10.0.0.1:4711", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"a proxy that says nothing", "10.0.0.1:4711", nil, "10.0.0.1"},
		{"a proxy that says nonsense", "10.0.0.1:4711", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		{"an address with a port", "10.0.0.1:4711", []string{"198.51.100.1:99"}, "198.51.100.1"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:4711", nil, "2001:db8:1:2::/64"},
		{"IPv6 behind a proxy", "[fd00::1]:4711", []string{"[2001:db8:1:2::9]"}, "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:4711", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"an endless chain", "10.0.0.1:4711", []string{strings.Repeat("10.0.0.7, ", 1000) + "10.0.0.8"}, "10.0.0.7"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		if got := proxied.clientOf(r); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOpenReading holds that reading stays open where the file says so.
func TestOpenReading(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "")
	main, _ := s.handlers(t)
	for _, path := range []string{"/", "/metrics", "/readyz", "/api/v1/pipelines"} {
		if rec := (frontRequest{"GET", path, "127.0.0.1", ""}).send(main); !slices.Contains([]int{200, 503}, rec.Code) {
			body, _ := io.ReadAll(rec.Body)
			t.Errorf("%s is answered with %d %s", path, rec.Code, body)
		}
	}
}
