package forge

import "time"

// DeploymentState is how a deployment stands, in GitHub's words.
type DeploymentState string

// The states of a deployment that Liftlock sets. A forge has more of them.
const (
	DeploymentInProgress DeploymentState = "in_progress"
	DeploymentSuccess    DeploymentState = "success"
	DeploymentFailure    DeploymentState = "failure"  // it made something unwell
	DeploymentError      DeploymentState = "error"    // it never came to that
	DeploymentInactive   DeploymentState = "inactive" // something else is there now
)

// MaxDeployments is how many deployments a list has at most.
const MaxDeployments = 10

// Deployment is a commit that was brought to an environment of the forge.
type Deployment struct {
	ID          int64
	Environment string // of the forge, which makes it where there is none of the name
	Task        string // tells those of one kind from others in the environment
	Commit      string
	Description string // cut to what the forge takes by the driver
	// Payload is for programs that the forge tells of the deployment; a list leaves it out.
	Payload   map[string]string
	CreatedAt time.Time
}

// DeploymentStatus is a new state of a deployment.
type DeploymentStatus struct {
	State       DeploymentState
	Description string // cut to what the forge takes by the driver
	LogURL      string // for people; empty: none
}
