package webhooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

const secret = "correct horse battery staple"

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// newDelivery is a well-made request; tests break one thing of it.
func newDelivery(forgeType, event, secret string, body []byte) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/webhooks/hub", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	switch forgeType {
	case GitHub:
		req.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
		req.Header.Set("X-GitHub-Event", event)
		req.Header.Set("X-Hub-Signature-256", "sha256="+sign(secret, body))
	case Gitea:
		req.Header.Set("X-Gitea-Delivery", "f6266f16-1bf3-46a5-9ea4-602e06ead473")
		req.Header.Set("X-Gitea-Event", event)
		req.Header.Set("X-Gitea-Event-Type", event)
		req.Header.Set("X-Gitea-Signature", sign(secret, body))
	case GitLab:
		req.Header.Set("Idempotency-Key", "e27bb1d8-6d6f-4d9a-a7ad-7d2f8b4f1c11")
		req.Header.Set("X-Gitlab-Event", event)
		req.Header.Set("X-Gitlab-Token", secret)
	}
	return req
}

// recordedHandler is a handler with everything that it told.
type recordedHandler struct {
	handler   http.Handler
	receiver  *Receiver
	acceptErr error
	mu        sync.Mutex
	events    []*Event
	outcomes  []string
}

func newRecordedHandler(t testing.TB, forgeType string, secrets ...string) *recordedHandler {
	t.Helper()
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, []byte(s))
	}
	r, err := New(forgeType, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &recordedHandler{receiver: r}
	w.handler = Handler(r, func(_ context.Context, e *Event) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.acceptErr != nil {
			return w.acceptErr
		}
		w.events = append(w.events, e)
		return nil
	}, func(outcome string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcomes = append(w.outcomes, outcome)
	})
	return w
}

func (r *recordedHandler) serve(req *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r.handler.ServeHTTP(rec, req)
	return rec
}

func TestHandler(t *testing.T) {
	push := []byte(`{"ref":"refs/heads/main","repository":{"full_name":"acme/fleet"}}`)
	form := []byte("payload=" + url.QueryEscape(string(push)))
	for _, c := range []struct {
		name, forge, event string
		body               []byte
		change             func(*http.Request)
		status             int
		outcome            string
	}{
		{"a push", GitHub, "push", push, nil, 200, OutcomeAccepted},
		{"a push on Gitea", Gitea, "push", push, nil, 200, OutcomeAccepted},
		{"a ping", GitHub, "ping", []byte(`{"zen":"..."}`), nil, 200, OutcomeAccepted},
		{"an unknown event", GitHub, "star", []byte(`{}`), nil, 202, OutcomeIgnored},
		{"a content type with a charset", GitHub, "push", push, header("Content-Type", "application/json; charset=utf-8"), 200, OutcomeAccepted},
		{"a form", GitHub, "push", form, header("Content-Type", "application/x-www-form-urlencoded"), 200, OutcomeAccepted},
		{"a form without payload", GitHub, "push", []byte("a=b"), header("Content-Type", "application/x-www-form-urlencoded"), 400, OutcomeMalformed},
		{"a form on Gitea", Gitea, "push", form, header("Content-Type", "application/x-www-form-urlencoded"), 415, OutcomeMalformed},
		{"another content type", GitHub, "push", push, header("Content-Type", "text/plain"), 415, OutcomeMalformed},
		{"no content type", GitHub, "push", push, header("Content-Type", ""), 415, OutcomeMalformed},
		{"a GET", GitHub, "push", push, func(r *http.Request) { r.Method = http.MethodGet }, 405, OutcomeMalformed},
		{"another secret", GitHub, "push", push, header("X-Hub-Signature-256", "sha256="+sign("guess", push)), 401, OutcomeUnauthenticated},
		{"no signature", GitHub, "push", push, header("X-Hub-Signature-256", ""), 401, OutcomeUnauthenticated},
		{"the old SHA-1 signature only", GitHub, "push", push, func(r *http.Request) {
			r.Header.Del("X-Hub-Signature-256")
			r.Header.Set("X-Hub-Signature", "sha1=0123456789012345678901234567890123456789")
		}, 401, OutcomeUnauthenticated},
		{"a signature without its prefix", GitHub, "push", push, header("X-Hub-Signature-256", sign(secret, push)), 401, OutcomeUnauthenticated},
		{"a cut signature", Gitea, "push", push, header("X-Gitea-Signature", sign(secret, push)[:62]), 401, OutcomeUnauthenticated},
		{"an empty signature", Gitea, "push", push, header("X-Gitea-Signature", ""), 401, OutcomeUnauthenticated},
		{"a signature of other bytes", Gitea, "push", push, header("X-Gitea-Signature", sign(secret, []byte("{}"))), 401, OutcomeUnauthenticated},
		{"no delivery id", GitHub, "push", push, header("X-GitHub-Delivery", ""), 400, OutcomeMalformed},
		{"no event name", Gitea, "push", push, func(r *http.Request) { r.Header.Del("X-Gitea-Event"); r.Header.Del("X-Gitea-Event-Type") }, 400, OutcomeMalformed},
		{"only the coarse event name", Gitea, "push", push, header("X-Gitea-Event-Type", ""), 200, OutcomeAccepted},
		{"malformed JSON", GitHub, "push", []byte(`{"ref":`), nil, 400, OutcomeMalformed},
		{"malformed JSON, wrong secret", GitHub, "push", []byte(`{"ref":`), header("X-Hub-Signature-256", "sha256="+sign("guess", push)), 401, OutcomeUnauthenticated},
		{"an empty body", GitHub, "push", nil, nil, 400, OutcomeMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRecordedHandler(t, c.forge, secret)
			req := newDelivery(c.forge, c.event, secret, c.body)
			if c.change != nil {
				c.change(req)
			}
			rec := w.serve(req)
			if rec.Code != c.status {
				t.Errorf("status %d (%s), want %d", rec.Code, strings.TrimSpace(rec.Body.String()), c.status)
			}
			if len(w.outcomes) != 1 || w.outcomes[0] != c.outcome {
				t.Errorf("outcomes %v, want %s", w.outcomes, c.outcome)
			}
			if stored, want := len(w.events), c.status/100 == 2; (stored == 1) != want {
				t.Errorf("stored %d events", stored)
			}
			if strings.Contains(rec.Body.String(), secret) || strings.Contains(rec.Body.String(), "sha256=") {
				t.Errorf("the answer echoes the signature: %q", rec.Body)
			}
			w.receiver.budget.checkEmpty(t)
		})
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

func TestEverySecretIsAccepted(t *testing.T) {
	body := []byte(`{}`)
	w := newRecordedHandler(t, GitHub, "new", "old", "older")
	for _, s := range []string{"new", "old", "older"} {
		if rec := w.serve(newDelivery(GitHub, "ping", s, body)); rec.Code != 200 {
			t.Errorf("signed with %q: %d", s, rec.Code)
		}
	}
	if rec := w.serve(newDelivery(GitHub, "ping", "oldest", body)); rec.Code != 401 {
		t.Errorf("signed with a secret that was never configured: %d", rec.Code)
	}
}

// countingReader counts how many bytes are taken from it.
type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func TestLargeBodies(t *testing.T) {
	big := bytes.Repeat([]byte(" "), MaxBody+1)
	for _, c := range []struct {
		name     string
		announce int64
		size     int
		status   int
		read     int64 // at most
	}{
		{"announced too large", MaxBody + 1, MaxBody + 1, 413, 0},
		{"not announced and too large", -1, MaxBody + 1, 413, MaxBody + 1},
		{"announced at the limit", MaxBody, MaxBody, 400, MaxBody}, // spaces only: not JSON, but read and verified
		{"not announced at the limit", -1, MaxBody, 400, MaxBody},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRecordedHandler(t, GitHub, secret)
			body := big[:c.size]
			req := newDelivery(GitHub, "push", secret, body)
			in := &countingReader{Reader: bytes.NewReader(body)}
			req.Body, req.ContentLength = io.NopCloser(in), c.announce
			if rec := w.serve(req); rec.Code != c.status {
				t.Errorf("status %d, want %d", rec.Code, c.status)
			}
			if in.n > c.read {
				t.Errorf("read %d bytes, want at most %d", in.n, c.read)
			}
			w.receiver.budget.checkEmpty(t)
		})
	}
}

func TestUnsignedBodyIsNotRead(t *testing.T) {
	w := newRecordedHandler(t, GitHub, secret)
	req := newDelivery(GitHub, "push", secret, []byte(`{}`))
	req.Header.Del("X-Hub-Signature-256")
	in := &countingReader{Reader: strings.NewReader(`{}`)}
	req.Body = io.NopCloser(in)
	if rec := w.serve(req); rec.Code != 401 || in.n != 0 {
		t.Errorf("status %d after reading %d bytes, want 401 after none", rec.Code, in.n)
	}
}

func TestNothingIsAcknowledgedThatWasNotStored(t *testing.T) {
	w := newRecordedHandler(t, GitHub, secret)
	w.acceptErr = errors.New("dial tcp 10.0.0.7:5432: connection refused")
	rec := w.serve(newDelivery(GitHub, "push", secret, []byte(`{"ref":"refs/heads/main"}`)))
	if rec.Code != 503 || rec.Header().Get("Retry-After") != "5" || w.outcomes[0] != OutcomeFailed {
		t.Errorf("status %d, Retry-After %q, outcome %v", rec.Code, rec.Header().Get("Retry-After"), w.outcomes)
	}
	if strings.Contains(rec.Body.String(), "10.0.0.7") {
		t.Errorf("the answer shows the inside: %q", rec.Body)
	}
	w.acceptErr = nil
	if rec := w.serve(newDelivery(GitHub, "push", secret, []byte(`{"ref":"refs/heads/main"}`))); rec.Code != 200 || len(w.events) != 1 {
		t.Errorf("the redelivery: %d, %d events", rec.Code, len(w.events))
	}
}

// TestOverTheNetwork goes through a real server: a body cut short, one sent in
// chunks, and one that is too large and announced.
func TestOverTheNetwork(t *testing.T) {
	w := newRecordedHandler(t, GitHub, secret)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	post := func(body io.Reader, length int64, signature string) (int, error) {
		req, err := http.NewRequest(http.MethodPost, server.URL, body)
		if err != nil {
			return 0, err
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-GitHub-Delivery", "1")
		req.Header.Set("X-GitHub-Event", "ping")
		req.Header.Set("X-Hub-Signature-256", "sha256="+signature)
		resp, err := server.Client().Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	body := []byte(`{"zen":"` + strings.Repeat("a", 100_000) + `"}`)
	if code, err := post(io.MultiReader(bytes.NewReader(body)), -1, sign(secret, body)); code != 200 {
		t.Errorf("in chunks: %d %v", code, err)
	}
	if code, err := post(bytes.NewReader(make([]byte, 26<<20)), 26<<20, sign(secret, nil)); err == nil && code != 413 {
		t.Errorf("26 MB: %d", code)
	}
	if code, err := post(bytes.NewReader(body), int64(len(body)), sign("guess", body)); code != 401 {
		t.Errorf("wrong secret: %d %v", code, err)
	}
	if len(w.events) != 1 {
		t.Errorf("stored %d events, want 1", len(w.events))
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name, forge string
		secrets     [][]byte
		want        string
	}{
		{"another forge", "bitbucket", [][]byte{[]byte("s")}, "not supported yet"},
		{"no secret", GitHub, nil, "at least one secret"},
		{"a signing token that isn't whole", GitLab, [][]byte{[]byte("whsec_#")}, "secret 1 for gitlab begins with whsec_ as a signing token does, and what follows is not Base64"},
		{"an empty secret", GitHub, [][]byte{[]byte("s"), nil}, "secret 2 for github is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := New(c.forge, c.secrets, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
