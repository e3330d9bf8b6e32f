package gitlab

import (
	"context"

	"github.com/liftlock/liftlock/internal/forge"
)

// HasDeployments is false: GitLab's deployments are those of its own environments and jobs.
func (d *Driver) HasDeployments() bool { return false }

// Deployments is ErrInvalid.
func (d *Driver) Deployments(_ context.Context, r forge.Repo, _, _ string) ([]forge.Deployment, error) {
	return nil, noDeployments("list the deployments of " + r.String())
}

// CreateDeployment is ErrInvalid.
func (d *Driver) CreateDeployment(_ context.Context, r forge.Repo, _ forge.Deployment) (int64, error) {
	return 0, noDeployments("create a deployment of " + r.String())
}

// DeploymentState is ErrInvalid.
func (d *Driver) DeploymentState(_ context.Context, r forge.Repo, _ int64) (forge.DeploymentState, error) {
	return "", noDeployments("read the state of a deployment of " + r.String())
}

// SetDeploymentStatus is ErrInvalid.
func (d *Driver) SetDeploymentStatus(_ context.Context, r forge.Repo, _ int64, _ forge.DeploymentStatus) error {
	return noDeployments("set the state of a deployment of " + r.String())
}

func noDeployments(op string) error {
	return &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "Liftlock keeps no deployments in GitLab"}
}
