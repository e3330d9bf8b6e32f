package gitlab

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

func TestLimits(t *testing.T) {
	n := func(n int) *int { return &n }
	const public, other = "https://gitlab.com", "https://git.example.com/git"
	for _, c := range []struct {
		name, url string
		public    bool
		set       CallLimits
		want      string
	}{
		{"gitlab.com", public, false, CallLimits{}, "calls 2000, looks at users 300, new notes 60, looks at projects 400"},
		{"gitlab.com, lower", public, false, CallLimits{NewNotes: n(30)}, "calls 2000, looks at users 300, new notes 30, looks at projects 400"},
		{"one's own", other, false, CallLimits{}, "new notes 300, looks at projects 400"},
		{"one's own, as its administrator set it", other, false, CallLimits{NewNotes: n(20), ProjectReads: n(50)}, "new notes 20, looks at projects 50"},
		{"one's own, as public as gitlab.com", other, true, CallLimits{}, "calls 2000, looks at users 300, new notes 60, looks at projects 400"},
		{"one's own, without limits", other, false, CallLimits{NewNotes: n(0), ProjectReads: n(0)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, err := url.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range limitsOf(base, c.public, c.set) {
				got = append(got, fmt.Sprint(l.Name, " ", l.Calls))
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got %s", s)
			}
		})
	}
}

// TestLimitOfNotes holds that an unknown limit of new notes keeps back notes alone, and one of all
// calls everything. A note that can't be written then keeps no merge back.
func TestLimitOfNotes(t *testing.T) {
	for _, c := range []struct {
		name, words string
		kind        error // of another call then
	}{
		{"of notes", "This endpoint has been requested too many times. Try again later.", nil},
		{"of all calls", "Too Many Requests", forge.ErrRateLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("POST merge_requests/7/notes", errorResponse(429, c.words))
			r.on("GET merge_requests/7", okResponse(mergeRequestJSON(nil)))
			for range 2 {
				_, err := d.CreateComment(forge.WithPriority(ctx, forge.PriorityUrgent), testRepoName, 7, "hello")
				if e := rest.ErrorOf(err); !errors.Is(err, forge.ErrRateLimited) || e.RetryAfter.Before(replayTime.Add(time.Minute)) || forge.LeavesHigher(err) != (c.kind == nil) {
					t.Errorf("got %v, again %s, others are called: %t", err, e.RetryAfter, forge.LeavesHigher(err))
				}
			}
			if n := len(r.calls("POST")); n != 1 {
				t.Errorf("%d notes were sent", n)
			}
			if _, err := d.PullRequest(ctx, testRepoName, 7); !errors.Is(err, c.kind) {
				t.Errorf("another call: %v", err)
			}
		})
	}
}
