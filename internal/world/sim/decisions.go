package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
)

// describeDecision is what the service last decided of a target: what it shows people who want to
// know why nothing comes.
func (sim *Simulation) describeDecision(p target) string {
	view, err := sim.viewOf(p.component)
	switch {
	case err != nil:
		return err.Error()
	case view == nil:
		return "nothing"
	}
	for _, env := range view.Decision.Envs {
		if env.Environment != p.env {
			continue
		}
		out := fmt.Sprintf("%s (%s), %s", env.State, env.Reason, env.Promotion)
		for _, why := range env.Why {
			out += "; " + strings.TrimSpace(why.Text)
		}
		return out
	}
	return "nothing of " + p.env
}

// viewOf is a component as the service judged it last; nil: it hasn't yet.
func (sim *Simulation) viewOf(component string) (*stored.Unit, error) {
	row, known, err := sim.store.Unit(sim.ctx, wake.UnitName(promotion.Unit{Repo: repositoryID, Pipeline: pipeline, Component: component}))
	if err != nil || !known {
		return nil, err
	}
	var view stored.Unit
	if err := json.Unmarshal(row.Data, &view); err != nil {
		return nil, fmt.Errorf("read what is shown of %s: %w", component, err)
	}
	return &view, nil
}
