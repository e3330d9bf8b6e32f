package github

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// TestLimitsGoByTheClock holds that after a refusal, and after the last call that the answers
// leave, nothing reaches GitHub until it may, and then it does. The driver's clock and GitHub's
// decide, which are hours away from each other and from the machine's.
func TestLimitsGoByTheClock(t *testing.T) {
	ours := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	theirs := ours.Add(5 * time.Hour)
	reset := strconv.FormatInt(theirs.Add(20*time.Minute).Unix(), 10)
	const secondary = `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
	for _, c := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		wait   time.Duration
	}{
		{"the hourly limit", 403, map[string]string{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, `{"message":"API rate limit exceeded"}`, 20 * time.Minute},
		{"the last call of the hour", 200, map[string]string{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, `[]`, 20 * time.Minute},
		{"a secondary limit", 403, map[string]string{"Retry-After": "90"}, secondary, 90 * time.Second},
		{"a secondary limit beside the hourly one", 403, map[string]string{"Retry-After": "90", "X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "50", "X-RateLimit-Reset": reset}, secondary, 90 * time.Second},
		{"429", 429, map[string]string{"Retry-After": "90"}, `{}`, 90 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int64
			now := ours
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", theirs.Add(now.Sub(ours)).Format(http.TimeFormat))
				status, body := http.StatusOK, `[]`
				if calls.Add(1) == 1 {
					for k, v := range c.header {
						w.Header().Set(k, v)
					}
					status, body = c.status, c.body
				}
				w.WriteHeader(status)
				if _, err := w.Write([]byte(body)); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			d, err := New(Options{URL: server.URL + "/api/v3", Token: "t0ken", Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			list := func() error {
				_, err := d.PullRequests(forge.WithPriority(context.Background(), forge.PriorityUrgent), testRepoName, time.Time{})
				return err
			}
			if err := list(); (err != nil) != (c.status != 200) || err != nil && (!errors.Is(err, forge.ErrRateLimited) || !forge.RetryAfter(err).Equal(ours.Add(c.wait))) {
				t.Fatalf("refused: %v, again at %s", err, forge.RetryAfter(err))
			}
			now = ours.Add(c.wait - time.Second)
			if err := list(); !errors.Is(err, forge.ErrRateLimited) || calls.Load() != 1 {
				t.Fatalf("%d calls a second before its time: %v", calls.Load(), err)
			}
			now = ours.Add(c.wait)
			if err := list(); err != nil || calls.Load() != 2 {
				t.Errorf("%d calls at its time: %v", calls.Load(), err)
			}
		})
	}
}
