package gitea

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

var ctx = context.Background()

func TestErrorsHaveKinds(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for _, c := range []struct {
		name   string
		answer answer
		kind   error
		words  string
		hint   string
		retry  time.Time
	}{
		{"bad credentials", said(401, "invalid username, password or token"), forge.ErrUnauthorized, "invalid username", "valid token", time.Time{}},
		{"a scope is missing", said(403, "token does not have at least one of required scope(s): [write:repository]"),
			forge.ErrForbidden, "required scope", "the token needs the scope [write:repository]", time.Time{}},
		{"forbidden", said(403, "user should have a permission to write to the repo"), forge.ErrForbidden, "permission to write", "", time.Time{}},
		{"archived", said(423, "This repo is archived."), forge.ErrForbidden, "archived", "", time.Time{}},
		{"not found", said(404, "The target couldn't be found."), forge.ErrGone, "couldn't be found", "", time.Time{}},
		{"a conflict", said(409, "exists"), forge.ErrConflict, "exists", "", time.Time{}},
		{"merged meanwhile", said(412, "cannot change state of this pull request, it was already merged"), forge.ErrConflict, "already merged", "", time.Time{}},
		{"refused", said(422, "title is empty"), forge.ErrInvalid, "title is empty", "", time.Time{}},
		{"a proxy's limit", answer{429, map[string]string{"Retry-After": "90"}, "slow down"}, forge.ErrRateLimited, "slow down", "", in(90 * time.Second)},
		{"a proxy's limit without a time", answer{429, nil, ""}, forge.ErrRateLimited, "", "", in(time.Minute)},
		{"a bad gateway", answer{502, nil, "<html>Bad Gateway</html>"}, forge.ErrRetryable, "Bad Gateway", "", time.Time{}},
		{"unavailable with a time", answer{503, map[string]string{"Retry-After": "30"}, ""}, forge.ErrRetryable, "", "", in(30 * time.Second)},
		{"not JSON", answer{200, nil, "<html>"}, forge.ErrRetryable, "", "", time.Time{}},
		{"endless words", said(422, strings.Repeat("word ", 100_000)), forge.ErrInvalid, "word word", "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d, _ := newReplay(t)
			r.on("GET repos/acme/fleet/pulls/7", c.answer)
			_, err := d.PullRequest(ctx, fleet, 7)
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
	r, d, _ := newReplay(t)
	r.on("GET repos/acme/fleet/pulls/7", ok(pull(7, head1, nil)))
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	results := make(chan error)
	for i := range 20 {
		go func() {
			if i%2 == 0 {
				_, err := d.PullRequest(canceled, fleet, 7)
				if !errors.Is(err, context.Canceled) {
					results <- fmt.Errorf("a canceled call: %v", err)
					return
				}
				results <- nil
				return
			}
			_, err := d.PullRequest(ctx, fleet, 7)
			results <- err
		}()
	}
	for range 20 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
