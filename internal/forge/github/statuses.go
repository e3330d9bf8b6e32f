package github

import (
	"context"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxDescription is the longest description that GitHub takes, in characters.
const maxDescription = 140

// SetStatus sets a commit status.
func (d *Driver) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	owner, name := repoPath(r)
	status := &gh.RepoStatus{
		State:       gh.String(string(s.State)),
		Context:     &s.Context,
		Description: gh.String(wording.ClipRunes(s.Description, maxDescription)),
	}
	if s.TargetURL != "" {
		status.TargetURL = &s.TargetURL
	}
	if _, resp, err := d.api.Repositories.CreateStatus(ctx, owner, name, commit, status); err != nil {
		return wrapError("set the status "+s.Context+" on a commit of "+r.String(), resp, err)
	}
	return nil
}

// Statuses reads the whole list, newest first, and keeps the first of each
// context: the combined status would be one call less and doesn't say who set
// what. Check runs are not statuses.
func (d *Driver) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	owner, name := repoPath(r)
	var found []forge.Status
	seen := map[string]bool{}
	err := forEachPage("list the statuses of a commit of "+r.String(), func(page gh.ListOptions) (*gh.Response, bool, error) {
		list, resp, err := d.api.Repositories.ListStatuses(ctx, owner, name, commit, &page)
		for _, s := range list {
			if seen[s.GetContext()] {
				continue
			}
			seen[s.GetContext()] = true
			found = append(found, forge.Status{
				Context:     s.GetContext(),
				State:       forge.StatusState(s.GetState()),
				Description: s.GetDescription(),
				TargetURL:   s.GetTargetURL(),
				Creator:     s.GetCreator().GetLogin(),
			})
		}
		return resp, false, err
	})
	return found, err
}
