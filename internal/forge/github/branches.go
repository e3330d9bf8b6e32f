package github

import (
	"context"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// PullRequestsByBranch filters by head, which GitHub only does for owner:branch;
// without the owner it silently ignores the filter (gitops-promoter#1417), so the
// answer is filtered again.
func (d *Driver) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) ([]forge.PullRequest, error) {
	return d.listByHead(ctx, r, branch, gh.PullRequestListOptions{State: "all", Sort: "created", Direction: "desc"})
}

func (d *Driver) listByHead(ctx context.Context, r forge.Repo, branch string, o gh.PullRequestListOptions) ([]forge.PullRequest, error) {
	ctx, owner, name := inRepo(ctx, r)
	o.Head = r.Owner + ":" + branch
	var found []forge.PullRequest
	err := forEach("list the pull requests of "+r.String()+" from "+branch, bounds,
		func(page gh.ListOptions) ([]*gh.PullRequest, *gh.Response, error) {
			o.ListOptions = page
			return d.api.PullRequests.List(ctx, owner, name, &o)
		}, func(p *gh.PullRequest) bool {
			if pr := toPullRequest(r, p); pr.Branch == branch && !pr.Fork {
				found = append(found, pr)
			}
			return false
		})
	if err != nil {
		return nil, err
	}
	return found, d.addMergeCommits(ctx, r, found)
}

// DeleteBranch removes a branch. GitHub answers 422 for one that isn't there.
func (d *Driver) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	ctx, owner, name := inRepo(ctx, r)
	_, err := d.api.Git.DeleteRef(ctx, owner, name, "heads/"+branch)
	if err == nil || rest.StatusOf(err) == http.StatusUnprocessableEntity && rest.Says(err, "does not exist") {
		return nil
	}
	return wrapError("delete the branch "+branch+" of "+r.String(), err)
}
