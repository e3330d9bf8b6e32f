package memoryforge

import (
	"context"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// deployment is one with its states, oldest first.
type deployment struct {
	info   forge.Deployment
	states []forge.DeploymentStatus
}

// deploymentStates are GitHub's.
var deploymentStates = []forge.DeploymentState{"error", "failure", "inactive", "in_progress", "queued", "pending", "success"}

// HasDeployments is true.
func (v *view) HasDeployments() bool { return true }

// Deployments lists them, newest first.
func (v *view) Deployments(ctx context.Context, r forge.Repo, environment, task string) (found []forge.Deployment, err error) {
	err = v.read(ctx, "list the deployments of "+r.String()+" to "+environment, r, func(c *call) error {
		for _, d := range slices.Backward(c.repo.deployments) {
			if strings.EqualFold(d.info.Environment, environment) && d.info.Task == task && len(found) < forge.MaxDeployments {
				shown := d.info
				shown.Payload = nil
				found = append(found, shown)
			}
		}
		return nil
	})
	return found, err
}

// CreateDeployment adds one.
func (v *view) CreateDeployment(ctx context.Context, r forge.Repo, n forge.Deployment) (id int64, err error) {
	err = v.forge.withRepository(ctx, "create a deployment of "+r.String()+" to "+n.Environment, v.login, r, forge.PermissionWrite,
		func(c *call) error {
			if has, err := c.repo.remote.Has(c.ctx, n.Commit); err != nil || !has { // also what is no commit's name
				return c.failure(forge.ErrInvalid, "No ref found for: "+n.Commit)
			}
			id = c.nextID()
			n.ID, n.CreatedAt, n.Description = id, c.now(), wording.ClipRunes(n.Description, maxDescription)
			c.repo.deployments = append(c.repo.deployments, &deployment{info: n})
			return nil
		})
	return id, err
}

// DeploymentState is the newest.
func (v *view) DeploymentState(ctx context.Context, r forge.Repo, id int64) (state forge.DeploymentState, err error) {
	err = v.read(ctx, "read the state of a deployment of "+r.String(), r, func(c *call) error {
		d, err := c.findDeployment(id)
		if err == nil && len(d.states) > 0 {
			state = d.states[len(d.states)-1].State
		}
		return err
	})
	return state, err
}

// SetDeploymentStatus adds a state.
func (v *view) SetDeploymentStatus(ctx context.Context, r forge.Repo, id int64, s forge.DeploymentStatus) error {
	return v.forge.withRepository(ctx, "set the state of a deployment of "+r.String(), v.login, r, forge.PermissionWrite,
		func(c *call) error {
			d, err := c.findDeployment(id)
			if err != nil {
				return err
			}
			if !slices.Contains(deploymentStates, s.State) {
				return c.failure(forge.ErrInvalid, "Validation Failed: state is not included in the list")
			}
			s.Description = wording.ClipRunes(s.Description, maxDescription)
			d.states = append(d.states, s)
			return nil
		})
}

func (c *call) findDeployment(id int64) (*deployment, error) {
	for _, d := range c.repo.deployments {
		if d.info.ID == id {
			return d, nil
		}
	}
	return nil, c.failure(forge.ErrNotFound, "Not Found")
}
