package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// signingToken is a signing token as GitLab makes them.
var signingToken = signingTokenPrefix + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// signStandard signs a delivery by Standard Webhooks, in place of its token.
func signStandard(r *http.Request, token, body string, at time.Time) {
	key, _ := signingKey([]byte(token)) // no key: a signature that fits no secret
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("msg_1." + seconds + "." + body))
	r.Header.Del("X-Gitlab-Token")
	r.Header.Set("Webhook-Id", "msg_1")
	r.Header.Set("Webhook-Timestamp", seconds)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// TestGitLabIsAuthentic takes a token or a signature, and refuses everything else alike.
func TestGitLabIsAuthentic(t *testing.T) {
	const push = `{"object_kind":"push","ref":"refs/heads/main","project":{"path_with_namespace":"acme/fleet"}}`
	now := time.Now()
	signed := func(token, body string, at time.Time) func(*http.Request) {
		return func(r *http.Request) { signStandard(r, token, body, at) }
	}
	other := signingTokenPrefix + base64.StdEncoding.EncodeToString([]byte("fedcba9876543210fedcba9876543210"))
	for _, c := range []struct {
		name    string
		body    string
		change  func(*http.Request)
		status  int
		outcome string
	}{
		{"the token", push, nil, 200, OutcomeAccepted},
		{"no token", push, header("X-Gitlab-Token", ""), 401, OutcomeUnauthenticated},
		{"another token", push, header("X-Gitlab-Token", "guess"), 401, OutcomeUnauthenticated},
		{"the token's beginning", push, header("X-Gitlab-Token", secret[:5]), 401, OutcomeUnauthenticated},
		{"the signing token sent as a token", push, header("X-Gitlab-Token", signingToken), 401, OutcomeUnauthenticated},
		{"a signature", push, signed(signingToken, push, now), 200, OutcomeAccepted},
		{"a signature of four minutes ago", push, signed(signingToken, push, now.Add(-4*time.Minute)), 200, OutcomeAccepted},
		{"an old signature", push, signed(signingToken, push, now.Add(-6*time.Minute)), 401, OutcomeUnauthenticated},
		{"a signature of the future", push, signed(signingToken, push, now.Add(6*time.Minute)), 401, OutcomeUnauthenticated},
		{"a signature of another body", push, signed(signingToken, "{}", now), 401, OutcomeUnauthenticated},
		{"a signature with another key", push, signed(other, push, now), 401, OutcomeUnauthenticated},
		{"a signature with the plain secret", push, signed(secret, push, now), 401, OutcomeUnauthenticated},
		{"a signature of another time", push, func(r *http.Request) {
			signStandard(r, signingToken, push, now.Add(-time.Minute))
			r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		}, 401, OutcomeUnauthenticated},
		{"a signature of another id", push, func(r *http.Request) {
			signStandard(r, signingToken, push, now)
			r.Header.Set("Webhook-Id", "msg_2")
		}, 401, OutcomeUnauthenticated},
		{"a signature without an id", push, func(r *http.Request) {
			signStandard(r, signingToken, push, now)
			r.Header.Del("Webhook-Id")
		}, 401, OutcomeUnauthenticated},
		{"several signatures", push, func(r *http.Request) {
			signStandard(r, other, push, now)
			first := r.Header.Get("Webhook-Signature")
			signStandard(r, signingToken, push, now)
			r.Header.Set("Webhook-Signature", "v1a,AAAA "+first+" "+r.Header.Get("Webhook-Signature"))
		}, 200, OutcomeAccepted},
		{"too many signatures", push, func(r *http.Request) {
			signStandard(r, signingToken, push, now)
			r.Header.Set("Webhook-Signature", strings.Repeat("v1,AAAA ", maxSignatures)+r.Header.Get("Webhook-Signature"))
		}, 401, OutcomeUnauthenticated},
		{"a signature by a key that isn't known beside the token", push, func(r *http.Request) {
			signStandard(r, other, push, now)
			r.Header.Set("X-Gitlab-Token", secret)
		}, 200, OutcomeAccepted},
		{"an authentic one that can't be read", `{"object_kind":"push","ref":7}`, nil, 202, OutcomeMalformed},
		{"one that can't be read and isn't authentic", `{"object_kind":"push","ref":7}`, header("X-Gitlab-Token", "guess"), 401, OutcomeUnauthenticated},
		{"an authentic one of a kind that is new", `{"object_kind":"vulnerability"}`, nil, 202, OutcomeIgnored},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRecordedHandler(t, GitLab, signingToken, secret)
			req := newDelivery(GitLab, "Push Hook", secret, []byte(c.body))
			if c.change != nil {
				c.change(req)
			}
			rec := w.serve(req)
			if rec.Code != c.status || len(w.outcomes) != 1 || w.outcomes[0] != c.outcome {
				t.Errorf("%d (%s), outcomes %v; want %d, %s", rec.Code, strings.TrimSpace(rec.Body.String()), w.outcomes, c.status, c.outcome)
			}
			if want := c.outcome == OutcomeAccepted || c.outcome == OutcomeIgnored; len(w.events) == 1 != want {
				t.Errorf("stored %d events", len(w.events))
			}
			if strings.Contains(rec.Body.String(), secret) || strings.Contains(rec.Body.String(), "whsec") {
				t.Errorf("the answer echoes a secret: %q", rec.Body)
			}
			w.receiver.budget.checkEmpty(t)
		})
	}
}

// TestGitLabDelivery holds that a repetition has the identity of the first, and that what one
// event has led to, which shares its UUID, has one of its own.
func TestGitLabDelivery(t *testing.T) {
	identity := func(body string, headers ...string) string {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return gitlabDelivery(h, []byte(body))
	}
	event := []string{"X-Gitlab-Event-UUID", "7c3d", "X-Gitlab-Webhook-UUID", "91aa"}
	if got := identity("a", append(event, "Idempotency-Key", "e27b", "Webhook-Id", "msg_1")...); got != "e27b" {
		t.Errorf("with a key it is %q", got)
	}
	if got := identity("a", append(event, "Webhook-Id", "msg_1")...); got != "msg_1" {
		t.Errorf("with a message's id it is %q", got)
	}
	before17 := identity("a", event...)
	if again := identity("a", event...); again != before17 || before17 == "" {
		t.Errorf("a repetition is %q, the first was %q", again, before17)
	}
	for what, other := range map[string]string{
		"what the event led to": identity("b", event...),
		"another hook's":        identity("a", "X-Gitlab-Event-UUID", "7c3d", "X-Gitlab-Webhook-UUID", "92bb"),
		"another event":         identity("a", "X-Gitlab-Event-UUID", "7c3e", "X-Gitlab-Webhook-UUID", "91aa"),
	} {
		if other == before17 {
			t.Errorf("%s is taken for a repetition", what)
		}
	}
}
