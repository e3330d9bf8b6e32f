package github

import (
	"context"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// RequestReviewers requests reviews. GitHub refuses a call whole where it doesn't take one of the
// names, with a 422 that doesn't say which: "Reviews may only be requested from collaborators",
// "Review cannot be requested from pull request author".
func (d *Driver) RequestReviewers(ctx context.Context, r forge.Repo, n int, from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	ctx, owner, name := inRepo(ctx, r)
	return forge.RequestEach(ctx, r, from, func(ctx context.Context, some forge.Reviewers) error {
		wanted := gh.ReviewersRequest{Reviewers: some.Users}
		for _, t := range some.Teams {
			wanted.TeamReviewers = append(wanted.TeamReviewers, t.Name)
		}
		_, _, err := d.api.PullRequests.RequestReviewers(ctx, owner, name, n, wanted)
		return wrapError("request reviews of "+r.Number(n), err)
	})
}
