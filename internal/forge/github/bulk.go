package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// bulkRest is for how long pull requests are read one by one after GitHub refused to give them
// together. Reasons are an older instance, a token that GraphQL refuses, and a spent limit of
// GraphQL's own.
const bulkRest = 10 * time.Minute

// maxBulkReviews is how many reviews of a pull request one query gives.
const maxBulkReviews = 100

// bulkFields are what is read of a pull request. The names are those of GitHub's schema
// (objects PullRequest, PullRequestReview).
// A server that lacks one refuses the query, and is read one by one.
const bulkFields = `fragment fields on PullRequest{` +
	`number url title body isDraft isCrossRepository state createdAt updatedAt closedAt mergedAt mergeStateStatus headRefName headRefOid baseRefName ` +
	`%sautoMergeRequest{enabledAt} author{...who} mergedBy{...who} mergeCommit{oid} labels(first:100){nodes{name}} comments{totalCount} ` +
	`reviews(last:100){totalCount nodes{fullDatabaseId state submittedAt authorCanPushToRepository commit{oid} author{...who}}}}` +
	`fragment who on Actor{__typename login ...on User{databaseId} ...on Bot{databaseId} ...on Mannequin{databaseId}}`

// bulkQuery reads pull requests, each under the name p and its number. It reads their places in the
// merge queue only where there may be one: an older server doesn't know that field.
func bulkQuery(numbers []int, queue bool) string {
	var q strings.Builder
	q.WriteString(`query($owner:String!,$name:String!){repository(owner:$owner,name:$name){`)
	for _, n := range numbers {
		fmt.Fprintf(&q, "%s:pullRequest(number:%d){...fields}", pullName(n), n)
	}
	q.WriteString("}}")
	place := ""
	if queue {
		place = "mergeQueueEntry{state} "
	}
	fmt.Fprintf(&q, bulkFields, place)
	return q.String()
}

// bulkActor is an account as GraphQL shows it.
type bulkActor struct {
	Type       string `json:"__typename"`
	Login      string
	DatabaseID int64 `json:"databaseId"`
}

// user is the account as the REST API shows it, where the login of a bot ends in [bot]; the
// zero one for an account that is deleted.
func (b *bulkActor) user() forge.User {
	if b == nil {
		return forge.User{}
	}
	u := forge.User{ID: b.DatabaseID, Login: b.Login, Bot: b.Type == "Bot"}
	if u.Bot && !strings.HasSuffix(u.Login, "[bot]") {
		u.Login += "[bot]"
	}
	return u
}

type bulkCommit struct{ OID string }

// bulkPull is a pull request as GraphQL shows it.
type bulkPull struct {
	Number                                    int
	URL, Title, Body, State, MergeStateStatus string
	HeadRefName, HeadRefOid, BaseRefName      string
	IsDraft, IsCrossRepository                bool
	CreatedAt, UpdatedAt, ClosedAt, MergedAt  time.Time
	Author, MergedBy                          *bulkActor
	MergeCommit                               *bulkCommit
	MergeQueueEntry                           *queueEntry // nil: it isn't in the queue, or that wasn't read
	AutoMergeRequest                          *autoMerge
	Labels                                    struct{ Nodes []struct{ Name string } }
	Comments                                  struct{ TotalCount *int }
	Reviews                                   struct {
		TotalCount int
		Nodes      []bulkReview
	}
}

type bulkReview struct {
	FullDatabaseID            json.Number `json:"fullDatabaseId"` // in quotes; databaseId, which had none, is to go away
	State                     string
	SubmittedAt               time.Time // zero: it isn't submitted
	AuthorCanPushToRepository bool
	Commit                    *bulkCommit // nil: it is gone
	Author                    *bulkActor  // nil: deleted
}

// ReviewedPullRequests makes one query of GitHub's GraphQL API.
func (d *Driver) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) ([]forge.ReviewedPullRequest, error) {
	op := fmt.Sprintf("read %d pull requests of %s together", len(numbers), r)
	if len(numbers) == 0 {
		return nil, nil
	}
	if len(numbers) > forge.MaxBulk {
		return nil, &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: fmt.Sprintf("one call reads %d", forge.MaxBulk)}
	}
	if d.restsBulk(r) {
		return nil, &forge.Error{Op: op, Kind: forge.ErrUnsupported}
	}
	var answer struct {
		Data   struct{ Repository map[string]*bulkPull }
		Errors []graphQLError
	}
	err := d.queryGraphQL(ctx, op, r, bulkQuery(numbers, forge.HasMergeQueue(ctx)),
		map[string]any{"owner": r.Owner, "name": r.Name}, &answer)
	switch {
	case forge.IsRetryable(err) || errors.Is(err, forge.ErrNotInstalled) || ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, d.restBulk(op, r, err.Error())
	}
	for _, e := range answer.Errors {
		if e.Type != "NOT_FOUND" || len(e.Path) != 2 {
			return nil, d.restBulk(op, r, rest.ClipMessage(strings.TrimSpace(e.Type+" "+e.Message)))
		}
	}
	var found []forge.ReviewedPullRequest
	for _, n := range numbers {
		p := answer.Data.Repository[pullName(n)]
		if p == nil {
			continue
		}
		if p.Number != n || p.Reviews.TotalCount > maxBulkReviews {
			return nil, &forge.Error{Op: op, Kind: forge.ErrUnsupported, Message: fmt.Sprintf("#%d has %d reviews", n,
				p.Reviews.TotalCount)}
		}
		found = append(found, forge.ReviewedPullRequest{PullRequest: p.pullRequest(), Reviews: p.reviews()})
	}
	return found, nil
}

// restsBulk says that GitHub refused to give pull requests together a short time ago.
func (d *Driver) restsBulk(r forge.Repo) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now().Before(d.bulkAgain[strings.ToLower(r.Owner)])
}

// restBulk remembers that GitHub won't give pull requests together, and is the error of that.
func (d *Driver) restBulk(op string, r forge.Repo, why string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bulkAgain[strings.ToLower(r.Owner)] = d.now().Add(bulkRest)
	return &forge.Error{Op: op, Kind: forge.ErrUnsupported, Message: why}
}

// pullRequest translates one, as toPullRequest does.
func (bp *bulkPull) pullRequest() forge.PullRequest {
	author, merger := bp.Author.user(), bp.MergedBy.user()
	pr := forge.PullRequest{
		Number: bp.Number, URL: bp.URL, Title: bp.Title, Body: bp.Body, Author: author.Login, AuthorID: author.ID,
		Branch: bp.HeadRefName, Fork: bp.IsCrossRepository, Head: bp.HeadRefOid, Ref: fmt.Sprintf("refs/pull/%d/head", bp.Number),
		Base:  bp.BaseRefName,
		State: forge.Open, Draft: bp.IsDraft, Mergeable: forge.MergeableUnknown, CommentCount: bp.Comments.TotalCount,
		CreatedAt: bp.CreatedAt, UpdatedAt: bp.UpdatedAt, ClosedAt: bp.ClosedAt, MergedAt: bp.MergedAt, MergedBy: merger.Login,
		MergedByID: merger.ID,
	}
	for _, l := range bp.Labels.Nodes {
		pr.Labels = append(pr.Labels, l.Name)
	}
	slices.Sort(pr.Labels)
	switch bp.State {
	case "MERGED":
		pr.State = forge.Merged
		if bp.MergeCommit != nil {
			pr.MergeCommit = bp.MergeCommit.OID
		}
	case "CLOSED":
		pr.State = forge.Closed
	default:
		pr.Mergeable, pr.MergeReason = toMergeable(strings.ToLower(bp.MergeStateStatus))
		if bp.MergeQueueEntry != nil || bp.AutoMergeRequest != nil {
			pr.Queue = forge.Queued
		}
	}
	return pr
}

// reviews gives one review a person, as forge.NewestReviews says; GitHub lists them as they
// were begun.
func (bp *bulkPull) reviews() []forge.Review {
	nodes := slices.Clone(bp.Reviews.Nodes)
	slices.SortStableFunc(nodes, func(a, b bulkReview) int { return a.SubmittedAt.Compare(b.SubmittedAt) })
	var given []forge.GivenReview
	for i := range nodes {
		v, user := &nodes[i], nodes[i].Author.user()
		id, _ := v.FullDatabaseID.Int64() // GitHub's are
		review := forge.Review{ID: id, User: user.Login, UserID: user.ID, Bot: user.Bot, At: v.SubmittedAt,
			MayWrite: &v.AuthorCanPushToRepository}
		if v.Commit != nil {
			review.Commit = v.Commit.OID
		}
		given = appendReview(given, v.State, review)
	}
	return forge.NewestReviews(given)
}
