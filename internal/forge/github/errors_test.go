package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/forgetest"
)

func TestErrorsHaveKinds(t *testing.T) {
	reset := time.Now().Add(20 * time.Minute).Truncate(time.Second)
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for _, c := range []struct {
		name   string
		answer response
		kind   error
		words  string
		hint   string
		retry  time.Time
	}{
		{"bad credentials", response{401, nil, `{"message":"Bad credentials"}`}, forge.ErrUnauthorized, "Bad credentials", "valid token", time.Time{}},
		{"not found", response{404, nil, `{"message":"Not Found"}`}, forge.ErrNotFound, "Not Found", "", time.Time{}},
		{"not found for want of a scope", response{404, map[string]string{"X-OAuth-Scopes": "repo:status", "X-Accepted-OAuth-Scopes": "repo"}, `{"message":"Not Found"}`},
			forge.ErrNotFound, "", "scopes [repo:status] and needs one of [repo]", time.Time{}},
		{"forbidden for want of a scope", response{403, map[string]string{"X-OAuth-Scopes": "", "X-Accepted-OAuth-Scopes": "admin:repo_hook, write:repo_hook"}, `{"message":"Resource not accessible"}`},
			forge.ErrForbidden, "Resource not accessible", "needs one of [admin:repo_hook write:repo_hook]", time.Time{}},
		{"forbidden with the scope", response{403, map[string]string{"X-OAuth-Scopes": "repo, admin:repo_hook", "X-Accepted-OAuth-Scopes": "write:repo_hook"}, `{"message":"Must have admin rights"}`},
			forge.ErrForbidden, "admin rights", "", time.Time{}},
		{"forbidden for a fine-grained token", response{403, map[string]string{"X-Accepted-GitHub-Permissions": "pull_requests=write"}, `{"message":"Resource not accessible by personal access token"}`},
			forge.ErrForbidden, "", "needs the permission pull_requests=write", time.Time{}},
		{"the hourly limit", response{403, map[string]string{"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(reset.Unix())}, `{"message":"API rate limit exceeded"}`},
			forge.ErrRateLimited, "rate limit", "", reset},
		{"the hourly limit as 429", response{429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(reset.Unix())}, `{"message":"API rate limit exceeded"}`},
			forge.ErrRateLimited, "", "", reset},
		{"429 with a time", response{429, map[string]string{"Retry-After": "90"}, ``}, forge.ErrRateLimited, "", "", in(90 * time.Second)},
		{"429 without a time", response{429, nil, ``}, forge.ErrRateLimited, "", "", in(time.Minute)},
		{"a secondary limit", response{403, map[string]string{"Retry-After": "120"}, `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`},
			forge.ErrRateLimited, "secondary", "", in(120 * time.Second)},
		{"a secondary limit without a time", response{403, nil, `{"message":"You have exceeded a secondary rate limit. Please wait"}`}, forge.ErrRateLimited, "secondary", "", in(time.Minute)},
		{"a secondary limit in other words", response{403, nil, `{"message":"You have triggered an abuse detection mechanism","documentation_url":"https://docs.github.com/rest#secondary-rate-limits"}`}, forge.ErrRateLimited, "abuse", "", in(time.Minute)},
		{"a secondary limit as a web page", response{403, map[string]string{"Content-Type": "text/html"}, `<html><title>Whoa there!</title>You have exceeded a secondary rate limit.</html>`}, forge.ErrRateLimited, "", "", in(time.Minute)},
		{"unavailable until a date", response{503, map[string]string{"Date": "Sun, 01 Mar 2026 12:00:00 GMT", "Retry-After": "Sun, 01 Mar 2026 12:02:00 GMT"}, ``}, forge.ErrRetryable, "", "", in(2 * time.Minute)},
		{"a time of somebody's own", response{502, map[string]string{"Liftlock-Retry-Time": "2099-01-01T00:00:00Z"}, ``}, forge.ErrRetryable, "", "", time.Time{}},
		{"a bad gateway", response{502, nil, `<html>Bad Gateway</html>`}, forge.ErrRetryable, "", "", time.Time{}},
		{"unavailable with a time", response{503, map[string]string{"Retry-After": "30"}, `{"message":"Service unavailable"}`}, forge.ErrRetryable, "", "", in(30 * time.Second)},
		{"refused", message422("title is too long"), forge.ErrInvalid, "Validation Failed: title is too long", "", time.Time{}},
		{"a conflict", response{409, nil, `{"message":"Git Repository is empty."}`}, forge.ErrConflict, "empty", "", time.Time{}},
		{"a commit that isn't there", response{422, nil, `{"message":"No commit found for SHA: abc"}`}, forge.ErrNotFound, "", "", time.Time{}},
		{"not JSON", response{200, map[string]string{"Content-Type": "application/json"}, `<html>`}, forge.ErrRetryable, "", "", time.Time{}},
		{"endless words", response{422, nil, fmt.Sprintf(`{"message":%q}`, strings.Repeat("word ", 10000))}, forge.ErrInvalid, "word word", "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet/pulls/7", c.answer)
			_, err := d.PullRequest(context.Background(), testRepoName, 7)
			if !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
			var e *forge.Error
			if !errors.As(err, &e) || e.Op != "read acme/fleet#7" {
				t.Fatalf("operation in %#v", err)
			}
			if !strings.Contains(e.Message, c.words) || !strings.Contains(e.Hint, c.hint) || (c.hint == "") != (e.Hint == "") {
				t.Errorf("message %q, hint %q; want %q and %q", e.Message, e.Hint, c.words, c.hint)
			}
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "t0ken") {
				t.Errorf("error text: %.1200s", err)
			}
			if diff := forge.RetryAfter(err).Sub(c.retry); diff < -5*time.Second || diff > 5*time.Second {
				t.Errorf("retry after %v, want %v", forge.RetryAfter(err), c.retry)
			}
		})
	}
}

func TestNoAnswerIsRetryable(t *testing.T) {
	r, d := newReplayServer(t)
	r.server.Close()
	_, err := d.Me(context.Background())
	if !errors.Is(err, forge.ErrRetryable) {
		t.Errorf("a server that is down: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.Me(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ name, url, token, want string }{
		{"no token", "", "", "needs a token"},
		{"not an address", "ghe.example", "t", "is not the address of an API"},
		{"another scheme", "ssh://ghe.example", "t", "is not the address of an API"},
		{"credentials inside", "https://ada:pass@ghe.example/", "t", "is not the address of an API"},
		{"unreadable", "http://[::1", "t", "is not the address of an API"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(Options{URL: c.url, Token: c.token})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass@") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWebPages(t *testing.T) {
	forgetest.TestWebPages(t, func(t *testing.T, url string) forge.Forge {
		d, err := New(Options{URL: url + "/api/v3", Token: "t0ken"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
