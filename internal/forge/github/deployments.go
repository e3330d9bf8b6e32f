package github

import (
	"context"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// HasDeployments is true: GitHub keeps them.
func (d *Driver) HasDeployments() bool { return true }

// Deployments lists them, newest first as GitHub does.
func (d *Driver) Deployments(ctx context.Context, r forge.Repo, environment, task string) ([]forge.Deployment, error) {
	ctx, owner, name := inRepo(ctx, r)
	list, _, err := d.api.Repositories.ListDeployments(ctx, owner, name, &gh.DeploymentsListOptions{Environment: environment, Task: task,
		ListOptions: gh.ListOptions{PerPage: forge.MaxDeployments}})
	if err != nil {
		return nil, wrapError("list the deployments of "+r.String()+" to "+environment, err)
	}
	found := make([]forge.Deployment, 0, len(list))
	for _, k := range list {
		found = append(found, forge.Deployment{ID: k.GetID(), Environment: k.GetEnvironment(), Task: k.GetTask(), Commit: k.GetSHA(),
			Description: k.GetDescription(), CreatedAt: k.GetCreatedAt().Time})
	}
	return found, nil
}

// CreateDeployment makes one. By default GitHub would merge the default branch into the
// commit, and refuse one whose statuses aren't all success (REST API, "Create a deployment").
func (d *Driver) CreateDeployment(ctx context.Context, r forge.Repo, n forge.Deployment) (int64, error) {
	ctx, owner, name := inRepo(ctx, r)
	made, _, err := d.api.Repositories.CreateDeployment(ctx, owner, name, &gh.DeploymentRequest{
		Ref: &n.Commit, Task: &n.Task, Environment: &n.Environment, Payload: n.Payload,
		Description: gh.String(wording.ClipRunes(n.Description, maxDescription)), AutoMerge: gh.Bool(false), RequiredContexts: &[]string{},
	})
	if err != nil {
		return 0, wrapError("create a deployment of "+r.String()+" to "+n.Environment, err)
	}
	return made.GetID(), nil
}

// DeploymentState reads the newest status, which GitHub lists first.
func (d *Driver) DeploymentState(ctx context.Context, r forge.Repo, id int64) (forge.DeploymentState, error) {
	ctx, owner, name := inRepo(ctx, r)
	list, _, err := d.api.Repositories.ListDeploymentStatuses(ctx, owner, name, id, &gh.ListOptions{PerPage: 1})
	if err != nil {
		return "", wrapError("read the state of a deployment of "+r.String(), err)
	}
	if len(list) == 0 {
		return "", nil
	}
	return forge.DeploymentState(list[0].GetState()), nil
}

// SetDeploymentStatus adds a status. auto_inactive is off: it would make the deployments of
// the repository's other components in the environment inactive too.
func (d *Driver) SetDeploymentStatus(ctx context.Context, r forge.Repo, id int64, s forge.DeploymentStatus) error {
	ctx, owner, name := inRepo(ctx, r)
	status := &gh.DeploymentStatusRequest{State: gh.String(string(s.State)),
		Description: gh.String(wording.ClipRunes(s.Description, maxDescription)), AutoInactive: gh.Bool(false)}
	if s.LogURL != "" {
		status.LogURL = &s.LogURL
	}
	_, _, err := d.api.Repositories.CreateDeploymentStatus(ctx, owner, name, id, status)
	return wrapError("set the state of a deployment of "+r.String(), err)
}
