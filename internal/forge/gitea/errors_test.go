package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/forgetest"
)

var ctx = context.Background()

func TestErrorsHaveKinds(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for _, c := range []struct {
		name   string
		answer response
		kind   error
		words  string
		hint   string
		retry  time.Time
	}{
		{"bad credentials", errorResponse(401, "invalid username, password or token"), forge.ErrUnauthorized, "invalid username", "valid token", time.Time{}},
		{"a scope is missing", errorResponse(403, "token does not have at least one of required scope(s): [write:repository]"),
			forge.ErrForbidden, "required scope", "the token needs the scope [write:repository]", time.Time{}},
		{"forbidden", errorResponse(403, "user should have a permission to write to the repo"), forge.ErrForbidden, "permission to write", "", time.Time{}},
		{"archived", errorResponse(423, "This repo is archived."), forge.ErrForbidden, "archived", "", time.Time{}},
		{"not found", errorResponse(404, "The target couldn't be found."), forge.ErrNotFound, "couldn't be found", "", time.Time{}},
		{"a conflict", errorResponse(409, "exists"), forge.ErrConflict, "exists", "", time.Time{}},
		{"merged meanwhile", errorResponse(412, "cannot change state of this pull request, it was already merged"), forge.ErrConflict, "already merged", "", time.Time{}},
		{"refused", errorResponse(422, "title is empty"), forge.ErrInvalid, "title is empty", "", time.Time{}},
		{"a proxy's limit", response{429, map[string]string{"Retry-After": "90"}, "slow down"}, forge.ErrRateLimited, "slow down", "", in(90 * time.Second)},
		{"a proxy's limit without a time", response{429, nil, ""}, forge.ErrRateLimited, "", "", in(time.Minute)},
		{"a bad gateway", response{502, nil, "<html>Bad Gateway</html>"}, forge.ErrRetryable, "Bad Gateway", "", time.Time{}},
		{"a proxy's limit without a time", response{429, nil, "slow down"}, forge.ErrRateLimited, "slow down", "", in(time.Minute)},
		{"a proxy's limit for ever", response{429, map[string]string{"Retry-After": "9999999999999"}, "slow down"}, forge.ErrRateLimited, "slow down", "", in(24 * time.Hour)},
		{"unavailable until a time", response{503, map[string]string{"Retry-After": time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat)}, ""}, forge.ErrRetryable, "", "", in(2 * time.Minute)},
		{"unavailable with a time", response{503, map[string]string{"Retry-After": "30"}, ""}, forge.ErrRetryable, "", "", in(30 * time.Second)},
		{"not JSON", response{200, map[string]string{"Content-Type": "application/json"}, "<html>"}, forge.ErrRetryable, "", "", time.Time{}},
		{"endless words", errorResponse(422, strings.Repeat("word ", 100_000)), forge.ErrInvalid, "word word", "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d, _ := newReplayServer(t)
			r.on("GET repos/acme/fleet/pulls/7", c.answer)
			_, err := d.PullRequest(ctx, testRepoName, 7)
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

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ name, url, token, want string }{
		{"no address", "", "t", "is not a server's address"},
		{"no token", "https://git.example.com", "", "needs a token"},
		{"another scheme", "ssh://git.example.com", "t", "is not a server's address"},
		{"credentials inside", "https://ada:pass@git.example.com", "t", "is not a server's address"},
		{"unreadable", "http://[::1", "t", "is not a server's address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(Options{URL: c.url, Token: c.token})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass@") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestCallsDontShareContexts makes calls at once, one of which is canceled: the
// SDK keeps the context in its client.
func TestCallsDontShareContexts(t *testing.T) {
	r, d, _ := newReplayServer(t)
	r.on("GET repos/acme/fleet/pulls/7", okResponse(pullJSON(7, head1, nil)))
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	results := make(chan error)
	for i := range 20 {
		go func() {
			if i%2 == 0 {
				_, err := d.PullRequest(canceled, testRepoName, 7)
				if !errors.Is(err, context.Canceled) {
					results <- fmt.Errorf("a canceled call: %v", err)
					return
				}
				results <- nil
				return
			}
			_, err := d.PullRequest(ctx, testRepoName, 7)
			results <- err
		}()
	}
	for range 20 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestWebPages(t *testing.T) {
	forgetest.TestWebPages(t, func(t *testing.T, url string) forge.Forge {
		d, err := New(Options{URL: url + "/api/v1/", Token: "t0ken"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
