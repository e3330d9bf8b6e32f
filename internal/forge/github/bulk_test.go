package github

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

// graphQLPull is a pull request as GraphQL shows it, with some fields of its own.
func graphQLPull(number int, more jsonObject) jsonObject {
	p := jsonObject{
		"number": number, "url": "https://github.com/acme/fleet/pull/7", "title": "T", "body": "B", "isDraft": false, "isCrossRepository": false, "state": "OPEN",
		"createdAt": "2026-03-02T10:00:00Z", "updatedAt": "2026-03-02T10:00:00Z", "closedAt": nil, "mergedAt": nil, "mergeStateStatus": "CLEAN",
		"headRefName": "topic", "headRefOid": head1, "baseRefName": "main", "author": jsonObject{"__typename": "User", "login": "ada", "databaseId": 3}, "mergedBy": nil, "mergeCommit": nil,
		"labels": jsonObject{"nodes": []jsonObject{}}, "comments": jsonObject{"totalCount": 2}, "reviews": jsonObject{"totalCount": 0, "nodes": []jsonObject{}},
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}

// graphQLAnswer is an answer with pull requests under their names, and errors.
func graphQLAnswer(pulls jsonObject, errs ...jsonObject) response {
	return okResponse(jsonObject{"data": jsonObject{"repository": pulls}, "errors": errs})
}

// TestBulkAccounts reads accounts as the REST API shows them: a bot with [bot], a deleted one
// as nobody, and leaves out what isn't submitted.
func TestBulkAccounts(t *testing.T) {
	r, d := newReplayServer(t)
	review := func(id int, state string, may bool, author, at, commit any) jsonObject {
		return jsonObject{"fullDatabaseId": strconv.Itoa(id), "state": state, "submittedAt": at, "authorCanPushToRepository": may, "author": author, "commit": commit}
	}
	ada := jsonObject{"__typename": "User", "login": "ada", "databaseId": 3}
	on := jsonObject{"oid": head1}
	r.on("POST /api/graphql", graphQLAnswer(jsonObject{"p7": graphQLPull(7, jsonObject{
		"author": jsonObject{"__typename": "Bot", "login": "liftlock", "databaseId": 9},
		"reviews": jsonObject{"totalCount": 5, "nodes": []jsonObject{
			review(2, "CHANGES_REQUESTED", true, ada, "2026-03-02T11:00:00Z", on),
			review(1, "APPROVED", true, ada, "2026-03-02T10:30:00Z", nil),
			review(3, "APPROVED", false, nil, "2026-03-02T11:00:00Z", on),
			review(4, "PENDING", true, jsonObject{"__typename": "User", "login": "grace"}, nil, on),
			review(5, "APPROVED", false, jsonObject{"__typename": "Bot", "login": "robot", "databaseId": 8}, "2026-03-02T12:00:00Z", nil),
		}},
	})}))
	got, err := d.ReviewedPullRequests(ctx, testRepoName, 7)
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Author != "liftlock[bot]" || got[0].AuthorID != 9 || got[0].Mergeable != forge.MergeableYes || *got[0].CommentCount != 2 {
		t.Errorf("%+v", got[0].PullRequest)
	}
	yes, no := true, false
	want := []forge.Review{
		{ID: 2, User: "ada", UserID: 3, Rejected: true, Commit: head1, At: time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC), MayWrite: &yes},
		{ID: 5, User: "robot[bot]", UserID: 8, Bot: true, Approved: true, At: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), MayWrite: &no},
	}
	if diff := cmp.Diff(want, got[0].Reviews); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBulkRefused reads pull requests by themselves where GitHub doesn't give them together,
// and doesn't ask again for a while.
func TestBulkRefused(t *testing.T) {
	for name, c := range map[string]struct {
		answer response
		kind   error
		rests  bool
	}{
		"an older instance":          {okResponse(jsonObject{"errors": []jsonObject{{"message": "Field 'authorCanPushToRepository' doesn't exist on type 'PullRequestReview'"}}}), forge.ErrUnsupported, true},
		"no GraphQL at all":          {response{status: http.StatusNotFound, body: `{"message":"Not Found"}`}, forge.ErrUnsupported, true},
		"a token it refuses":         {response{status: http.StatusForbidden, body: `{"message":"Resource not accessible by personal access token"}`}, forge.ErrUnsupported, true},
		"its limit is spent":         {graphQLAnswer(nil, jsonObject{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}), forge.ErrUnsupported, true},
		"the repository isn't there": {graphQLAnswer(nil, jsonObject{"type": "NOT_FOUND", "path": []string{"repository"}}), forge.ErrUnsupported, true},
		"many reviews":               {graphQLAnswer(jsonObject{"p7": graphQLPull(7, jsonObject{"reviews": jsonObject{"totalCount": 101}})}), forge.ErrUnsupported, false},
		"another one":                {graphQLAnswer(jsonObject{"p7": graphQLPull(8, nil)}), forge.ErrUnsupported, false},
		"a gateway":                  {response{status: http.StatusBadGateway}, forge.ErrRetryable, false},
		"none":                       {graphQLAnswer(jsonObject{"p7": nil}, jsonObject{"type": "NOT_FOUND", "path": []string{"repository", "p7"}}), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
			d.now = func() time.Time { return now }
			r.on("POST /api/graphql", c.answer)
			for try, want := range []int{1, 1, 2} {
				if !c.rests {
					want = try + 1
				}
				if got, err := d.ReviewedPullRequests(ctx, testRepoName, 7); !errors.Is(err, c.kind) || len(got) != 0 {
					t.Fatalf("%+v, %v", got, err)
				}
				if n := len(r.calls("graphql")); n != want {
					t.Errorf("try %d: %d queries, want %d", try, n, want)
				}
				if try == 1 {
					now = now.Add(bulkRest)
				}
			}
		})
	}
	_, d := newReplayServer(t)
	if _, err := d.ReviewedPullRequests(ctx, testRepoName, make([]int, forge.MaxBulk+1)...); !errors.Is(err, forge.ErrInvalid) {
		t.Error(fmt.Errorf("more than one query reads: %w", err))
	}
}
