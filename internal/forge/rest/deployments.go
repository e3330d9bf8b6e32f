package rest

import (
	"context"

	"github.com/liftlock/liftlock/internal/forge"
)

// NoDeployments is what a driver says of deployments whose forge keeps none, or none of ours.
type NoDeployments struct{ Why string }

// HasDeployments is false.
func (NoDeployments) HasDeployments() bool { return false }

// Deployments is ErrInvalid.
func (n NoDeployments) Deployments(_ context.Context, r forge.Repo, _, _ string) ([]forge.Deployment, error) {
	return nil, n.refuse("list the deployments of " + r.String())
}

// CreateDeployment is ErrInvalid.
func (n NoDeployments) CreateDeployment(_ context.Context, r forge.Repo, _ forge.Deployment) (int64, error) {
	return 0, n.refuse("create a deployment of " + r.String())
}

// DeploymentState is ErrInvalid.
func (n NoDeployments) DeploymentState(_ context.Context, r forge.Repo, _ int64) (forge.DeploymentState, error) {
	return "", n.refuse("read the state of a deployment of " + r.String())
}

// SetDeploymentStatus is ErrInvalid.
func (n NoDeployments) SetDeploymentStatus(_ context.Context, r forge.Repo, _ int64, _ forge.DeploymentStatus) error {
	return n.refuse("set the state of a deployment of " + r.String())
}

func (n NoDeployments) refuse(op string) error {
	return &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: n.Why}
}
