package gitea

import (
	"cmp"
	"context"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
)

// Reviews gives one review a person, as forge.NewestReviews says.
func (d *Driver) Reviews(ctx context.Context, r forge.Repo, n int) ([]forge.Review, error) {
	var all []*sdk.PullReview
	err := forEach("list the reviews of "+r.Number(n), bounds, func(o sdk.ListOptions) ([]*sdk.PullReview, *sdk.Response, error) {
		return d.newClient(ctx).ListPullReviews(r.Owner, r.Name, int64(n), sdk.ListPullReviewsOptions{ListOptions: o})
	}, func(v *sdk.PullReview) bool {
		all = append(all, v)
		return false
	})
	if err != nil {
		return nil, err
	}
	// Times are whole seconds; the number tells the order within one.
	slices.SortFunc(all, func(a, b *sdk.PullReview) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	var given []forge.GivenReview
	for _, v := range all {
		user := loginOf(v.Reviewer)
		decides := v.State == sdk.ReviewStateApproved || v.State == sdk.ReviewStateRequestChanges
		// Pending ones aren't given yet, requests are the wish for one, and a
		// team's carries no person.
		if user == "" || !decides && v.State != sdk.ReviewStateComment {
			continue
		}
		given = append(given, forge.GivenReview{Decides: decides, Review: forge.Review{
			ID:       v.ID,
			User:     user,
			UserID:   idOf(v.Reviewer),
			Bot:      isBot(v.Reviewer),
			Approved: v.State == sdk.ReviewStateApproved && !v.Dismissed,
			Rejected: v.State == sdk.ReviewStateRequestChanges && !v.Dismissed,
			Commit:   v.CommitID,
			At:       v.Submitted,
		}})
	}
	return forge.NewestReviews(given), nil
}
