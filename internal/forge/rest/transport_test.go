package rest

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/cache"
)

type callLog struct {
	mu   sync.Mutex
	seen []string
}

func (c *callLog) recordCall(endpoint string, status int, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf("%s %d", endpoint, status))
}

func startServer(t *testing.T, h http.HandlerFunc) (*url.URL, *callLog, func(Protocol) *http.Client) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/api/v3/")
	if err != nil {
		t.Fatal(err)
	}
	c := &callLog{}
	return base, c, func(o Protocol) *http.Client {
		o.Base, o.OnCall = base, c.recordCall
		return clientOf(New(o))
	}
}

func TestOwnAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("here")) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that end
	s.StartTLS()
	t.Cleanup(s.Close)
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	if _, body := getURL(t, clientOf(New(Protocol{Options: Options{RootCAs: known}, Base: base})), s.URL); body != "here" {
		t.Errorf("answered %q", body)
	}
	var unknown x509.UnknownAuthorityError
	if resp, err := clientOf(New(Protocol{Base: base})).Get(s.URL); !errors.As(err, &unknown) {
		t.Errorf("a certificate of nobody's: %v, %v", resp, err)
	}
}

func getURL(t *testing.T, c *http.Client, u string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestConditionalRequests(t *testing.T) {
	content, remaining := "one", 10
	base, calls, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		etag := `W/"` + content + `"`
		w.Header().Set("ETag", etag)
		w.Header().Set("Link", "<next>; rel=next")
		w.Header().Set("X-RateLimit-Remaining", fmt.Sprint(remaining))
		if r.Header.Get("If-None-Match") == etag {
			w.Header().Del("Link")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		remaining--
		_, _ = io.WriteString(w, content)
	})
	c := client(Protocol{CacheBytes: 1 << 16})
	u := base.String() + "repos/acme/fleet/pulls"
	for i, step := range []struct{ content, remaining string }{
		{"one", "10"}, {"one", "9"}, {"one", "9"}, {"two", "9"}, {"two", "8"},
	} {
		content = step.content
		resp, body := getURL(t, c, u)
		if body != step.content || resp.StatusCode != 200 || resp.Header.Get("Link") == "" || resp.Header.Get("X-RateLimit-Remaining") != step.remaining {
			t.Errorf("call %d: %d %q, Link %q, remaining %s (want %s)", i, resp.StatusCode, body,
				resp.Header.Get("Link"), resp.Header.Get("X-RateLimit-Remaining"), step.remaining)
		}
	}
	want := "GET pulls 200,GET pulls 304,GET pulls 304,GET pulls 200,GET pulls 304"
	if got := strings.Join(calls.seen, ","); got != want {
		t.Errorf("observed %s, want %s", got, want)
	}
}

func TestWritesAreNotConditional(t *testing.T) {
	base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			t.Errorf("%s is conditional", r.Method)
		}
		if r.Method != http.MethodGet {
			w.Header().Set("ETag", `"x"`)
		}
	})
	c := client(Protocol{CacheBytes: 1 << 16})
	for range 2 {
		resp, err := c.Post(base.String()+"user", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	getURL(t, c, base.String()+"user")
	getURL(t, c, base.String()+"user")
}

func TestCredentialsStayAtHome(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the stranger was asked, with Authorization %q", r.Header.Get("Authorization"))
	}))
	defer stranger.Close()
	base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "token t0ken" {
			t.Errorf("Authorization %q", got)
		}
		switch r.URL.Path {
		case "/api/v3/away":
			http.Redirect(w, r, stranger.URL, http.StatusFound)
		case "/api/v3/old":
			http.Redirect(w, r, "/api/v3/new", http.StatusMovedPermanently)
		case "/api/v3/loop":
			http.Redirect(w, r, "/api/v3/loop", http.StatusFound)
		case "/api/v3/new":
			_, _ = io.WriteString(w, "here")
		}
	})
	c := client(Protocol{Authorization: "token t0ken"})
	if _, body := getURL(t, c, base.String()+"old"); body != "here" {
		t.Errorf("a redirect within the forge: %q", body)
	}
	for path, want := range map[string]string{"away": "another host", "loop": "more than 3 redirects"} {
		resp, err := c.Get(base.String() + path)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s: followed", path)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Asked directly for another host, the credentials stay too.
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("another host got %q", got)
		}
	}))
	defer other.Close()
	req, err := http.NewRequest(http.MethodGet, other.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token t0ken")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestHeaderOfCredentials has them in a header of the forge's own: there they are on a
// redirect within it, and nowhere else.
func TestHeaderOfCredentials(t *testing.T) {
	base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if token, other := r.Header.Get("PRIVATE-TOKEN"), r.Header.Get("Authorization"); token != "t0ken" || other != "" {
			t.Errorf("%s: the headers are %q and %q", r.URL.Path, token, other)
		}
		if r.URL.Path == "/api/v3/old" {
			http.Redirect(w, r, "/api/v3/new", http.StatusMovedPermanently)
		}
	})
	c := client(Protocol{Header: "PRIVATE-TOKEN", Authorization: "t0ken"})
	getURL(t, c, base.String()+"old")
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("PRIVATE-TOKEN"); got != "" {
			t.Errorf("another host got %q", got)
		}
	}))
	defer other.Close()
	req, err := http.NewRequest(http.MethodGet, other.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("PRIVATE-TOKEN", "t0ken")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestAnswersAreBounded(t *testing.T) {
	base, _, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 17 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	resp, err := client(Protocol{}).Get(base.String())
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestContextEndsACall(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	base, calls, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+"user", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client(Protocol{}).Do(req)
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(calls.seen, ","); got != "GET user 0" {
		t.Errorf("observed %s", got)
	}
}

func TestEndpoint(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v3/user":                                                    "GET user",
		"/api/v3/repos/acme/fleet":                                        "GET repos",
		"/api/v3/repos/acme/fleet/pulls":                                  "GET pulls",
		"/api/v3/repos/acme/fleet/pulls/42/merge":                         "GET pulls/merge",
		"/api/v3/repos/pulls/merge/pulls/42":                              "GET pulls",
		"/api/v3/repos/acme/fleet/git/refs/heads/liftlock/shop/qa/pulls":  "GET git/refs/pulls",
		"/api/v3/repos/acme/fleet/git/refs/pulls/pulls/pulls/pulls/pulls": "GET git/refs/pulls",
		"/api/v3/repos/acme/fleet/commits/abc/statuses":                   "GET commits/statuses",
		"/api/v3/projects/12":                                             "GET projects",
		"/api/v3/projects/acme/merge_requests/web":                        "GET projects",
		"/api/v3/projects/12/merge_requests/7/approvals":                  "GET merge_requests/approvals",
		"/api/v3/projects/12/merge_requests/7/notes/9/award_emoji":        "GET merge_requests/notes/award_emoji",
		"/api/v3/projects/12/repository/commits/abc/merge_requests":       "GET commits/merge_requests",
		"/elsewhere": "GET ",
	} {
		if got := Endpoint("GET", "/api/v3/", path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestSegmentStaysInItsPlace(t *testing.T) {
	base, _ := url.Parse("https://forge.example/api/v3/")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-z./%?#\\ ]{1,8}`).Draw(t, "name")
		u, err := base.Parse("repos/" + Segment(s) + "/pulls")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(u.EscapedPath(), "/api/v3/repos/") || !strings.HasSuffix(u.EscapedPath(), "/pulls") || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q gives %s", s, u)
		}
	})
}

func TestLargeAnswersAreNotKept(t *testing.T) {
	large := strings.Repeat("x", maxAnswerBytes+1)
	base, calls, client := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if strings.HasSuffix(r.URL.Path, "pulls") {
			_, _ = io.WriteString(w, large)
		}
	})
	var caches cache.Group
	c := client(Protocol{Options: Options{Caches: &caches}, CacheBytes: 4 << 20})
	for _, path := range []string{"user", "repos/acme/fleet/pulls", "repos/acme/fleet/pulls", "user"} {
		getURL(t, c, base.String()+path)
	}
	if got, want := strings.Join(calls.seen, ","), "GET user 200,GET pulls 200,GET pulls 200,GET user 304"; got != want {
		t.Errorf("observed %s, want %s", got, want)
	}
	if s := caches.Stats()[0]; s.Name != "forge-answers" || s.Hits != 1 || s.Entries != 1 {
		t.Errorf("%+v", s)
	}
}

func clientOf(client *http.Client, _ *Budget) *http.Client { return client }
