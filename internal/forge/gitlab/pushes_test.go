package gitlab

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

// pushEventJSON is a push to a branch as GitLab's events have it.
func pushEventJSON(login, branch string, from, to any) jsonObject {
	return jsonObject{"id": 1, "project_id": 7, "action_name": "pushed to", "created_at": "2026-03-02T09:00:00.123Z",
		"author": jsonObject{"id": len(login), "username": login}, "author_username": login,
		"push_data": jsonObject{"commit_count": 1, "action": "pushed", "ref_type": "branch", "commit_from": from, "commit_to": to, "ref": branch, "commit_title": "t"}}
}

func TestPushes(t *testing.T) {
	r, d := newReplayServer(t)
	tag, several := pushEventJSON("ada", "main", head1, head2), pushEventJSON("ada", "", nil, nil)
	tag["push_data"].(jsonObject)["ref_type"] = "tag"
	several["push_data"].(jsonObject)["ref"], several["push_data"].(jsonObject)["ref_count"] = nil, 4
	r.on("GET events", okResponse([]jsonObject{
		pushEventJSON("grace", "main", head2, nil), tag, several, pushEventJSON("ada", "other", head1, head2),
		pushEventJSON("project_7_bot_ab12", "main", head1, head2), pushEventJSON("linus", "main", nil, head1),
	}))
	var got []forge.Push
	if err := d.Pushes(t.Context(), testRepoName, "main", func(p forge.Push) bool { got = append(got, p); return false }); err != nil {
		t.Fatal(err)
	}
	want := []forge.Push{
		{Before: head2, By: forge.User{ID: 5, Login: "grace"}},
		{Before: head1, After: head2, By: forge.User{ID: 18, Login: "project_7_bot_ab12", Bot: true}},
		{After: head1, By: forge.User{ID: 5, Login: "linus"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if calls := r.calls("GET events"); len(calls) != 1 || !strings.Contains(calls[0], "action=pushed") || !strings.Contains(calls[0], "sort=desc") || strings.Contains(calls[0], "before=") {
		t.Errorf("it called %q", calls)
	}
}

// TestPushesFarBack holds that a push which isn't among those that are read isn't found, and that
// this is said.
func TestPushesFarBack(t *testing.T) {
	r, d := newReplayServer(t)
	var pages []response
	for page := range maxPushPages + 1 {
		events := slices.Repeat([]jsonObject{pushEventJSON("ada", "other", head1, head2)}, perPage)
		answer := okResponse(events)
		answer.header = map[string]string{"X-Next-Page": fmt.Sprint(page + 2)}
		pages = append(pages, answer)
	}
	r.on("GET events", pages...)
	err := d.Pushes(t.Context(), testRepoName, "main", func(forge.Push) bool { return true })
	if !errors.Is(err, forge.ErrTooMany) || len(r.calls("GET events")) != maxPushPages {
		t.Errorf("%v after %d calls", err, len(r.calls("GET events")))
	}
}

// TestMergeRequestPushersFarBack reads on until the commits' own pushes are found, and says it
// where they are too far back among those of all branches.
func TestMergeRequestPushersFarBack(t *testing.T) {
	commits := []jsonObject{{"id": head2, "author_name": "G", "author_email": "g@x.example"}, {"id": head1, "author_name": "G", "author_email": "g@x.example"}}
	page := func(n int, events ...jsonObject) response {
		answer := okResponse(append(events, slices.Repeat([]jsonObject{pushEventJSON("mallory", "other", head1, head2)}, perPage-len(events))...))
		answer.header = map[string]string{"X-Next-Page": fmt.Sprint(n + 1)}
		return answer
	}
	var flood []response
	for n := range maxPushPages {
		flood = append(flood, page(n+1))
	}
	head, first := pushEventJSON("ada", "topic", head1, head2), pushEventJSON("mallory", "topic", nil, head1)
	for name, c := range map[string]struct {
		pages []response
		want  []string // oldest first
		kind  error
		calls int
	}{
		"behind one page":            {pages: []response{page(1), page(2, head, first)}, want: []string{"mallory", "ada"}, calls: 2},
		"the head before the others": {pages: []response{page(1, head), page(2, first)}, want: []string{"mallory", "ada"}, calls: 2},
		"on one page of many":        {pages: []response{page(1, head, first)}, want: []string{"mallory", "ada"}, calls: 1},
		"too far back":               {pages: flood, kind: forge.ErrTooMany, calls: maxPushPages},
		"the first too far back":     {pages: append([]response{page(1, head)}, flood[1:]...), kind: forge.ErrTooMany, calls: maxPushPages},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET merge_requests/7/commits", okResponse(commits))
			r.on("GET users", okResponse([]jsonObject{}))
			r.on("GET events", c.pages...)
			all, err := d.PullRequestAuthors(t.Context(), testRepoName, &forge.PullRequest{Number: 7, Branch: "topic", Head: head2})
			if !errors.Is(err, c.kind) {
				t.Fatalf("it says %v, want %v", err, c.kind)
			}
			for i, want := range c.want {
				if got := all[i].Pusher.Login; got != want {
					t.Errorf("%s was pushed by %q, want %q", all[i].Commit, got, want)
				}
			}
			if n := len(r.calls("GET events")); n != c.calls {
				t.Errorf("after %d calls, want %d", n, c.calls)
			}
		})
	}
}

func TestMergeRequestPushers(t *testing.T) {
	commits := []jsonObject{{"id": head2, "author_name": "G", "author_email": "g@x.example"}, {"id": head1, "author_name": "G", "author_email": "g@x.example"}}
	merged := &forge.PullRequest{Number: 7, Branch: "topic", Head: head2, State: forge.Merged, ClosedAt: time.Date(2026, 2, 28, 23, 30, 0, 0, time.UTC)}
	fork := *merged
	fork.Fork = true
	for name, c := range map[string]struct {
		pr     *forge.PullRequest
		events response
		want   []string // the pusher of each commit, oldest first
		calls  string
		kind   error
	}{
		"told":           {pr: merged, events: okResponse([]jsonObject{pushEventJSON("mallory", "topic", head1, head2), pushEventJSON("ada", "topic", head1, head2), pushEventJSON("linus", "topic", nil, head1)}), want: []string{"linus", "ada"}, calls: "before=2026-03-01"},
		"not told":       {pr: merged, events: okResponse([]jsonObject{}), want: []string{"", ""}, calls: "before=2026-03-01"},
		"not to be read": {pr: merged, events: errorResponse(http.StatusForbidden, "403 Forbidden"), want: []string{"", ""}, calls: "before=2026-03-01"},
		"away":           {pr: merged, events: errorResponse(http.StatusBadGateway, "502"), kind: forge.ErrRetryable, calls: "before=2026-03-01"},
		"of a fork":      {pr: &fork, want: []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET merge_requests/7/commits", okResponse(commits))
			r.on("GET users", okResponse([]jsonObject{}))
			if c.events.status != 0 {
				r.on("GET events", c.events)
			}
			all, err := d.PullRequestAuthors(t.Context(), testRepoName, c.pr)
			if !errors.Is(err, c.kind) {
				t.Fatalf("it says %v, want %v", err, c.kind)
			}
			for i, want := range c.want {
				if got := all[i].Pusher.Login; got != want {
					t.Errorf("%s was pushed by %q, want %q", all[i].Commit, got, want)
				}
			}
			if calls := r.calls("GET events"); c.calls == "" && len(calls) > 0 || c.calls != "" && (len(calls) == 0 || !strings.Contains(calls[0], c.calls)) {
				t.Errorf("it called %q", calls)
			}
		})
	}
}

// TestMergedWhileMerging holds that what is in the middle of its merge isn't taken for something
// that no merge request brought.
func TestMergedWhileMerging(t *testing.T) {
	r, d := newReplayServer(t)
	path := "repository/commits/" + head1 + "/merge_requests"
	r.on("GET "+path, okResponse([]jsonObject{mergeRequestJSON(jsonObject{"state": "locked"})}))
	if list, err := d.MergedPullRequests(t.Context(), testRepoName, head1); !errors.Is(err, forge.ErrRetryable) {
		t.Errorf("being merged: %v, %v", list, err)
	}
	r.on("GET "+path, okResponse([]jsonObject{mergeRequestJSON(nil), mergeRequestJSON(jsonObject{"iid": 8, "state": "merged"})}))
	if list, err := d.MergedPullRequests(t.Context(), testRepoName, head1); err != nil || len(list) != 1 || list[0].Number != 8 {
		t.Errorf("merged: %v, %v", list, err)
	}
}
