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
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

// describeEnvironments says where a component's environments are in its pipeline.
func describeEnvironments(c *ComponentEvaluation) []stored.Environment {
	out := make([]stored.Environment, 0, len(c.Facts.Envs))
	for i := range c.Facts.Envs {
		e := &c.Facts.Envs[i]
		u := stored.Environment{Name: e.Name, After: e.Spec.After, Branch: e.Spec.Branch}
		sets := map[string]string{}
		if c.Unit != nil && c.Unit.Envs[e.Name] != nil {
			for _, t := range c.Unit.Envs[e.Name].Targets {
				sets[t.Namespace+"/"+t.Name] = t.ApplicationSet
			}
		}
		for _, t := range e.Targets {
			if u.Targets == nil {
				u.Targets = map[string]stored.Target{}
			}
			_, name, _ := strings.Cut(t.ID, "/") // without its Argo CD
			u.Targets[t.Name] = stored.Target{ID: t.ID, Cluster: t.Cluster, ApplicationSet: sets[name], Labels: c.TargetLabels[t.ID]}
		}
		out = append(out, u)
	}
	return out
}

// PackView makes the store's row of a judged unit. Its digest leaves out when it
// was judged, so that judging again without news writes nothing.
func PackView(c *ComponentEvaluation, d *promotion.ComponentDecision) (store.Unit, error) {
	v := stored.Unit{Unit: c.Facts.Unit, Tip: c.Facts.Tip, Broken: c.Facts.PipelineErr, Incidents: c.Facts.ClusterIncidents}
	v.Decision.Envs, v.Decision.Next = d.Envs, d.Next
	v.Environments, v.Holds = describeEnvironments(c), slices.DeleteFunc(slices.Clone(c.Facts.Holds.Value),
		func(h promotion.Hold) bool { return h.IsOver(c.Facts.Now) })
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
	return store.Unit{Key: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Digest: hex.EncodeToString(sum[:]),
		UpdatedAt: v.At, Data: raw}, nil
}
