package stored

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Unit is a unit as it was last judged (a store.Unit's data): what the console and the API show.
type Unit struct {
	Unit     promotion.Unit `json:"unit"`
	At       time.Time      `json:"at"`
	Tip      string         `json:"tip"`
	Broken   string         `json:"broken,omitempty"`
	Decision struct {
		Next time.Time            `json:"next,omitzero"`
		Envs []promotion.EnvState `json:"envs"`
	} `json:"decision"`
	Incidents []promotion.ClusterIncident `json:"incidents,omitempty"` // that the next evaluation must know of
	// Environments are how those of the decision follow each other, in its order.
	Environments []Environment    `json:"environments,omitempty"`
	Holds        []promotion.Hold `json:"holds,omitempty"` // that are in force, on more than a pull request
}

// Environment is where an environment is in its pipeline, and what its targets are.
type Environment struct {
	Name    string            `json:"name"`
	After   []string          `json:"after,omitempty"`
	Branch  string            `json:"branch,omitempty"` // in a pipeline whose environments have branches
	Targets map[string]Target `json:"targets,omitempty"`
}

// Target says which Application a target is.
type Target struct {
	ID             string            `json:"id,omitempty"` // its name across Argo CDs
	Cluster        string            `json:"cluster,omitempty"`
	ApplicationSet string            `json:"applicationSet,omitempty"` // empty: it is a plain Application
	Labels         map[string]string `json:"labels,omitempty"`         // the Application's, as it was seen last
}

// FindEnvironment finds where an environment is; zero where that isn't known.
func (u *Unit) FindEnvironment(name string) (e Environment) {
	if i := slices.IndexFunc(u.Environments, func(e Environment) bool { return e.Name == name }); i >= 0 {
		return u.Environments[i]
	}
	return e
}
