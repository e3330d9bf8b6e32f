package github

import (
	"context"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// Reviews gives one review a person, oldest first: the last that decided
// something (approved, asked for changes, was dismissed), or the last comment of
// those who decided nothing. A comment after an approval doesn't take it back.
func (d *Driver) Reviews(ctx context.Context, r forge.Repo, n int) ([]forge.Review, error) {
	owner, name := repoPath(r)
	var all []*gh.PullRequestReview
	err := forEachPage("list the reviews of "+formatNumber(r, n), func(page gh.ListOptions) (*gh.Response, bool, error) {
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
	type userReview struct {
		review  forge.Review
		decides bool
	}
	byUser := map[string]userReview{}
	for _, v := range all {
		user, state := v.GetUser().GetLogin(), strings.ToUpper(v.GetState())
		if user == "" || state == "PENDING" { // a deleted account; one that isn't submitted
			continue
		}
		decides := state == "APPROVED" || state == "CHANGES_REQUESTED" || state == "DISMISSED"
		if byUser[user].decides && !decides {
			continue
		}
		byUser[user] = userReview{decides: decides, review: forge.Review{
			ID:       v.GetID(),
			User:     user,
			Bot:      isBot(v.GetUser()),
			Approved: state == "APPROVED",
			Rejected: state == "CHANGES_REQUESTED",
			Commit:   v.GetCommitID(),
			At:       v.GetSubmittedAt().Time,
		}}
	}
	reviews := make([]forge.Review, 0, len(byUser))
	for _, s := range byUser {
		reviews = append(reviews, s.review)
	}
	slices.SortFunc(reviews, func(a, b forge.Review) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.User, b.User)
	})
	return reviews, nil
}
