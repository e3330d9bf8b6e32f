package emulator_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

func TestFaults(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("topic")
	comment := func() error {
		_, _, err := w.clientOf("liftlock").Issues.CreateComment(w.ctx, "acme", "fleet", n, &github.IssueComment{Body: github.String("hello")})
		return err
	}
	count := func() int {
		p, err := w.Pull(repo, n)
		w.must(err)
		return len(p.Comments)
	}
	t.Run("an answer instead of the effect", func(t *testing.T) {
		before := count()
		w.must(w.InjectFault(emulator.Fault{Method: "POST", Path: "/comments$", Status: 502, Times: 2}))
		wantRefused(t, comment(), 502, "Bad Gateway")
		wantRefused(t, comment(), 502, "Bad Gateway")
		if count() != before {
			t.Error("there was an effect")
		}
		w.must(comment())
	})
	t.Run("an answer after the effect", func(t *testing.T) {
		before := count()
		w.must(w.InjectFault(emulator.Fault{Path: "/comments$", After: true, Status: 504}))
		wantRefused(t, comment(), 504, "Gateway Timeout")
		if count() != before+1 {
			t.Error("there was no effect")
		}
	})
	t.Run("a broken connection after the effect", func(t *testing.T) {
		before := count()
		w.must(w.InjectFault(emulator.Fault{Path: "/comments$", After: true, Cut: true}))
		if err := comment(); err == nil || errors.As(err, new(*github.ErrorResponse)) {
			t.Errorf("got %v, want no answer at all", err)
		}
		if count() != before+1 {
			t.Error("there was no effect")
		}
	})
	t.Run("not the first call", func(t *testing.T) {
		w.must(w.InjectFault(emulator.Fault{Path: "/comments$", Skip: 1}))
		w.must(comment())
		wantRefused(t, comment(), 502, "")
	})
	t.Run("a secondary rate limit", func(t *testing.T) {
		w.must(w.InjectFault(emulator.Fault{
			Path: "/comments$", Status: 403, Times: -1, Header: http.Header{"Retry-After": {"7"}},
			Body: `{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
		}))
		var limit *github.AbuseRateLimitError
		if err := comment(); !errors.As(err, &limit) || limit.GetRetryAfter() != 7*time.Second {
			t.Errorf("got %v", err)
		}
		w.ClearFaults()
		w.must(comment())
	})
	t.Run("a pattern that can't be read", func(t *testing.T) {
		if w.InjectFault(emulator.Fault{Path: "("}) == nil {
			t.Error("it was accepted")
		}
	})
}
