package gitlab

import (
	"context"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// DeleteBranch removes a branch. For one that isn't there GitLab answers 404, as for a project
// that isn't there.
func (d *Driver) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	if _, err := d.projectID(ctx, r); err != nil {
		return err
	}
	_, err := d.callProject(ctx, "delete the branch "+branch+" of "+r.String(), r, http.MethodDelete, nil, nil, "repository",
		"branches", branch)
	if rest.StatusOf(err) == http.StatusNotFound && !isMissingProject(err) {
		return nil
	}
	return err
}

// PullRequestsByBranch lists the merge requests of a branch; a fork's may have the same name.
func (d *Driver) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) ([]forge.PullRequest, error) {
	var found []forge.PullRequest
	err := forEach(ctx, d, "list the merge requests of "+branch+" of "+r.String(), r, maxPages,
		query{Scope: "all", State: "all", SourceBranch: branch, OrderBy: "created_at", Sort: "desc"},
		func(m mergeRequest) bool {
			if pr := m.pullRequest(); !pr.Fork && pr.Branch == branch {
				found = append(found, pr)
			}
			return false
		}, "merge_requests")
	return found, err
}
