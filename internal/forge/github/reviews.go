package github

import (
	"context"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// Reviews gives one review a person, as forge.NewestReviews says.
func (d *Driver) Reviews(ctx context.Context, r forge.Repo, n int) ([]forge.Review, error) {
	ctx, owner, name := inRepo(ctx, r)
	var all []*gh.PullRequestReview
	err := forEach("list the reviews of "+r.Number(n), bounds, func(page gh.ListOptions) ([]*gh.PullRequestReview, *gh.Response, error) {
		return d.api.PullRequests.ListReviews(ctx, owner, name, n, &page)
	}, func(v *gh.PullRequestReview) bool {
		all = append(all, v)
		return false
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *gh.PullRequestReview) int {
		return a.GetSubmittedAt().Compare(b.GetSubmittedAt().Time)
	})
	var given []forge.GivenReview
	for _, v := range all {
		given = appendReview(given, v.GetState(), forge.Review{
			ID: v.GetID(), User: v.GetUser().GetLogin(), UserID: v.GetUser().GetID(), Bot: isBot(v.GetUser()), Commit: v.GetCommitID(),
			At: v.GetSubmittedAt().Time,
		})
	}
	return forge.NewestReviews(given), nil
}

// appendReview adds a review in a state of GitHub's, unless it is one of a deleted account or
// isn't submitted.
func appendReview(given []forge.GivenReview, state string, v forge.Review) []forge.GivenReview {
	state = strings.ToUpper(state)
	if v.User == "" || state == "PENDING" {
		return given
	}
	v.Approved, v.Rejected = state == "APPROVED", state == "CHANGES_REQUESTED"
	return append(given, forge.GivenReview{Decides: v.Approved || v.Rejected || state == "DISMISSED", Review: v})
}
