package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
)

// describeDecision is what the service last decided of a target: what it shows people who want to
// know why nothing comes.
func (sim *Simulation) describeDecision(p target) string {
	key := wake.UnitName(promotion.Unit{Repo: repositoryID, Pipeline: pipeline, Component: p.component})
	row, known, err := sim.store.Unit(sim.ctx, key)
	switch {
	case err != nil:
		return err.Error()
	case !known:
		return "nothing"
	}
	var view facts.UnitView
	if err := json.Unmarshal(row.Data, &view); err != nil {
		return err.Error()
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
