package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// UnitView is a unit as it was last judged: what the console and the API show.
type UnitView struct {
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
	Environments []UnitEnvironment `json:"environments,omitempty"`
	Holds        []promotion.Hold  `json:"holds,omitempty"` // that are in force, on more than a pull request
}

// UnitEnvironment is where an environment is in its pipeline, and what its targets are.
type UnitEnvironment struct {
	Name    string                `json:"name"`
	After   []string              `json:"after,omitempty"`
	Branch  string                `json:"branch,omitempty"` // in a pipeline whose environments have branches
	Targets map[string]UnitTarget `json:"targets,omitempty"`
}

// UnitTarget says which Application a target is.
type UnitTarget struct {
	ID             string            `json:"id,omitempty"` // its name across Argo CDs
	Cluster        string            `json:"cluster,omitempty"`
	ApplicationSet string            `json:"applicationSet,omitempty"` // empty: it is a plain Application
	Labels         map[string]string `json:"labels,omitempty"`         // the Application's, as it was seen last
}

// describeEnvironments says where a component's environments are in its pipeline.
func describeEnvironments(c *ComponentEvaluation) []UnitEnvironment {
	out := make([]UnitEnvironment, 0, len(c.Facts.Envs))
	for i := range c.Facts.Envs {
		e := &c.Facts.Envs[i]
		u := UnitEnvironment{Name: e.Name, After: e.Spec.After, Branch: e.Spec.Branch}
		sets := map[string]string{}
		if c.Unit != nil && c.Unit.Envs[e.Name] != nil {
			for _, t := range c.Unit.Envs[e.Name].Targets {
				sets[t.Namespace+"/"+t.Name] = t.ApplicationSet
			}
		}
		for _, t := range e.Targets {
			if u.Targets == nil {
				u.Targets = map[string]UnitTarget{}
			}
			_, name, _ := strings.Cut(t.ID, "/") // without its Argo CD
			u.Targets[t.Name] = UnitTarget{ID: t.ID, Cluster: t.Cluster, ApplicationSet: sets[name], Labels: c.TargetLabels[t.ID]}
		}
		out = append(out, u)
	}
	return out
}

// rememberLabels notes the labels of a target's Application.
func (c *ComponentEvaluation) rememberLabels(id string, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	if c.TargetLabels == nil {
		c.TargetLabels = map[string]map[string]string{}
	}
	c.TargetLabels[id] = labels
}

// PackView makes the store's row of a judged unit. Its digest leaves out when it
// was judged, so that judging again without news writes nothing.
func PackView(c *ComponentEvaluation, d *promotion.ComponentDecision) (store.Unit, error) {
	v := UnitView{Unit: c.Facts.Unit, Tip: c.Facts.Tip, Broken: c.Facts.PipelineErr, Incidents: c.Facts.ClusterIncidents}
	v.Decision.Envs, v.Decision.Next = d.Envs, d.Next
	v.Environments, v.Holds = describeEnvironments(c), slices.DeleteFunc(slices.Clone(c.Facts.Holds.Value), func(h promotion.Hold) bool { return h.IsOver(c.Facts.Now) })
	plain := v
	plain.Tip, plain.Decision.Next = "", time.Time{}
	raw, err := json.Marshal(plain)
	if err != nil {
		return store.Unit{}, fmt.Errorf("pack the view of %s: %w", wake.UnitName(c.Facts.Unit), err)
	}
	sum := sha256.Sum256(raw)
	v.At = c.Facts.Now
	if raw, err = json.Marshal(v); err != nil {
		return store.Unit{}, fmt.Errorf("pack the view of %s: %w", wake.UnitName(c.Facts.Unit), err)
	}
	u := c.Facts.Unit
	return store.Unit{Key: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Digest: hex.EncodeToString(sum[:]), UpdatedAt: v.At, Data: raw}, nil
}
