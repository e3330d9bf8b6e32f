package gitea

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

func TestMerge(t *testing.T) {
	merged := func(head string) jsonObject {
		return pullJSON(7, head, jsonObject{"state": "closed", "merged": true, "mergeable": false, "merged_at": "2026-03-02T10:00:00Z", "merge_commit_sha": land1})
	}
	for _, c := range []struct {
		name   string
		answer response
		after  jsonObject // the pull request, when it is read
		commit string
		kind   error
		words  string
	}{
		{"merged", response{status: 200}, merged(head1), land1, nil, ""},
		{"merged, and not shown yet", response{status: 200}, pullJSON(7, head1, nil), "", forge.ErrRetryable, "doesn't show it yet"},
		{"merged already", errorResponse(405, ""), merged(head1), land1, nil, ""},
		{"merged already with another head", errorResponse(405, ""), merged(head2), "", forge.ErrConflict, "its head is " + head2},
		{"the head moved", errorResponse(409, "head out of date"), pullJSON(7, head2, nil), "", forge.ErrConflict, "its head is " + head2},
		{"the base moved", errorResponse(409, "merge push out of date"), pullJSON(7, head1, nil), "", forge.ErrConflict, "out of date"},
		{"a conflict found while merging", response{409, nil, `{"Style":"merge","StdOut":"CONFLICT"}`}, pullJSON(7, head1, nil), "", forge.ErrConflict, ""},
		{"a hook on the server refuses", errorResponse(409, "PushRejected with remote message: no"), pullJSON(7, head1, nil), "", forge.ErrNotMergeable, "PushRejected"},
		{"being checked", errorResponse(405, "Please try again later"), pullJSON(7, head1, jsonObject{"mergeable": false}), "", forge.ErrConflict, "try again"},
		{"work in progress", errorResponse(405, "Work in progress PRs cannot be merged"), pullJSON(7, head1, jsonObject{"mergeable": false, "draft": true}), "", forge.ErrNotMergeable, "Work in progress"},
		{"an approval is missing", errorResponse(405, "Does not have enough approvals"), pullJSON(7, head1, nil), "", forge.ErrNotMergeable, "enough approvals"},
		{"closed", errorResponse(404, ""), pullJSON(7, head1, jsonObject{"state": "closed", "mergeable": false}), "", forge.ErrNotMergeable, "it is closed"},
		{"isn't there", errorResponse(404, ""), nil, "", forge.ErrNotFound, ""},
		{"forbidden", errorResponse(403, "no"), nil, "", forge.ErrForbidden, ""},
		{"a gateway in between", response{502, nil, "<html>"}, nil, "", forge.ErrRetryable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d, _ := newReplayServer(t)
			r.on("POST repos/acme/fleet/pulls/7/merge", c.answer)
			if c.after != nil {
				r.on("GET repos/acme/fleet/pulls/7", okResponse(c.after))
				r.on("GET repos/acme/fleet/git/refs/pull/7/head", refJSON(7, c.after["head"].(jsonObject)["sha"].(string)))
			}
			commit, err := d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: "squash", Title: "T", Message: "M"})
			if commit != c.commit || !errors.Is(err, c.kind) {
				t.Fatalf("got %q, %v; want %q, %v", commit, err, c.commit, c.kind)
			}
			if c.kind != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %q, want it to contain %q", err, c.words)
			}
			sent := strings.Join(r.calls("POST"), "\n")
			for _, part := range []string{`"Do":"squash"`, `"MergeTitleField":"T"`, `"MergeMessageField":"M"`, `"head_commit_id":"` + head1 + `"`, `"delete_branch_after_merge":false`, `"force_merge":false`} {
				if !strings.Contains(sent, part) {
					t.Errorf("sent %s without %s", sent, part)
				}
			}
		})
	}
}

// TestMergeable: false is a check under way until it has stayed false for the
// check time with the same two commits.
func TestMergeable(t *testing.T) {
	r, d, now := newReplayServer(t)
	look := func(p jsonObject) forge.Mergeable {
		t.Helper()
		r.on("GET repos/acme/fleet/pulls/7", okResponse(p))
		r.on("GET repos/acme/fleet/git/refs/pull/7/head", refJSON(7, head1))
		pr, err := d.PullRequest(ctx, testRepoName, 7)
		if err != nil {
			t.Fatal(err)
		}
		if (pr.MergeReason == "") != (pr.Mergeable == forge.MergeableYes || pr.State != forge.Open) {
			t.Errorf("%s for the reason %q", pr.Mergeable, pr.MergeReason)
		}
		return pr.Mergeable
	}
	not := jsonObject{"mergeable": false}
	onBase := func(base string) jsonObject {
		return jsonObject{"mergeable": false, "base": jsonObject{"ref": "main", "sha": base, "repo_id": 10}}
	}
	for i, step := range []struct {
		after time.Duration
		pull  jsonObject
		want  forge.Mergeable
	}{
		{0, pullJSON(7, head1, not), forge.MergeableUnknown},
		{29 * time.Second, pullJSON(7, head1, not), forge.MergeableUnknown},
		{time.Second, pullJSON(7, head1, not), forge.MergeableDirty},
		{time.Hour, pullJSON(7, head1, not), forge.MergeableDirty},
		{time.Second, pullJSON(7, head2, not), forge.MergeableUnknown}, // another head: checked again
		{30 * time.Second, pullJSON(7, head2, not), forge.MergeableDirty},
		{time.Second, pullJSON(7, head2, onBase(base2)), forge.MergeableUnknown}, // another base: checked again
		{time.Second, pullJSON(7, head2, nil), forge.MergeableYes},
		{time.Hour, pullJSON(7, head2, not), forge.MergeableUnknown}, // an earlier false doesn't count
		{time.Second, pullJSON(7, head2, jsonObject{"mergeable": false, "draft": true}), forge.MergeableBlocked},
		{time.Second, pullJSON(7, head1, jsonObject{"mergeable": false, "state": "closed"}), forge.MergeableUnknown},
	} {
		*now = now.Add(step.after)
		if got := look(step.pull); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

func TestSmallPagesAreReadToTheEnd(t *testing.T) {
	r, d, _ := newReplayServer(t)
	page := func(total string, ids ...int) response {
		var list []jsonObject
		for _, id := range ids {
			list = append(list, jsonObject{"id": id, "context": fmt.Sprint("c", id), "status": "success"})
		}
		a := okResponse(list)
		if total != "" {
			a.header = map[string]string{"X-Total-Count": total}
		}
		return a
	}
	for _, c := range []struct {
		name  string
		pages []response
		calls int
	}{
		{"counted", []response{page("5", 5, 4), page("5", 3, 2), page("5", 1)}, 3},
		{"not counted", []response{page("", 5, 4), page("", 3, 2), page("", 1), page("")}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(r.calls("statuses"))
			r.on("GET repos/acme/fleet/commits/"+head1+"/statuses", c.pages...)
			list, err := d.Statuses(ctx, testRepoName, head1)
			if err != nil || len(list) != 5 {
				t.Errorf("got %d statuses, %v", len(list), err)
			}
			if n := len(r.calls("statuses")) - before; n != c.calls {
				t.Errorf("in %d calls, want %d", n, c.calls)
			}
		})
	}
	t.Run("endless", func(t *testing.T) {
		r.on("GET repos/acme/fleet/commits/"+head1+"/statuses", page("", 1))
		if _, err := d.Statuses(ctx, testRepoName, head1); !errors.Is(err, forge.ErrInvalid) || !strings.Contains(err.Error(), "more than 10000") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWarningsAreFailures(t *testing.T) {
	r, d, _ := newReplayServer(t)
	r.on("GET repos/acme/fleet/commits/"+head1+"/statuses", okResponse([]jsonObject{
		{"id": 3, "context": "ci", "status": "warning", "creator": jsonObject{"login": "ada"}},
		{"id": 9, "context": "ci", "status": "success", "creator": jsonObject{"login": "ada"}},
		{"id": 4, "context": "lint", "status": "warning", "creator": jsonObject{"login": "ada"}},
	}), okResponse([]jsonObject{}))
	got, err := d.Statuses(ctx, testRepoName, head1)
	if err != nil {
		t.Fatal(err)
	}
	want := []forge.Status{{Context: "ci", State: forge.StatusSuccess, Creator: "ada"}, {Context: "lint", State: forge.StatusFailure, Creator: "ada"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHeadsOfClosedOnesAreRemembered: the exact head costs one call a pull
// request, until that changes.
func TestHeadsOfClosedOnesAreRemembered(t *testing.T) {
	r, d, _ := newReplayServer(t)
	closed := jsonObject{"state": "closed", "mergeable": false}
	gone := pullJSON(6, head1, jsonObject{"state": "closed", "head": jsonObject{"label": "liftlock/shop/qa/api", "ref": "refs/pull/6/head", "sha": head1, "repo_id": 10}})
	list := okResponse([]jsonObject{pullJSON(7, head2, closed), gone, pullJSON(5, head2, nil)})
	list.header = map[string]string{"X-Total-Count": "3"}
	r.on("GET repos/acme/fleet/pulls", list)
	r.on("GET repos/acme/fleet/git/refs/pull/7/head", refJSON(7, head1))
	for range 3 {
		got, err := d.PullRequests(ctx, testRepoName, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 || got[0].Head != head1 || got[1].Head != head1 || got[1].Branch != "liftlock/shop/qa/api" || got[2].Head != head2 {
			t.Errorf("got %+v", got)
		}
	}
	if n := len(r.calls("git/refs")); n != 1 {
		t.Errorf("asked %d times for heads, want once", n)
	}
	// One without its ref keeps what is shown.
	r.on("GET repos/acme/fleet/pulls/8", okResponse(pullJSON(8, head2, closed)))
	if pr, err := d.PullRequest(ctx, testRepoName, 8); err != nil || pr.Head != head2 {
		t.Errorf("got %+v, %v", pr, err)
	}
}

// TestByBranchReadsUpdatesOnly: after the first look, a branch costs one list
// call and one call a pull request that it has had.
func TestByBranchReadsUpdatesOnly(t *testing.T) {
	r, d, _ := newReplayServer(t)
	page := func(pulls ...jsonObject) response {
		a := okResponse(pulls)
		a.header = map[string]string{"X-Total-Count": "300"}
		return a
	}
	at := func(n int, updated string) jsonObject {
		return pullJSON(n, head1, jsonObject{"updated_at": updated, "head": jsonObject{"label": fmt.Sprint("b", n%2), "ref": fmt.Sprint("b", n%2), "sha": head1, "repo_id": 10}})
	}
	r.on("GET repos/acme/fleet/pulls", page(at(4, "2026-03-02T12:00:00Z"), at(3, "2026-03-02T11:00:00Z")), page(at(2, "2026-03-02T10:00:00Z"), at(1, "2026-03-02T09:00:00Z")), page())
	for n := 1; n <= 6; n++ {
		r.on(fmt.Sprintf("GET repos/acme/fleet/pulls/%d", n), okResponse(at(n, "2026-03-02T12:00:00Z")))
	}
	find := func(want ...int) {
		t.Helper()
		list, err := d.PullRequestsByBranch(ctx, testRepoName, "b0")
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range list {
			got = append(got, p.Number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	find(4, 2)
	if n := len(r.calls("pulls?")); n != 3 {
		t.Errorf("the first look took %d list calls, want 3", n)
	}
	r.on("GET repos/acme/fleet/pulls", page(at(6, "2026-03-02T13:00:00Z"), at(4, "2026-03-02T12:00:00Z"), at(3, "2026-03-02T11:00:00Z")))
	find(6, 4, 2)
	if n := len(r.calls("pulls?")); n != 4 {
		t.Errorf("the second look took %d list calls, want 1", n-3)
	}
	// One that an administrator has deleted is left out.
	r.on("GET repos/acme/fleet/pulls/2", errorResponse(404, "no"))
	find(6, 4)
}

func TestEnsureHookOnAnOlderServer(t *testing.T) {
	r, d, _ := newReplayServer(t)
	const url = "https://liftlock.example.com/webhooks/hub"
	created := jsonObject{
		"id": 5, "active": true, "config": jsonObject{"url": url, "content_type": "json"}, "authorization_header": rest.Fingerprint("s3cret"),
		"events": []string{"push", "delete", "pull_request", "pull_request_label", "pull_request_sync", "pull_request_comment", "pull_request_review_approved", "pull_request_review_rejected"},
	}
	r.on("GET repos/acme/fleet/hooks", okResponse([]jsonObject{}), okResponse([]jsonObject{created}), okResponse([]jsonObject{}))
	r.on("POST repos/acme/fleet/hooks", okResponse(created))
	if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); !changed || err != nil {
		t.Fatalf("changed %v, %v", changed, err)
	}
	// It has no status events, and isn't asked for them again and again.
	if changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "s3cret"}); changed || err != nil {
		t.Errorf("the second time: changed %v, %v", changed, err)
	}
	if n := len(r.calls("POST")); n != 1 {
		t.Errorf("made %d hooks", n)
	}
}

func TestEnsureHookClearsUp(t *testing.T) {
	r, d, _ := newReplayServer(t)
	const url = "https://liftlock.example.com/webhooks/hub"
	hook := func(id int, mark string) jsonObject {
		return jsonObject{"id": id, "active": true, "config": jsonObject{"url": url, "content_type": "json"}, "authorization_header": mark,
			"events": append([]string{"push", "delete", "status"}, pullEvents...)}
	}
	// A process died after it had made the new hook.
	r.on("GET repos/acme/fleet/hooks", okResponse([]jsonObject{hook(1, rest.Fingerprint("old")), hook(2, rest.Fingerprint("new"))}), okResponse([]jsonObject{}))
	r.on("DELETE repos/acme/fleet/hooks/1", response{status: 204})
	changed, err := d.EnsureHook(ctx, testRepoName, forge.Hook{URL: url, Secret: "new"})
	if err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	if n := len(r.calls("POST")) + len(r.calls("hooks/2")); n != 0 || len(r.calls("DELETE")) != 1 {
		t.Errorf("asked %v", r.calls("hooks"))
	}
	if strings.Contains(rest.Fingerprint("new"), "new") || rest.Fingerprint("new") == rest.Fingerprint("old") {
		t.Errorf("fingerprints %s %s", rest.Fingerprint("new"), rest.Fingerprint("old"))
	}
}

func TestPermissionNeedsAnAdministrator(t *testing.T) {
	r, d, _ := newReplayServer(t)
	r.on("GET repos/acme/fleet/collaborators/ada/permission", errorResponse(403, "Only admins can query all permissions"))
	_, err := d.Permission(ctx, testRepoName, "ada")
	if !errors.Is(err, forge.ErrForbidden) || !strings.Contains(err.Error(), "an administrator of the repository") {
		t.Errorf("got %v", err)
	}
}

func TestIsTeamMember(t *testing.T) {
	r, d, _ := newReplayServer(t)
	r.on("GET orgs/acme/teams", okResponse([]jsonObject{{"id": 3, "name": "Owners"}, {"id": 4, "name": "SRE"}}), okResponse([]jsonObject{}))
	r.on("GET teams/4/members/ada", okResponse(jsonObject{"login": "ada"}))
	sre := forge.Team{Organisation: "acme", Name: "sre"}
	if is, err := d.IsTeamMember(ctx, sre, "ada"); err != nil || !is {
		t.Errorf("a member: %v, %v", is, err)
	}
	r.on("GET orgs/acme/teams", okResponse([]jsonObject{{"id": 4, "name": "sre"}}), okResponse([]jsonObject{}))
	if is, err := d.IsTeamMember(ctx, sre, "../../x"); err != nil || is {
		t.Errorf("nobody: %v, %v", is, err)
	}
	r.on("GET orgs/acme/teams", okResponse([]jsonObject{{"id": 4, "name": "web"}}), okResponse([]jsonObject{}))
	if _, err := d.IsTeamMember(ctx, sre, "ada"); !errors.Is(err, forge.ErrNotFound) || !strings.Contains(err.Error(), "there is no team acme/sre") {
		t.Errorf("no such team: %v", err)
	}
	for status, kind := range map[int]error{403: forge.ErrForbidden, 404: forge.ErrNotFound, 502: forge.ErrRetryable} {
		r.on("GET orgs/acme/teams", errorResponse(status, "no"))
		if is, err := d.IsTeamMember(ctx, sre, "ada"); !errors.Is(err, kind) || is {
			t.Errorf("the teams: %d: %v, %v", status, is, err)
		}
	}
	r.on("GET orgs/acme/teams", okResponse([]jsonObject{{"id": 4, "name": "sre"}}), okResponse([]jsonObject{}))
	r.on("GET teams/4/members/ada", errorResponse(403, "Must be a team member"))
	if is, err := d.IsTeamMember(ctx, sre, "ada"); !errors.Is(err, forge.ErrForbidden) || is || !strings.Contains(err.Error(), "add Liftlock's account to the team") {
		t.Errorf("the members are nobody's to see: %v, %v", is, err)
	}
}

func TestDeleteBranchThatFails(t *testing.T) {
	r, d, _ := newReplayServer(t)
	r.on("DELETE repos/acme/fleet/branches/b", errorResponse(500, ""))
	r.on("GET repos/acme/fleet", okResponse(jsonObject{"name": "fleet"}))
	r.on("GET repos/acme/fleet/branches/b", okResponse(jsonObject{"name": "b"}))
	if err := d.DeleteBranch(ctx, testRepoName, "b"); !errors.Is(err, forge.ErrRetryable) {
		t.Errorf("a branch that is there: %v", err)
	}
	r.on("DELETE repos/acme/fleet/branches/main", errorResponse(403, "can not delete default branch"))
	if err := d.DeleteBranch(ctx, testRepoName, "main"); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("the default branch: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"https://git.example.com":              "https://git.example.com/acme/fleet.git",
		"https://git.example.com/api/v1/":      "https://git.example.com/acme/fleet.git",
		"https://example.com/git/":             "https://example.com/git/acme/fleet.git",
		"http://127.0.0.1:3000/sub/dir/api/v1": "http://127.0.0.1:3000/sub/dir/acme/fleet.git",
	} {
		d, err := New(Options{URL: base, Token: "t0ken"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.CloneURL(ctx, testRepoName); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", base, got, err, want)
		}
		page := strings.TrimSuffix(want, ".git")
		if got := d.CommitURL(testRepoName, "c0ffee"); got != page+"/commit/c0ffee" {
			t.Errorf("%q: a commit is at %s", base, got)
		}
		if got := d.CompareURL(testRepoName, "c0ffee", "decade"); got != page+"/compare/c0ffee...decade" {
			t.Errorf("%q: a comparison is at %s", base, got)
		}
	}
	r, d, _ := newReplayServer(t)
	r.on("GET user", okResponse(jsonObject{"id": 1, "login": "liftlock-bot"}))
	for range 2 {
		if user, password, err := d.GitAuth(ctx, testRepoName); user != "liftlock-bot" || password != "t0ken" || err != nil {
			t.Errorf("credentials %s %s %v", user, password, err)
		}
	}
	if n := len(r.calls("GET user")); n != 1 {
		t.Errorf("asked %d times who we are", n)
	}
}

// TestNoDeployments holds that Gitea says that it keeps none, and isn't called for any.
func TestNoDeployments(t *testing.T) {
	d, err := New(Options{URL: "http://127.0.0.1:1", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if d.HasDeployments() {
		t.Error("it has some")
	}
	r := forge.Repo{Owner: "acme", Name: "fleet"}
	_, listed := d.Deployments(t.Context(), r, "qa", "x")
	_, created := d.CreateDeployment(t.Context(), r, forge.Deployment{})
	_, read := d.DeploymentState(t.Context(), r, 1)
	for _, err := range []error{listed, created, read, d.SetDeploymentStatus(t.Context(), r, 1, forge.DeploymentStatus{})} {
		if !errors.Is(err, forge.ErrInvalid) || !strings.Contains(err.Error(), "Gitea keeps no deployments") {
			t.Errorf("%v", err)
		}
	}
}
