package console

import (
	"net/http"
	"strings"
	"testing"
)

// fill puts something into a route's placeholders.
func fill(path string) string {
	return strings.NewReplacer("{$}", "", "{pipeline}", "shop", "{component}", "web", "{id}", "1", "{name}", "console.js").Replace(path)
}

// TestRoutesAreBehindTheirAccess goes through every route, and through what is none.
func TestRoutesAreBehindTheirAccess(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken, o.Differences, o.Diff = true, nil, nil })
	w.seed()
	c, err := New(w.options)
	w.must(err)
	routes := append(c.Routes(), Route{"GET", "/none", ForReaders}, Route{"GET", "/api/none", ForReaders}, Route{"DELETE", "/api/v1/pipelines", ForReaders}, Route{"POST", "/", ForReaders})
	if len(routes) < 25 {
		t.Fatalf("only %d routes", len(routes))
	}
	for _, r := range routes {
		if r.Path == "/api/v1/events" || r.Path == "/live" {
			r.Method = http.MethodHead // a stream has no end
		}
		path := fill(r.Path)
		if r.Access == ForAnybody {
			if status, _, body := w.request(r.Method, path, "", nil); status != http.StatusOK || strings.Contains(body, "acme") {
				t.Errorf("%s %s, which is for everybody, is answered with %d", r.Method, path, status)
			}
			continue
		}
		status, header, body := w.request(r.Method, path, "", nil)
		if status != http.StatusUnauthorized || header.Get("WWW-Authenticate") == "" || strings.Contains(body, "acme") {
			t.Errorf("%s %s without a token is answered with %d, %q", r.Method, path, status, header.Get("WWW-Authenticate"))
		}
		if status, _, _ := w.request(r.Method, path, "", bearer("guess")); status != http.StatusUnauthorized {
			t.Errorf("%s %s with somebody's token is answered with %d", r.Method, path, status)
		}
		status, _, _ = w.request(r.Method, path, "", bearer("see"))
		switch {
		case r.Access == ForCommands && status != http.StatusForbidden:
			t.Errorf("%s %s with a viewer's token is answered with %d", r.Method, path, status)
		case r.Access == ForReaders && (status == http.StatusUnauthorized || status == http.StatusForbidden):
			t.Errorf("%s %s with a viewer's token is answered with %d", r.Method, path, status)
		}
	}
}

func TestReadersAreBrowsersToo(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken = true })
	w.seed()
	basic := map[string]string{"Authorization": "Basic YW55Ym9keTpzZWU="} // anybody:see
	for _, path := range []string{"/", "/api/v1/pipelines"} {
		if status, _, body := w.request("GET", path, "", basic); status != 200 || !strings.Contains(body, "shop") {
			t.Errorf("%s with the token as a password is answered with %d", path, status)
		}
	}
	if _, header, _ := w.get("/"); !strings.HasPrefix(header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("a page asks for %q", header.Get("WWW-Authenticate"))
	}
	// A header that a browser sends by itself must not be able to give a command.
	operator := map[string]string{"Authorization": "Basic YW55Ym9keTpkbw=="} // anybody:do
	if status, _, _ := w.request("POST", "/api/v1/pipelines/shop/hold", `{"component":"web"}`, operator); status != http.StatusUnauthorized {
		t.Errorf("a command with the token as a password is answered with %d", status)
	}
}

func TestReadingNeedsToken(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.ReadToken, o.Tokens = true, nil })
	for _, path := range []string{"/", "/api/v1/pipelines"} {
		status, _, body := w.request("GET", path, "", bearer("see"))
		if status != http.StatusForbidden || !strings.Contains(body, "readAccess: open") {
			t.Errorf("%s is answered with %d %s", path, status, body)
		}
	}
}
