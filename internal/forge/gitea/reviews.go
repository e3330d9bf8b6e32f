package gitea

import (
	"context"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
)

// Reviews gives one review a person, oldest first: the last that decided
// something (approved or asked for changes, dismissed or not), or the last
// comment of those who decided nothing. A comment after an approval doesn't take
// it back.
func (d *Driver) Reviews(ctx context.Context, r forge.Repo, n int) ([]forge.Review, error) {
	var all []*sdk.PullReview
	err := forEachPage("list the reviews of "+formatNumber(r, n), func(o sdk.ListOptions) (int, bool, *sdk.Response, error) {
		page, resp, err := d.newClient(ctx).ListPullReviews(r.Owner, r.Name, int64(n), sdk.ListPullReviewsOptions{ListOptions: o})
		all = append(all, page...)
		return len(page), false, resp, err
	})
	if err != nil {
		return nil, err
	}
	// Times are whole seconds; the number tells the order within one.
	slices.SortFunc(all, func(a, b *sdk.PullReview) int {
		if c := a.Submitted.Compare(b.Submitted); c != 0 {
			return c
		}
		return int(a.ID - b.ID)
	})
	type userReview struct {
		review  forge.Review
		decides bool
	}
	byUser := map[string]userReview{}
	for _, v := range all {
		user := loginOf(v.Reviewer)
		decides := v.State == sdk.ReviewStateApproved || v.State == sdk.ReviewStateRequestChanges
		// Pending ones aren't given yet, requests are the wish for one, and a
		// team's carries no person.
		if user == "" || !decides && v.State != sdk.ReviewStateComment || byUser[user].decides && !decides {
			continue
		}
		byUser[user] = userReview{decides: decides, review: forge.Review{
			ID:       v.ID,
			User:     user,
			Bot:      isBot(v.Reviewer),
			Approved: v.State == sdk.ReviewStateApproved && !v.Dismissed,
			Rejected: v.State == sdk.ReviewStateRequestChanges && !v.Dismissed,
			Commit:   v.CommitID,
			At:       v.Submitted,
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
