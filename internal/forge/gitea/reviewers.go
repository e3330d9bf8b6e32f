package gitea

import (
	"context"
	"errors"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// RequestReviewers requests reviews. Gitea goes through the names one by one and stops at the first
// that it doesn't take. It answers 404 for an unknown name as for a missing pull request: then the
// driver asks for the pull request.
func (d *Driver) RequestReviewers(ctx context.Context, r forge.Repo, n int, from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	op, exists := "request reviews of "+r.Number(n), false
	return forge.RequestEach(ctx, r, from, func(ctx context.Context, some forge.Reviewers) error {
		wanted := sdk.PullReviewRequestOptions{Reviewers: some.Users}
		for _, t := range some.Teams {
			wanted.TeamReviewers = append(wanted.TeamReviewers, t.Name)
		}
		_, err := d.newClient(ctx).CreateReviewRequests(r.Owner, r.Name, int64(n), wanted)
		if err == nil {
			return nil
		}
		err = rest.Wrap(op, err)
		var refusal *forge.Error
		if !errors.Is(err, forge.ErrNotFound) || !errors.As(err, &refusal) {
			return err
		}
		if !exists {
			if _, _, err := d.newClient(ctx).GetPullRequest(r.Owner, r.Name, int64(n)); err != nil {
				return rest.Wrap(op, err)
			}
			exists = true
		}
		return &forge.Error{Op: op, Kind: forge.ErrInvalid, Status: refusal.Status,
			Message: "there is no such account or team on the forge", Err: err}
	})
}
