package api

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"
)

const secretToken = "t0ken-t0ken-t0ken"

// newTestClient makes a client for a handler that is served below a root path.
func newTestClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(Options{URL: s.URL + "/argo-cd/", Token: secretToken, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResourceTree(t *testing.T) {
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		got := r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		if want := "GET /argo-cd/api/v1/applications/web%2Fqa/resource-tree?appNamespace=argocd&project=shop Bearer " + secretToken; got != want {
			t.Errorf("it asks for %s, want %s", got, want)
		}
		_, _ = io.WriteString(w, `{"nodes": [
			{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "web-qa", "name": "web", "uid": "1", "health": {"status": "Degraded", "message": "slow"}},
			{"kind": "Pod", "namespace": "web-qa", "name": "web-1", "uid": "2", "parentRefs": [{"group": "apps", "kind": "Deployment", "namespace": "web-qa", "name": "web", "uid": "1"}], "info": [{"name": "Status Reason", "value": "ErrImagePull"}]}],
			"orphanedNodes": [{"kind": "Pod", "name": "other"}]}`)
	})
	got, err := c.ResourceTree(t.Context(), "argocd", "web/qa", "shop")
	if err != nil {
		t.Fatal(err)
	}
	deployment := Resource{"apps", "Deployment", "web-qa", "web", "1"}
	want := []Node{{Resource: deployment}, {Resource: Resource{"", "Pod", "web-qa", "web-1", "2"}, Parents: []Resource{deployment}}}
	want[0].Health.Status, want[0].Health.Message = "Degraded", "slow"
	want[1].Info = append(want[1].Info, struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}{"Status Reason", "ErrImagePull"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
}

// TestFailures says what is wrong and what to do, tries again only what may pass, and
// never shows the token.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		header string // name: value
		body   string
		tries  int
		want   string
	}{
		"an unknown token":          {401, "", `{"error": "invalid session: ` + secretToken + `", "code": 16, "message": "invalid session: ` + secretToken + `"}`, 1, "Argo CD answers 401 Unauthorized: invalid session: [secret]; the token of argocd[].api"},
		"forbidden":                 {403, "", `{"error": "permission denied: applications, get, shop/web", "code": 7, "message": "permission denied: applications, get, shop/web"}`, 1, "permission denied: applications, get, shop/web; allow it to Liftlock's account"},
		"not there":                 {404, "", `{"error": "gone"}`, 1, "404 Not Found: gone"},
		"a proxy's page":            {502, "", `<html>`, maxTries, "Argo CD answers 502 Bad Gateway"},
		"too many calls":            {429, "Retry-After: 0", `{}`, maxTries, "429"},
		"another address":           {307, "Location: https://elsewhere.example.com/", ``, 1, "the address of argocd[].api in the server's file is not where the API is"},
		"an answer of another kind": {200, "", `<html>`, 1, "not what an Argo CD says"},
		"an endless answer":         {200, "", `{"nodes": "` + strings.Repeat("x", maxAnswer), 1, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			client := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
				tries++
				if key, value, ok := strings.Cut(c.header, ": "); ok {
					w.Header().Set(key, value)
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := client.ResourceTree(t.Context(), "argocd", "web", "")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(fmt.Sprintf("%+v", err), secretToken) {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
			if tries != c.tries {
				t.Errorf("it was tried %d times, want %d", tries, c.tries)
			}
		})
	}
}

func TestPassingFailuresAreRetried(t *testing.T) {
	tries := 0
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries < maxTries {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"nodes": [{"kind": "Pod"}]}`)
	})
	if nodes, err := c.ResourceTree(t.Context(), "argocd", "web", ""); err != nil || len(nodes) != 1 {
		t.Errorf("%v, %v", nodes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ResourceTree(ctx, "argocd", "web", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller left: %v", err)
	}
}

// TestHeedsRetryAfter heeds Retry-After within reason.
func TestHeedsRetryAfter(t *testing.T) {
	for seconds, want := range map[string]time.Duration{"2": 2 * time.Second, "-1": 0, "soon": 0, "99999999": time.Hour} {
		resp := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {seconds}}, Body: io.NopCloser(strings.NewReader(""))}
		var s *StatusError
		if err := (&Client{}).readError(resp); !errors.As(err, &s) || s.RetryAfter != want {
			t.Errorf("Retry-After %s: %v", seconds, s.RetryAfter)
		}
	}
	wait := &serverBackOff{BackOff: zeroWait{}, atLeast: time.Hour}
	if got := wait.NextBackOff(); got != maxWait {
		t.Errorf("it waits %s", got)
	}
}

type zeroWait struct{}

func (zeroWait) NextBackOff() time.Duration { return 0 }
func (zeroWait) Reset()                     {}

// TestCertificates believes the system's authorities, those of a file, or anybody.
func TestCertificates(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"nodes": []}`) }))
	s.Config.ErrorLog = nil
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"a stranger": {Options{}, "certificate"},
		"of a file":  {Options{CA: ca}, ""},
		"anybody":    {Options{Insecure: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.URL, c.options.Wait = s.URL, time.Millisecond
			client, err := New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.ResourceTree(t.Context(), "argocd", "web", "")
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUnusableOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no address":           {URL: "argocd"},
		"credentials in it":    {URL: "https://x:y@argocd.example.com"},
		"a file of other text": {URL: "https://argocd.example.com", CA: []byte("x")},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestStream reads events and signs of life, and says how a stream ends.
func TestStream(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want string // the events' types
		err  string
	}{
		"server-sent events": {":\n\ndata: {\"result\": {\"type\": \"ADDED\", \"application\": {}}} \n\n:\ndata: {\"result\": {\"type\": \"DELETED\", \"application\": {}}} \n\n", "ADDED DELETED", ""},
		"a line each":        {"{\"result\": {\"type\": \"MODIFIED\", \"application\": {}}}\n", "MODIFIED", ""},
		"an error":           {"{\"error\": {\"message\": \"no " + secretToken + "\"}}\n", "", "the stream ends: no [secret]"},
		"something else":     {"<html>\n", "", "read the stream"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept") + " " + r.URL.RequestURI(); got != "text/event-stream /argo-cd/api/v1/stream/applications?projects=shop&resourceVersion=1" {
					t.Errorf("it asks for %s", got)
				}
				_, _ = io.WriteString(w, c.body)
			})
			var got []string
			sent := false
			err := client.StreamApplications(t.Context(), ApplicationFilter{Projects: []string{"shop"}}, func() { sent = true }, func(e Event) { got = append(got, e.Type) })
			if strings.Join(got, " ") != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || !sent {
				t.Errorf("%q, %v, sent: %t", got, err, sent)
			}
		})
	}
}

// TestSilentStream gives up a stream that has begun and says nothing more, and no other.
func TestSilentStream(t *testing.T) {
	for name, begins := range map[string]bool{"it has begun": true, "it hasn't": false} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begins {
					_, _ = io.WriteString(w, ":\n")
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}))
			defer s.Close()
			client, err := New(Options{URL: s.URL, Idle: 20 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			patience, want := 300*time.Millisecond, context.DeadlineExceeded
			if begins {
				patience, want = 20*time.Second, ErrStreamIdle
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := client.StreamApplications(ctx, ApplicationFilter{}, func() {}, func(Event) {}); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
}

// FuzzReadEvents reads anything that a stream may bring.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte(":\ndata: {\"result\": {\"type\": \"ADDED\", \"application\": {}}} \n\n"))
	f.Add([]byte("{\"error\": {}}\nx"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		events := 0
		err := (&Client{}).readEvents(bytes.NewReader(raw), func(Event) { events++ })
		if err == nil && events > bytes.Count(raw, []byte("\n"))+1 {
			t.Errorf("%d events of %q", events, raw)
		}
	})
}

// TestTokenExpiry reads when Argo CD's tokens end, and takes others for what doesn't.
func TestTokenExpiry(t *testing.T) {
	sign := func(claims jwt.Claims) string {
		t.Helper()
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("a key that nobody here knows"))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	end := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for token, want := range map[string]time.Time{
		sign(jwt.RegisteredClaims{Subject: "liftlock:apiKey", ExpiresAt: jwt.NewNumericDate(end)}): end,
		sign(jwt.RegisteredClaims{Subject: "proj:shop:liftlock"}):                                  {},
		"opaque":            {},
		"a.b.c":             {},
		"e30.eyJleHAiOi19.": {},
		"":                  {},
	} {
		c, err := New(Options{URL: "https://argocd.example.com", Token: token})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.TokenExpiry(t.Context()); err != nil || !got.Equal(want) {
			t.Errorf("%q ends at %v, %v; want %v", token, got, err, want)
		}
	}
}
