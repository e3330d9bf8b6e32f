package plan

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/promotion"
)

// unit is what is evaluated as one: a component, or all of a pipeline's.
type unit struct {
	*facts.Evaluation
	decision *promotion.Decision
}

// contends are the environments that a release of the unit's only component would
// come into if there is a place, and since when it could have.
func (u *unit) contends() map[string]time.Time {
	out := map[string]time.Time{}
	d := promotion.Decide(u.Facts()).Components[0]
	for _, a := range d.Actions {
		if l, ok := a.(promotion.FactRequest); ok && l.What == promotion.RequestComposition {
			out[l.Environment] = d.Env(l.Environment).ReadySince
		}
	}
	return out
}

// decide has the controller decide about a unit.
func (m *planner) decide(ctx context.Context, u *unit) (err error) {
	u.decision, err = m.gatherer.Decide(ctx, u.Evaluation)
	return err
}

// opens are the pull requests that would be opened into an environment.
func (u *unit) opens(env string) []promotion.Open {
	var out []promotion.Open
	for _, a := range u.decision.Actions {
		if open, ok := a.(promotion.Open); ok && open.Environment == env {
			out = append(out, open)
		}
	}
	return out
}

// effects say what a promotion does to the rendered manifests of its targets.
func (m *planner) effects(ctx context.Context, u *unit, open promotion.Open) ([]isolation.Effect, error) {
	components := make([]string, len(open.Members))
	for i, member := range open.Members {
		components[i] = member.Component
	}
	return m.gatherer.Effects(ctx, u.Evaluation, components, open.Environment, open.Tip, u.ComposedEdits(open.Environment, open.Release))
}

// env is an environment of a component; nil when there is none.
func (u *unit) env(component, name string) *promotion.Env {
	c, _ := u.Component(component)
	if c == nil {
		return nil
	}
	return c.Env(name)
}

func (u *unit) targetNames(open promotion.Open) []string {
	var out []string
	for _, member := range open.Members {
		for _, t := range u.env(member.Component, open.Environment).Targets {
			out = append(out, t.Name)
		}
	}
	return out
}
