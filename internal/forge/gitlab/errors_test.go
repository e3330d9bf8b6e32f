package gitlab

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

var ctx = context.Background()

func TestErrorsHaveKinds(t *testing.T) {
	in := func(d time.Duration) time.Time { return replayTime.Add(d) }
	for _, c := range []struct {
		name   string
		answer response
		kind   error
		words  string
		hint   string
		retry  time.Time
	}{
		{"bad credentials", errorResponse(401, "401 Unauthorized"), forge.ErrUnauthorized, "401", "valid token", time.Time{}},
		{"an expired token", response{401, nil, `{"error":"invalid_token","error_description":"Token is expired."}`}, forge.ErrUnauthorized, "Token is expired", "valid token", time.Time{}},
		{"a scope is missing", response{403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`},
			forge.ErrForbidden, "higher privileges", "the scope api", time.Time{}},
		{"forbidden", errorResponse(403, "403 Forbidden"), forge.ErrForbidden, "403", "", time.Time{}},
		{"not found", errorResponse(404, "404 Not Found"), forge.ErrNotFound, "404", "", time.Time{}},
		{"a conflict, in a list", response{409, nil, `{"message":["Another open merge request already exists for this source branch: !3"]}`}, forge.ErrConflict, "already exists for this source branch: !3", "", time.Time{}},
		{"refused, by field", response{400, nil, `{"message":{"title":["can't be blank","is too short"]}}`}, forge.ErrInvalid, "title can't be blank, is too short", "", time.Time{}},
		{"refused, a parameter", response{400, nil, `{"error":"title is missing"}`}, forge.ErrInvalid, "title is missing", "", time.Time{}},
		{"moved", errorResponse(405, "Non GET methods are not allowed for moved projects"), forge.ErrInvalid, "moved projects", "", time.Time{}},
		{"limited", response{429, map[string]string{"Retry-After": "90"}, `{"message":"Too Many Requests"}`}, forge.ErrRateLimited, "Too Many", "", in(90 * time.Second)},
		{"limited without a time", errorResponse(429, "This endpoint has been requested too many times."), forge.ErrRateLimited, "too many times", "", in(time.Minute)},
		{"limited until a time", response{429, map[string]string{"Date": "Mon, 02 Mar 2026 10:00:00 GMT", "Retry-After": "Mon, 02 Mar 2026 10:02:00 GMT"}, "Retry later"}, forge.ErrRateLimited, "Retry later", "", in(2 * time.Minute)},
		{"limited for ever", response{429, map[string]string{"Retry-After": "9999999999999"}, "Retry later"}, forge.ErrRateLimited, "Retry later", "", in(24 * time.Hour)},
		{"limited up to a time before", response{429, map[string]string{"Retry-After": "-30"}, "Retry later"}, forge.ErrRateLimited, "Retry later", "", in(time.Minute)},
		{"limited until nobody knows when", response{429, map[string]string{"Retry-After": "soon", "RateLimit-Remaining": "x", "RateLimit-Reset": "99999999999999999999"}, "Retry later"}, forge.ErrRateLimited, "Retry later", "", in(time.Minute)},
		{"a bad gateway", response{502, nil, "<html>Bad Gateway</html>"}, forge.ErrRetryable, "Bad Gateway", "", time.Time{}},
		{"unavailable with a time", response{503, map[string]string{"Retry-After": "30"}, ""}, forge.ErrRetryable, "", "", in(30 * time.Second)},
		{"unavailable until a time", response{503, map[string]string{"Date": "Mon, 02 Mar 2026 10:00:00 GMT", "Retry-After": "Mon, 02 Mar 2026 10:02:00 GMT"}, ""}, forge.ErrRetryable, "", "", in(2 * time.Minute)},
		{"unavailable for ever", response{503, map[string]string{"Retry-After": "9999999999999"}, ""}, forge.ErrRetryable, "", "", in(24 * time.Hour)},
		{"not JSON", response{200, nil, "<html>"}, forge.ErrRetryable, "", "", time.Time{}},
		{"endless words", errorResponse(422, strings.Repeat("word ", 100_000)), forge.ErrInvalid, "word word", "", time.Time{}},
		{"our token in its words", errorResponse(422, "no such header: t0ken"), forge.ErrInvalid, "no such header: (the token)", "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET merge_requests/7", c.answer)
			_, err := d.PullRequest(ctx, testRepoName, 7)
			if !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
			e := rest.ErrorOf(err)
			if e.Op != "read acme/platform/fleet!7" {
				t.Fatalf("operation in %#v", err)
			}
			if !strings.Contains(e.Message, c.words) || !strings.Contains(e.Hint, c.hint) || (c.hint == "") != (e.Hint == "") {
				t.Errorf("message %q, hint %q; want %q and %q", e.Message, e.Hint, c.words, c.hint)
			}
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "t0ken") {
				t.Errorf("error text: %.1200s", err)
			}
			if !forge.RetryAfter(err).Equal(c.retry) {
				t.Errorf("retry after %v, want %v", forge.RetryAfter(err), c.retry)
			}
		})
	}
}

// FuzzReadMessage holds that any body of a refusal can be read.
func FuzzReadMessage(f *testing.F) {
	for _, s := range []string{"", "null", `{"message":"m"}`, `{"message":["a",{"b":[1,null]}]}`, `{"error":"e","error_description":"d"}`, "<html>", "<title>a\nb</title>"} {
		f.Add([]byte(s))
	}
	page := &http.Response{Header: http.Header{"Content-Type": {"text/html"}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		if m := rest.ClipMessage(readMessage(page, body)); len(m) > 4*rest.MaxMessage+10 || strings.ContainsAny(m, "\r\n") {
			t.Errorf("%q is read as %q", body, m)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ name, url, token, want string }{
		{"no address", "", "t", "is not a server's address"},
		{"no token", "https://git.example.com", "", "needs a token"},
		{"another scheme", "ssh://git.example.com", "t", "is not a server's address"},
		{"credentials inside", "https://ada:pass@git.example.com", "t", "is not a server's address"},
		{"unreadable", "http://[::1", "t", "is not a server's address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(Options{URL: c.url, Token: c.token}, CallLimits{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass@") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
