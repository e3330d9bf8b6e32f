package github

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

// commitJSON is a commit as GitHub shows it; a login of "" is an address without account.
func commitJSON(sha, author, committer, message string) jsonObject {
	account := func(login string) any {
		if login == "" {
			return nil
		}
		return jsonObject{"login": login, "id": len(login), "type": "User"}
	}
	ident := func(login string) jsonObject {
		return jsonObject{"name": login, "email": login + "@example.com"}
	}
	return jsonObject{"sha": sha, "author": account(author), "committer": account(committer),
		"commit": jsonObject{"author": ident(author), "committer": ident(committer), "message": message}}
}

func user(login string) forge.User { return forge.User{ID: int64(len(login)), Login: login} }

func contributor(login string) forge.Contributor {
	return forge.Contributor{Name: login, Email: login + "@example.com", User: user(login)}
}

// TestCommitAuthors leaves GitHub itself out, and connects co-authors with accounts by
// what their addresses say, by other commits, and at last by GraphQL.
func TestCommitAuthors(t *testing.T) {
	for name, c := range map[string]struct {
		commits []jsonObject
		graphQL response
		want    []forge.Contributor // of the last
		queries int                 // GraphQL
	}{
		"in GitHub's pages":     {commits: []jsonObject{commitJSON(head1, "grace", "web-flow", "x")}, want: []forge.Contributor{contributor("grace")}},
		"by nobody known":       {commits: []jsonObject{commitJSON(head1, "", "ada", "x")}, want: []forge.Contributor{{Email: "@example.com"}, contributor("ada")}},
		"with an empty account": {commits: []jsonObject{{"sha": head1, "author": jsonObject{}, "commit": jsonObject{"author": jsonObject{"name": "x", "email": "x@y"}, "committer": jsonObject{"name": "GitHub", "email": "noreply@github.com"}}}}, want: []forge.Contributor{{Name: "x", Email: "x@y"}}},
		"with whom another commit knows": {
			commits: []jsonObject{commitJSON(head2, "grace", "grace", "x"), commitJSON(head1, "ada", "ada", "x\n\nCo-authored-by: G <GRACE@example.com>")},
			want:    []forge.Contributor{contributor("ada"), {Name: "G", Email: "GRACE@example.com", User: user("grace")}}},
		"with a number in the address": {
			commits: []jsonObject{commitJSON(head1, "ada", "ada", "x\n\nCo-authored-by: G <7+grace@users.noreply.SERVER>")},
			want:    []forge.Contributor{contributor("ada"), {Name: "G", Email: "7+grace@users.noreply.SERVER", User: forge.User{ID: 7, Login: "grace"}}}},
		"with others": {
			commits: []jsonObject{commitJSON(head1, "ada", "ada", "x\n\nCo-authored-by: G <g@home.example>\nCo-authored-by: H <h@home.example>")},
			graphQL: response{status: 200, body: `{"data":{"repository":{"object":{"authors":{"nodes":[{"email":"g@home.example","user":{"databaseId":9,"login":"grace"}},{"email":"h@home.example","user":null}]}}}}}`},
			want:    []forge.Contributor{contributor("ada"), {Name: "G", Email: "g@home.example", User: forge.User{ID: 9, Login: "grace"}}, {Name: "H", Email: "h@home.example"}}, queries: 1},
		"without GraphQL": {
			commits: []jsonObject{commitJSON(head1, "ada", "ada", "x\n\nCo-authored-by: G <g@home.example>")},
			want:    []forge.Contributor{contributor("ada"), {Name: "G", Email: "g@home.example"}}, queries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			host := d.base.Hostname()
			for _, o := range c.commits {
				if commit, ok := o["commit"].(jsonObject); ok && commit["message"] != nil {
					commit["message"] = strings.ReplaceAll(commit["message"].(string), "SERVER", host)
				}
			}
			r.on("GET repos/acme/fleet/compare/"+head2+"..."+head1, okResponse(jsonObject{"total_commits": len(c.commits), "commits": c.commits}))
			if c.graphQL.status != 0 {
				r.on("POST /api/graphql", c.graphQL)
			}
			got, err := d.CommitAuthors(ctx, testRepoName, head2, head1)
			if err != nil || len(got) != len(c.commits) {
				t.Fatalf("%+v, %v", got, err)
			}
			for i := range c.want {
				c.want[i].Email = strings.ReplaceAll(c.want[i].Email, "SERVER", host)
			}
			if diff := cmp.Diff(c.want, got[len(got)-1].Contributors); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := len(r.calls("graphql")); n != c.queries {
				t.Errorf("GraphQL was asked %d times, want %d", n, c.queries)
			}
		})
	}
}

// TestTooManyCommits reads no part of them for all.
func TestTooManyCommits(t *testing.T) {
	r, d := newReplayServer(t)
	var commits []jsonObject
	for i := range forge.MaxCommits {
		commits = append(commits, commitJSON(fmt.Sprintf("%040x", i), "ada", "ada", "x"))
	}
	r.on("GET repos/acme/fleet/compare/"+head2+"..."+head1, okResponse(jsonObject{"commits": commits}))
	if _, err := d.CommitAuthors(ctx, testRepoName, head2, head1); !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("a push of %d: %v", len(commits), err)
	}
	r.on("GET repos/acme/fleet/pulls/7/commits", okResponse(commits))
	if _, err := d.PullRequestAuthors(ctx, testRepoName, &forge.PullRequest{Number: 7, Fork: true}); !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("a pull request of %d: %v", len(commits), err)
	}
}

// TestPullRequestAuthors says who pushed to the branch, as far as that can be read.
func TestPullRequestAuthors(t *testing.T) {
	activity := []jsonObject{{"ref": "refs/heads/topic", "before": head2, "after": head1, "activity_type": "push", "actor": jsonObject{"login": "mallory", "id": 5}}}
	for name, c := range map[string]struct {
		activity response
		fork     bool
		pusher   forge.User
		retry    bool
	}{
		"known":                     {activity: okResponse(activity), pusher: forge.User{ID: 5, Login: "mallory"}},
		"in a fork":                 {activity: okResponse(activity), fork: true},
		"on an instance without it": {activity: response{status: 404, body: `{"message":"Not Found"}`}},
		"another time":              {activity: response{status: 502, body: `{}`}, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet/pulls/7/commits", okResponse([]jsonObject{commitJSON(head1, "ada", "ada", "x")}))
			r.on("GET repos/acme/fleet/activity", c.activity)
			got, err := d.PullRequestAuthors(ctx, testRepoName, &forge.PullRequest{Number: 7, Branch: "topic", Fork: c.fork})
			if c.retry != forge.IsRetryable(err) || !c.retry && (len(got) != 1 || got[0].Pusher != c.pusher) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestPushersFarBack reads on until the commits' own pushes are found, and says it where they
// are too far back.
func TestPushersFarBack(t *testing.T) {
	move := func(before, after, login string) jsonObject {
		return jsonObject{"ref": "refs/heads/topic", "before": before, "after": after, "activity_type": "push", "actor": jsonObject{"login": login, "id": len(login)}}
	}
	next := func(r response) response {
		r.header = map[string]string{"Link": `<SERVER/api/v3/repos/acme/fleet/activity?after=next>; rel="next"`}
		return r
	}
	flood := next(okResponse(slices.Repeat([]jsonObject{move(land1, zeroCommit, "mallory"), move(zeroCommit, land1, "mallory")}, perPage/2)))
	head, first := move(head1, head2, "ada"), move(zeroCommit, head1, "mallory")
	for name, c := range map[string]struct {
		pages []response
		want  []forge.User // of the first commit and of the head
		err   error
		calls int
	}{
		"behind one page":              {pages: []response{flood, okResponse([]jsonObject{head, first})}, want: []forge.User{user("mallory"), user("ada")}, calls: 2},
		"the head before the others":   {pages: []response{next(okResponse(append([]jsonObject{head}, slices.Repeat([]jsonObject{move(land1, land1, "mallory")}, perPage)...))), okResponse([]jsonObject{first})}, want: []forge.User{user("mallory"), user("ada")}, calls: 2},
		"all on one page of many":      {pages: []response{next(okResponse(append([]jsonObject{head, first}, slices.Repeat([]jsonObject{move(land1, land1, "grace")}, perPage)...)))}, want: []forge.User{user("mallory"), user("ada")}, calls: 1},
		"brought back by another":      {pages: []response{okResponse([]jsonObject{move(zeroCommit, head2, "grace"), move(head2, zeroCommit, "grace"), head, first})}, want: []forge.User{user("mallory"), user("ada")}, calls: 1},
		"in one push":                  {pages: []response{okResponse([]jsonObject{move(land1, head2, "mallory")})}, want: []forge.User{{}, user("mallory")}, calls: 1},
		"not remembered any more":      {pages: []response{flood, okResponse([]jsonObject{head})}, want: []forge.User{{}, user("ada")}, calls: 2},
		"further than can be looked":   {pages: []response{flood}, err: forge.ErrTooMany, calls: forge.MaxPushes / perPage},
		"one further than can be seen": {pages: []response{next(okResponse([]jsonObject{head})), flood}, err: forge.ErrTooMany, calls: forge.MaxPushes / perPage},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet/pulls/7/commits", okResponse([]jsonObject{commitJSON(head1, "ada", "ada", "x"), commitJSON(head2, "ada", "ada", "y")}))
			r.on("GET repos/acme/fleet/activity", c.pages...)
			got, err := d.PullRequestAuthors(ctx, testRepoName, &forge.PullRequest{Number: 7, Branch: "topic", Head: head2})
			if !errors.Is(err, c.err) {
				t.Fatalf("it says %v, want %v", err, c.err)
			}
			for i, want := range c.want {
				if got[i].Pusher != want {
					t.Errorf("%s was pushed by %+v, want %+v", got[i].Commit, got[i].Pusher, want)
				}
			}
			if n := len(r.calls("activity")); n != c.calls {
				t.Errorf("after %d calls, want %d", n, c.calls)
			}
		})
	}
}

// TestPushes follows the activity's cursors, which have no end of their own.
func TestPushes(t *testing.T) {
	r, d := newReplayServer(t)
	page := func(ref, kind, after, next string) response {
		a := okResponse([]jsonObject{{"ref": ref, "activity_type": kind, "before": zeroCommit, "after": after, "actor": nil}})
		if next != "" {
			a.header = map[string]string{"Link": `<SERVER/api/v3/repos/acme/fleet/activity?after=` + next + `>; rel="next"`}
		}
		return a
	}
	r.on("GET repos/acme/fleet/activity", page("refs/heads/other", "push", head1, "c1"), page("refs/heads/main", "pr_merge", head2, "c2"), page("refs/heads/main", "branch_creation", head1, ""))
	var seen []forge.Push
	if err := d.Pushes(ctx, testRepoName, "main", func(p forge.Push) bool { seen = append(seen, p); return false }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]forge.Push{{After: head2, Merge: true}, {After: head1}}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := r.calls("activity"); len(got) != 3 || !strings.Contains(got[1], "after=c1") || !strings.Contains(got[2], "after=c2") || !strings.Contains(got[2], "ref=refs%2Fheads%2Fmain") {
		t.Errorf("the calls were %q", got)
	}
	r.on("GET repos/acme/fleet/activity", page("refs/heads/main", "push", head1, "again"))
	if err := d.Pushes(ctx, testRepoName, "main", func(forge.Push) bool { return false }); !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("without end: %v", err)
	}
}

// TestMergedPullRequests reads each for who merged it.
func TestMergedPullRequests(t *testing.T) {
	r, d := newReplayServer(t)
	merged := jsonObject{"user": jsonObject{"login": "ada", "id": 3}, "merged_at": "2026-03-02T10:00:00Z", "merge_commit_sha": head1}
	single := jsonObject{"merged_by": jsonObject{"login": "grace", "id": 5}}
	for k, v := range merged {
		single[k] = v
	}
	r.on("GET repos/acme/fleet/commits/"+head1+"/pulls", okResponse([]jsonObject{pullJSON(7, head1, merged), pullJSON(8, head1, jsonObject{})}))
	r.on("GET repos/acme/fleet/pulls/7", okResponse(pullJSON(7, head1, single)))
	got, err := d.MergedPullRequests(ctx, testRepoName, head1)
	if err != nil || len(got) != 1 || got[0].Author != "ada" || got[0].AuthorID != 3 || got[0].MergedBy != "grace" || got[0].MergedByID != 5 || got[0].MergeCommit != head1 {
		t.Errorf("%+v, %v", got, err)
	}
}
