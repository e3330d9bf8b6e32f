package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

var ctx = context.Background()

func TestMerge(t *testing.T) {
	merged := pullJSON(7, head1, jsonObject{"state": "closed", "merged_at": "2026-03-02T10:00:00Z", "merge_commit_sha": land1})
	refused := func(status int, words string) response {
		return response{status, nil, fmt.Sprintf(`{"message":%q}`, words)}
	}
	for _, c := range []struct {
		name   string
		answer response
		after  jsonObject // the pull request, when it is read
		commit string
		kind   error
		words  string
	}{
		{"merged", okResponse(jsonObject{"sha": land1, "merged": true}), nil, land1, nil, ""},
		{"merged already with this head", refused(405, "Pull Request is not mergeable"), merged, land1, nil, ""},
		{"merged already with another head", refused(405, "Pull Request is not mergeable"), pullJSON(7, head2, jsonObject{"state": "closed", "merged_at": "2026-03-02T10:00:00Z"}), "", forge.ErrConflict, "its head is " + head2},
		{"the head moved", refused(409, "Head branch was modified. Review and try the merge again."), pullJSON(7, head2, nil), "", forge.ErrConflict, "its head is " + head2},
		{"the head is moving", refused(409, "Head branch was modified. Review and try the merge again."), pullJSON(7, head1, nil), "", forge.ErrConflict, "Head branch was modified"},
		{"the base moved", refused(405, "Base branch was modified. Review and try the merge again."), pullJSON(7, head1, jsonObject{"mergeable_state": "clean"}), "", forge.ErrConflict, "Base branch was modified"},
		{"another merge isn't over", refused(405, "Merge already in progress"), pullJSON(7, head1, jsonObject{"mergeable_state": "clean"}), "", forge.ErrConflict, "already in progress"},
		{"still computing", refused(405, "Pull Request is not mergeable"), pullJSON(7, head1, jsonObject{"mergeable_state": "unknown"}), "", forge.ErrConflict, "not mergeable"},
		{"conflicts", refused(405, "Pull Request is not mergeable"), pullJSON(7, head1, jsonObject{"mergeable_state": "dirty"}), "", forge.ErrNotMergeable, "not mergeable (dirty)"},
		{"a review is missing", refused(405, "At least 1 approving review is required"), pullJSON(7, head1, jsonObject{"mergeable_state": "blocked"}), "", forge.ErrNotMergeable, "approving review is required (blocked)"},
		{"the method isn't allowed", refused(405, "Merge commits are not allowed on this repository."), pullJSON(7, head1, jsonObject{"mergeable_state": "clean"}), "", forge.ErrNotMergeable, "not allowed"},
		{"closed", refused(405, "Pull Request is not mergeable"), pullJSON(7, head1, jsonObject{"state": "closed"}), "", forge.ErrNotMergeable, "it is closed"},
		{"forbidden", refused(403, "Resource not accessible"), nil, "", forge.ErrForbidden, ""},
		{"a gateway in between", refused(502, "bad gateway"), nil, "", forge.ErrRetryable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("PUT repos/acme/fleet/pulls/7/merge", c.answer)
			if c.after != nil {
				r.on("GET repos/acme/fleet/pulls/7", okResponse(c.after))
			}
			commit, err := d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: "squash", Title: "T", Message: "M"})
			if commit != c.commit || !errors.Is(err, c.kind) {
				t.Fatalf("got %q, %v; want %q, %v", commit, err, c.commit, c.kind)
			}
			if c.kind != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %q, want it to contain %q", err, c.words)
			}
			want := `{"commit_message":"M","commit_title":"T","merge_method":"squash","sha":"` + head1 + `"}`
			if got := r.calls("PUT"); len(got) != 1 || !strings.HasSuffix(got[0], want) {
				t.Errorf("asked %v, want %s", got, want)
			}
		})
	}
	if _, err := (&Driver{}).Merge(ctx, testRepoName, forge.MergeRequest{Number: 7}); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a merge without a head: %v", err)
	}
}

// TestCreateRefused has a refused pull request evaluated again where the branches moved.
func TestCreateRefused(t *testing.T) {
	for body, want := range map[string]error{
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and topic"}]}`: forge.ErrConflict,
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"base","code":"invalid"}]}`:                               forge.ErrConflict,
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`:                               forge.ErrInvalid,
	} {
		r, d := newReplayServer(t)
		r.on("POST repos/acme/fleet/pulls", response{status: http.StatusUnprocessableEntity, body: body})
		if _, _, err := d.CreatePullRequest(ctx, testRepoName, forge.NewPullRequest{Title: "T", Branch: "topic", Base: "main"}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}

func TestMergeable(t *testing.T) {
	for state, want := range map[string]forge.Mergeable{
		"clean": forge.MergeableYes, "unstable": forge.MergeableYes, "has_hooks": forge.MergeableYes,
		"dirty": forge.MergeableDirty, "blocked": forge.MergeableBlocked, "draft": forge.MergeableBlocked,
		"behind": forge.MergeableBehind, "unknown": forge.MergeableUnknown, "": forge.MergeableUnknown, "new_word": forge.MergeableUnknown,
	} {
		r, d := newReplayServer(t)
		r.on("GET repos/acme/fleet/pulls/7", okResponse(pullJSON(7, head1, jsonObject{"mergeable_state": state})))
		pr, err := d.PullRequest(ctx, testRepoName, 7)
		if err != nil {
			t.Fatal(err)
		}
		if pr.Mergeable != want {
			t.Errorf("%q: %s, want %s", state, pr.Mergeable, want)
		}
		if (pr.MergeReason == "") != (want == forge.MergeableYes || state == "") {
			t.Errorf("%q: reason %q", state, pr.MergeReason)
		}
	}
}

func TestPullRequestIsTranslated(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("GET repos/acme/fleet/pulls/7", okResponse(pullJSON(7, head1, jsonObject{
		"state": "closed", "closed_at": "2026-03-02T11:00:00Z", "merged_at": "2026-03-02T11:00:00Z", "merged": true,
		"merge_commit_sha": land1, "merged_by": jsonObject{"login": "grace"}, "draft": false, "mergeable_state": "unknown",
	})))
	got, err := d.PullRequest(ctx, testRepoName, 7)
	if err != nil {
		t.Fatal(err)
	}
	at := func(h int) time.Time { return time.Date(2026, 3, 2, h, 0, 0, 0, time.UTC) }
	want := &forge.PullRequest{
		Number: 7, URL: "https://github.com/acme/fleet/pull/1", Title: "qa: web", Body: "b", Author: "liftlock-bot",
		Branch: "liftlock/shop/qa/web", Head: head1, Ref: "refs/pull/7/head", Base: "main", State: forge.Merged, Labels: []string{"env/qa", "liftlock"},
		Mergeable: forge.MergeableUnknown, MergeCommit: land1, MergedBy: "grace",
		CreatedAt: at(9), UpdatedAt: at(10), ClosedAt: at(11), MergedAt: at(11),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestForks(t *testing.T) {
	for _, c := range []struct {
		name string
		repo any
		want bool
	}{
		{"the same repository", jsonObject{"full_name": "acme/fleet"}, false},
		{"spelled otherwise", jsonObject{"full_name": "ACME/Fleet"}, false},
		{"a fork", jsonObject{"full_name": "mallory/fleet"}, true},
		{"a fork that was deleted", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			p := pullJSON(7, head1, jsonObject{"head": jsonObject{"ref": "liftlock/shop/qa/web", "sha": head1, "repo": c.repo}})
			r.on("GET repos/acme/fleet/pulls/7", okResponse(p))
			r.on("GET repos/acme/fleet/pulls", okResponse([]jsonObject{p, pullJSON(8, head1, jsonObject{"head": jsonObject{"ref": "other", "repo": jsonObject{"full_name": "acme/fleet"}}})}))
			pr, err := d.PullRequest(ctx, testRepoName, 7)
			if err != nil || pr.Fork != c.want {
				t.Errorf("fork %v, %v", pr, err)
			}
			list, err := d.PullRequestsByBranch(ctx, testRepoName, "liftlock/shop/qa/web")
			if err != nil {
				t.Fatal(err)
			}
			if (len(list) == 0) != c.want {
				t.Errorf("found by its branch: %v", list)
			}
			if got := r.calls("head="); len(got) != 1 || !strings.Contains(got[0], "head=acme%3Aliftlock%2Fshop%2Fqa%2Fweb") {
				t.Errorf("asked %v", got)
			}
		})
	}
}

func TestPullRequestsStopAtOlderOnes(t *testing.T) {
	r, d := newReplayServer(t)
	link := map[string]string{"Link": `<SERVER/api/v3/repos/acme/fleet/pulls?page=2>; rel="next"`}
	first := okResponse([]jsonObject{pullJSON(9, head1, jsonObject{"updated_at": "2026-03-02T12:00:00Z"}), pullJSON(8, head1, jsonObject{"updated_at": "2026-03-02T11:00:00Z"})})
	first.header = link
	second := okResponse([]jsonObject{pullJSON(8, head1, jsonObject{"updated_at": "2026-03-02T11:00:00Z"}), pullJSON(7, head1, nil), pullJSON(3, head1, jsonObject{"updated_at": "2026-03-01T00:00:00Z"})})
	second.header = link
	r.on("GET repos/acme/fleet/pulls", first, second)
	list, err := d.PullRequests(ctx, testRepoName, time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, p := range list {
		numbers = append(numbers, p.Number)
	}
	if diff := cmp.Diff([]int{9, 8, 7}, numbers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := r.calls("GET"); len(got) != 2 || !strings.Contains(got[0], "direction=desc") || !strings.Contains(got[0], "sort=updated") || !strings.Contains(got[0], "state=all") {
		t.Errorf("asked %v", got)
	}
}

func TestListsEnd(t *testing.T) {
	r, d := newReplayServer(t)
	sameNextPage := okResponse([]jsonObject{})
	sameNextPage.header = map[string]string{"Link": `<SERVER/api/v3/x?page=2>; rel="next"`}
	r.on("GET repos/acme/fleet/issues/7/comments", sameNextPage)
	if _, err := d.Comments(ctx, testRepoName, 7, time.Time{}); !errors.Is(err, forge.ErrInvalid) || !strings.Contains(err.Error(), "more than 10000") {
		t.Errorf("got %v", err)
	}
}

// TestPullRequestsHaveNoSmallEnd holds that a repository with a long history can be read.
func TestPullRequestsHaveNoSmallEnd(t *testing.T) {
	r, d := newReplayServer(t)
	more := okResponse([]jsonObject{})
	more.header = map[string]string{"Link": `<SERVER/api/v3/x?page=2>; rel="next"`}
	pages := append(slices.Repeat([]response{more}, maxPages+1), okResponse([]jsonObject{}))
	r.on("GET repos/acme/fleet/pulls", pages...)
	if _, err := d.PullRequests(ctx, testRepoName, time.Time{}); err != nil {
		t.Error(err)
	}
	if n := len(r.calls("GET")); n != maxPages+2 {
		t.Errorf("in %d calls", n)
	}
}

func TestCreatePullRequest(t *testing.T) {
	n := forge.NewPullRequest{Title: "T", Branch: "liftlock/shop/qa/web", Base: "main", Labels: []string{"env/qa", "liftlock", "new"}}
	t.Run("a new one", func(t *testing.T) {
		r, d := newReplayServer(t)
		created := okResponse(pullJSON(7, head1, jsonObject{"labels": nil}))
		created.status = 201
		r.on("POST repos/acme/fleet/pulls", created)
		r.on("POST repos/acme/fleet/issues/7/labels", okResponse([]jsonObject{}))
		pr, isNew, err := d.CreatePullRequest(ctx, testRepoName, n)
		if err != nil || !isNew || pr.Number != 7 || strings.Join(pr.Labels, " ") != "env/qa liftlock new" {
			t.Errorf("got %+v, %v, %v", pr, isNew, err)
		}
	})
	t.Run("one that is there, with a label missing", func(t *testing.T) {
		r, d := newReplayServer(t)
		r.on("POST repos/acme/fleet/pulls", message422("A pull request already exists for acme:liftlock/shop/qa/web."))
		r.on("GET repos/acme/fleet/pulls", okResponse([]jsonObject{pullJSON(6, head1, jsonObject{"base": jsonObject{"ref": "other"}}), pullJSON(5, head1, nil)}))
		r.on("POST repos/acme/fleet/issues/5/labels", okResponse([]jsonObject{}))
		pr, isNew, err := d.CreatePullRequest(ctx, testRepoName, n)
		if err != nil || isNew || pr.Number != 5 {
			t.Errorf("got %+v, %v, %v", pr, isNew, err)
		}
		if got := r.calls("labels"); len(got) != 1 || !strings.HasSuffix(got[0], `["new"]`) {
			t.Errorf("labelled with %v", got)
		}
	})
	t.Run("refused otherwise", func(t *testing.T) {
		r, d := newReplayServer(t)
		r.on("POST repos/acme/fleet/pulls", message422("Title is too long"))
		if _, _, err := d.CreatePullRequest(ctx, testRepoName, n); !errors.Is(err, forge.ErrInvalid) || !strings.Contains(err.Error(), "Title is too long") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAlreadySoIsSuccess(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("DELETE repos/acme/fleet/git/refs/heads/liftlock/shop/qa/web", response{422, nil, `{"message":"Reference does not exist"}`})
	r.on("DELETE repos/acme/fleet/issues/7/labels/liftlock%2Fhold", response{404, nil, `{"message":"Label does not exist"}`})
	if err := d.DeleteBranch(ctx, testRepoName, "liftlock/shop/qa/web"); err != nil {
		t.Error(err)
	}
	if err := d.RemoveLabel(ctx, testRepoName, 7, "liftlock/hold"); err != nil {
		t.Error(err)
	}
	if err := d.RemoveLabel(ctx, testRepoName, 8, "liftlock/hold"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("a pull request that isn't there: %v", err)
	}
	before := len(r.calls(""))
	if err := d.UpdatePullRequest(ctx, testRepoName, 7, forge.PullRequestUpdate{}); err != nil || len(r.calls("")) != before {
		t.Errorf("changing nothing: %v", err)
	}
}

func TestReviewsKeepTheLastDecision(t *testing.T) {
	r, d := newReplayServer(t)
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	id := 0
	review := func(user, state, commit string) jsonObject {
		id++
		v := jsonObject{"id": id, "state": state, "commit_id": commit, "submitted_at": at.Add(time.Duration(id) * time.Minute), "user": jsonObject{"login": user, "type": "User"}}
		if user == "" {
			v["user"] = nil
		}
		return v
	}
	first := okResponse([]jsonObject{
		review("ada", "APPROVED", head1),
		review("grace", "APPROVED", head1),
		review("edsger", "COMMENTED", head1),
		review("", "APPROVED", head1),
		review("barbara", "CHANGES_REQUESTED", head1),
	})
	first.header = map[string]string{"Link": `<SERVER/api/v3/x?page=2>; rel="next"`}
	r.on("GET repos/acme/fleet/pulls/7/reviews", first, okResponse([]jsonObject{
		review("ada", "COMMENTED", head2),
		review("grace", "DISMISSED", head1),
		review("barbara", "APPROVED", head2),
		review("alan", "PENDING", head2),
	}))
	got, err := d.Reviews(ctx, testRepoName, 7)
	if err != nil {
		t.Fatal(err)
	}
	minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	want := []forge.Review{
		{ID: 1, User: "ada", Approved: true, Commit: head1, At: minute(1)},
		{ID: 3, User: "edsger", Commit: head1, At: minute(3)},
		{ID: 7, User: "grace", Commit: head1, At: minute(7)},
		{ID: 8, User: "barbara", Approved: true, Commit: head2, At: minute(8)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStatuses(t *testing.T) {
	r, d := newReplayServer(t)
	status := func(context, state, creator string) jsonObject {
		return jsonObject{"context": context, "state": state, "creator": jsonObject{"login": creator}}
	}
	r.on("GET repos/acme/fleet/commits/"+head1+"/statuses", okResponse([]jsonObject{status("ci", "success", "ada"), status("liftlock", "pending", "bot"), status("ci", "failure", "ada")}))
	got, err := d.Statuses(ctx, testRepoName, head1)
	if err != nil {
		t.Fatal(err)
	}
	want := []forge.Status{{Context: "ci", State: forge.StatusSuccess, Creator: "ada"}, {Context: "liftlock", State: forge.StatusPending, Creator: "bot"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.on("POST repos/acme/fleet/statuses/"+head1, okResponse(jsonObject{}))
	if err := d.SetStatus(ctx, testRepoName, head1, forge.Status{Context: "liftlock", State: forge.StatusPending, Description: strings.Repeat("ä", 200)}); err != nil {
		t.Fatal(err)
	}
	if got := r.calls("POST"); len(got) != 1 || strings.Count(got[0], "ä") != 139 || !strings.Contains(got[0], "…") {
		t.Errorf("sent %v", got)
	}
}

// TestChecks holds that statuses and check runs are read from all pages, and that of each
// name and app the newest counts.
func TestChecks(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("GET repos/acme/fleet/commits/"+head1+"/statuses", okResponse([]jsonObject{
		{"context": "ci", "state": "success", "creator": jsonObject{"login": "ada"}},
		{"context": "ci", "state": "pending", "creator": jsonObject{"login": "grace"}},
		{"context": "ci", "state": "failure", "creator": jsonObject{"login": "ada"}},
	}))
	run := func(id int, name, app, status, conclusion string) jsonObject {
		return jsonObject{"id": id, "name": name, "app": jsonObject{"slug": app}, "status": status, "conclusion": conclusion}
	}
	first := okResponse(jsonObject{"total_count": 8, "check_runs": []jsonObject{
		run(3, "build", "actions", "completed", "failure"), run(9, "build", "actions", "in_progress", ""), run(4, "build", "other", "completed", "neutral"), run(5, "skip", "actions", "completed", "skipped"),
	}})
	first.header = map[string]string{"Link": `<https://api.github.com/x?page=2>; rel="next"`}
	r.on("GET repos/acme/fleet/commits/"+head1+"/check-runs", first, okResponse(jsonObject{"total_count": 8, "check_runs": []jsonObject{
		run(6, "build", "actions", "completed", "success"), run(7, "old", "actions", "completed", "stale"), run(8, "stuck", "actions", "completed", "timed_out"), run(2, "ci", "ada", "queued", ""),
	}}))
	got, err := d.Checks(ctx, testRepoName, head1)
	if err != nil {
		t.Fatal(err)
	}
	want := []forge.Check{
		{Name: "build", App: "actions[bot]", State: forge.CheckPending, Word: "in_progress"},
		{Name: "build", App: "other[bot]", State: forge.CheckPassed, Word: "neutral"},
		{Name: "ci", App: "ada", State: forge.CheckPassed, Word: "success"},
		{Name: "ci", App: "ada[bot]", State: forge.CheckPending, Word: "queued"},
		{Name: "ci", App: "grace", State: forge.CheckPending, Word: "pending"},
		{Name: "old", App: "actions[bot]", State: forge.CheckFailed, Word: "stale"},
		{Name: "skip", App: "actions[bot]", State: forge.CheckSkipped, Word: "skipped"},
		{Name: "stuck", App: "actions[bot]", State: forge.CheckFailed, Word: "timed_out"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.on("GET repos/acme/fleet/commits/"+head1+"/check-runs", response{status: 403})
	if _, err := d.Checks(ctx, testRepoName, head1); err == nil {
		t.Error("check runs that can't be read are none")
	}
}

func TestPermission(t *testing.T) {
	r, d := newReplayServer(t)
	for login, word := range map[string]string{"ada": "admin", "grace": "write", "edsger": "read", "alan": "none"} {
		r.on("GET repos/acme/fleet/collaborators/"+login+"/permission", okResponse(jsonObject{"permission": word}))
	}
	for login, want := range map[string]forge.Permission{
		"ada": forge.PermissionAdmin, "grace": forge.PermissionWrite, "edsger": forge.PermissionRead,
		"alan": forge.PermissionNone, "nobody": forge.PermissionNone, "../../x": forge.PermissionNone, "..": forge.PermissionNone,
	} {
		got, err := d.Permission(ctx, testRepoName, login)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", login, got, err, want)
		}
	}
	for _, call := range r.calls("") {
		if !strings.HasPrefix(call, "GET repos/acme/fleet/collaborators/") {
			t.Errorf("a login led to %s", call)
		}
	}
}

func TestIsTeamMember(t *testing.T) {
	r, d := newReplayServer(t)
	sre := forge.Team{Organisation: "acme", Name: "sre"}
	const team, member = "GET orgs/acme/teams/sre", "GET orgs/acme/teams/sre/memberships/ada"
	for name, c := range map[string]struct {
		member, team response
		want         bool
		kind         error
	}{
		"a member":               {okResponse(jsonObject{"state": "active"}), response{}, true, nil},
		"invited":                {okResponse(jsonObject{"state": "pending"}), response{}, false, nil},
		"not in it":              {response{404, nil, `{"message":` + strconv.Quote("Not Found") + `}`}, okResponse(jsonObject{"id": 1}), false, nil},
		"no such team":           {response{404, nil, `{"message":` + strconv.Quote("Not Found") + `}`}, response{404, nil, `{"message":` + strconv.Quote("Not Found") + `}`}, false, forge.ErrNotFound},
		"not for us to see":      {response{403, nil, `{"message":` + strconv.Quote("Resource not accessible") + `}`}, response{}, false, forge.ErrForbidden},
		"the team can't be read": {response{404, nil, `{"message":` + strconv.Quote("Not Found") + `}`}, response{403, nil, `{"message":` + strconv.Quote("no") + `}`}, false, forge.ErrForbidden},
		"a gateway in between":   {response{502, nil, "<html>"}, response{}, false, forge.ErrRetryable},
		"and then, for the team": {response{404, nil, `{"message":` + strconv.Quote("Not Found") + `}`}, response{502, nil, "<html>"}, false, forge.ErrRetryable},
	} {
		r.on(member, c.member)
		r.on(team, c.team)
		if is, err := d.IsTeamMember(ctx, sre, "ada"); is != c.want || !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
}

func TestEnsureHook(t *testing.T) {
	const url = "https://liftlock.example.com/webhooks/hub"
	other := jsonObject{"id": 1, "active": true, "events": []string{"push"}, "config": jsonObject{"url": "https://ci.example.com", "content_type": "form"}}
	right := jsonObject{"id": 2, "active": true, "events": slices.Concat([]string{"release"}, DefaultEvents, lateEvents), "config": jsonObject{"url": url, "content_type": "json", "insecure_ssl": "0", "secret": "********"}}
	with := func(change jsonObject) jsonObject {
		hook := jsonObject{}
		for k, v := range right {
			hook[k] = v
		}
		for k, v := range change {
			hook[k] = v
		}
		return hook
	}
	for _, c := range []struct {
		name    string
		hooks   []jsonObject
		changed bool
		write   string
	}{
		{"none", []jsonObject{other}, true, "POST repos/acme/fleet/hooks"},
		{"right, the secret unknown", []jsonObject{other, right}, false, "PATCH repos/acme/fleet/hooks/2"},
		{"inactive", []jsonObject{with(jsonObject{"active": false})}, true, "PATCH repos/acme/fleet/hooks/2"},
		{"an event missing", []jsonObject{with(jsonObject{"events": []string{"push"}})}, true, "PATCH repos/acme/fleet/hooks/2"},
		{"every event", []jsonObject{with(jsonObject{"events": []string{"*"}})}, false, "PATCH repos/acme/fleet/hooks/2"},
		{"a form", []jsonObject{with(jsonObject{"config": jsonObject{"url": url, "content_type": "form"}})}, true, "PATCH repos/acme/fleet/hooks/2"},
		{"without TLS checks", []jsonObject{with(jsonObject{"config": jsonObject{"url": url, "content_type": "json", "insecure_ssl": "1"}})}, true, "PATCH repos/acme/fleet/hooks/2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet/hooks", okResponse(c.hooks), okResponse([]jsonObject{other, right}))
			r.on("POST repos/acme/fleet/hooks", okResponse(right))
			r.on("PATCH repos/acme/fleet/hooks/2", okResponse(right))
			changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"})
			if err != nil || changed != c.changed {
				t.Fatalf("changed %v, %v; want %v", changed, err, c.changed)
			}
			writes := r.calls("s3cret")
			if len(writes) != 1 || !strings.HasPrefix(writes[0], c.write+" ") {
				t.Errorf("wrote %v, want %s", writes, c.write)
			}
			// Again: nothing to do. With another secret: it is set.
			if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); changed || err != nil || len(r.calls("s3cret")) != 1 {
				t.Errorf("the second time: changed %v, %v", changed, err)
			}
			if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "another"}); !changed || err != nil || len(r.calls("another")) != 1 {
				t.Errorf("with another secret: changed %v, %v", changed, err)
			}
		})
	}
}

// TestEnsureHookWithoutRulesEvents: a GitHub that knows no rulesets refuses their event, and is
// sent the others; it isn't tried again at each look.
func TestEnsureHookWithoutRulesEvents(t *testing.T) {
	const url = "https://liftlock.example.com/webhooks/hub"
	refused := response{422, nil, `{"message":"Validation Failed","errors":[{"resource":"Hook","field":"events","code":"invalid"}]}`}
	hook := jsonObject{"id": 2, "active": true, "events": DefaultEvents, "config": jsonObject{"url": url, "content_type": "json", "insecure_ssl": "0"}}
	for name, c := range map[string]struct {
		there   []jsonObject
		write   string
		changed bool
	}{
		"made":     {[]jsonObject{}, "POST repos/acme/fleet/hooks", true},
		"repaired": {[]jsonObject{hook}, "PATCH repos/acme/fleet/hooks/2", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet/hooks", okResponse(c.there), okResponse(c.there), okResponse([]jsonObject{hook}))
			r.on(c.write, refused, okResponse(hook))
			if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); err != nil || changed != c.changed {
				t.Fatalf("changed %v, %v; want %v", changed, err, c.changed)
			}
			writes := r.calls(c.write)
			if len(writes) != 2 || !strings.Contains(writes[0], "repository_ruleset") || strings.Contains(writes[1], "repository_ruleset") {
				t.Errorf("wrote %q", writes)
			}
			if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); changed || err != nil || len(r.calls(c.write)) != 2 {
				t.Errorf("the second time: changed %v, %v, %q", changed, err, r.calls(c.write))
			}
		})
	}
	t.Run("another refusal", func(t *testing.T) {
		r, d := newReplayServer(t)
		r.on("GET repos/acme/fleet/hooks", okResponse([]jsonObject{}))
		r.on("POST repos/acme/fleet/hooks", refused)
		if _, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("it is %v", err)
		}
		r.on("POST repos/acme/fleet/hooks", okResponse(hook))
		if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); !changed || err != nil || len(r.calls("repository_ruleset")) != 2 {
			t.Errorf("once it isn't refused: changed %v, %v, %q", changed, err, r.calls("POST"))
		}
	})
}

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"":                               "https://github.com/acme/fleet.git",
		"https://api.github.com":         "https://github.com/acme/fleet.git",
		"https://ghe.example/api/v3/":    "https://ghe.example/acme/fleet.git",
		"https://api.octo.ghe.com":       "https://octo.ghe.com/acme/fleet.git",
		"https://api.octo.ghe.com/":      "https://octo.ghe.com/acme/fleet.git",
		"https://api.example/api/v3":     "https://api.example/acme/fleet.git",
		"http://127.0.0.1:8080/api/v3":   "http://127.0.0.1:8080/acme/fleet.git",
		"https://example.com/ghe/api/v3": "https://example.com/ghe/acme/fleet.git",
	} {
		d, err := New(Options{URL: base, Token: "t0ken"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.CloneURL(ctx, testRepoName)
		if err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", base, got, err, want)
		}
		page := strings.TrimSuffix(want, ".git")
		if got := d.CommitURL(testRepoName, "c0ffee"); got != page+"/commit/c0ffee" {
			t.Errorf("%q: a commit is at %s", base, got)
		}
		if got := d.CompareURL(testRepoName, "c0ffee", "decade"); got != page+"/compare/c0ffee...decade" {
			t.Errorf("%q: a comparison is at %s", base, got)
		}
		if user, password, err := d.GitAuth(ctx, testRepoName); user != "x-access-token" || password != "t0ken" || err != nil {
			t.Errorf("credentials %s %s %v", user, password, err)
		}
	}
}

func TestReacted(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("GET user", okResponse(jsonObject{"login": "liftlock-bot", "type": "User"}))
	r.on("GET repos/acme/fleet/issues/comments/5/reactions", okResponse([]jsonObject{{"content": "+1", "user": jsonObject{"login": "ada"}}, {"content": "eyes", "user": jsonObject{"login": "liftlock-bot"}}}))
	r.on("GET repos/acme/fleet/issues/comments/6/reactions", okResponse([]jsonObject{{"content": "eyes", "user": jsonObject{"login": "ada"}}}))
	for comment, want := range map[int64]bool{5: true, 6: false} {
		if got, err := d.HasReacted(ctx, testRepoName, 7, comment); err != nil || got != want {
			t.Errorf("comment %d: %v, %v", comment, got, err)
		}
	}
	if got := r.calls("GET user"); len(got) != 1 {
		t.Errorf("asked %d times who we are", len(got))
	}
}

// TestVersionIsPinned: the next version of the API no longer has merge_commit_sha.
func TestVersionIsPinned(t *testing.T) {
	seen := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = strings.Join(r.Header.Values("X-GitHub-Api-Version"), ",")
		fmt.Fprint(w, `{"login":"liftlock-bot"}`)
	}))
	t.Cleanup(server.Close)
	d, err := New(Options{URL: server.URL, Token: "t0ken"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Me(ctx); err != nil || seen != "2022-11-28" {
		t.Errorf("called with the version %q, %v", seen, err)
	}
}
