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
	owner, name := repoPath(r)
	var all []*gh.PullRequestReview
	err := forEachPage("list the reviews of "+r.Number(n), func(page gh.ListOptions) (*gh.Response, bool, error) {
		list, resp, err := d.api.PullRequests.ListReviews(ctx, owner, name, n, &page)
		all = append(all, list...)
		return resp, false, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *gh.PullRequestReview) int {
		return a.GetSubmittedAt().Compare(b.GetSubmittedAt().Time)
	})
	var given []forge.GivenReview
	for _, v := range all {
		user, state := v.GetUser().GetLogin(), strings.ToUpper(v.GetState())
		if user == "" || state == "PENDING" { // a deleted account; one that isn't submitted
			continue
		}
		given = append(given, forge.GivenReview{Decides: state == "APPROVED" || state == "CHANGES_REQUESTED" || state == "DISMISSED", Review: forge.Review{
			ID:       v.GetID(),
			User:     user,
			UserID:   v.GetUser().GetID(),
			Bot:      isBot(v.GetUser()),
			Approved: state == "APPROVED",
			Rejected: state == "CHANGES_REQUESTED",
			Commit:   v.GetCommitID(),
			At:       v.GetSubmittedAt().Time,
		}})
	}
	return forge.NewestReviews(given), nil
}
