package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// maxRounds bounds how often one evaluation asks for another fact.
const maxRounds = 8

// unit is what is evaluated as one: a component, or all of a pipeline's.
type unit struct {
	name       promotion.Unit
	components []*facts.Evaluation    // by name
	batch      *facts.BatchEvaluation // nil: it is one component
	decision   promotion.Decision
}

func (u *unit) facts() promotion.Facts {
	if u.batch != nil {
		return u.batch.Facts()
	}
	return promotion.Facts{Components: []promotion.ComponentFacts{u.components[0].Facts}}
}

func (m *planner) gather(ctx context.Context, name promotion.Unit) (*unit, error) {
	if m.snapshot.IsBatch(name) {
		b, err := m.gatherer.GatherBatch(ctx, m.snapshot, name, false)
		if err != nil {
			return nil, err
		}
		return &unit{name: name, components: b.Evaluations, batch: b}, nil
	}
	c, err := m.gatherer.GatherUnit(ctx, m.snapshot, name, false)
	return &unit{name: name, components: []*facts.Evaluation{c}}, err
}

// contends are the environments that a release would come into if there is a
// place, and since when it could have.
func (u *unit) contends() map[string]time.Time {
	out := map[string]time.Time{}
	d := promotion.Decide(u.facts()).Components[0]
	for _, a := range d.Actions {
		if l, ok := a.(promotion.FactRequest); ok && l.What == promotion.RequestComposition {
			out[l.Environment] = d.Env(l.Environment).ReadySince
		}
	}
	return out
}

// decide decides, answering fact requests until none is left.
func (m *planner) decide(ctx context.Context, u *unit) error {
	for range maxRounds {
		u.decision = promotion.Decide(u.facts())
		answered, own := false, false
		for i := range u.decision.Components {
			for _, a := range u.decision.Components[i].Actions {
				if l, ok := a.(promotion.FactRequest); ok {
					answered, own = true, true
					if err := m.gatherer.AnswerRequest(ctx, u.components[i], l); err != nil {
						return err
					}
				}
			}
		}
		for _, a := range u.decision.Actions {
			if l, ok := a.(promotion.FactRequest); ok && !own && u.batch != nil { // what moves together hangs on each one's own
				answered = true
				if err := m.gatherer.AnswerBatchRequest(ctx, u.batch, l); err != nil {
					return err
				}
			}
		}
		if !answered {
			return nil
		}
	}
	return fmt.Errorf("evaluating %s asked for facts %d times without coming to an end", u.name.Component, maxRounds)
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

func (u *unit) edits(open promotion.Open) []fieldedit.Edit {
	c := u.components[0]
	if u.batch != nil {
		c = u.batch.PullEvaluation()
	}
	return c.ComposedEdits[facts.CompositionKey(open.Environment, open.Release)]
}

func (m *planner) effects(ctx context.Context, u *unit, open promotion.Open, edits []fieldedit.Edit) ([]isolation.Effect, error) {
	c := u.components[0]
	if u.batch != nil {
		c, _ = u.batch.SharedEvaluation(&u.decision, open.Environment, 0, open.Members)
	}
	return m.gatherer.Effects(ctx, c, open.Environment, open.Tip, edits)
}

// env is an environment of a component.
func (u *unit) env(component, name string) *promotion.Env {
	for _, c := range u.components {
		for i := range c.Facts.Envs {
			if e := &c.Facts.Envs[i]; c.Facts.Unit.Component == component && e.Name == name {
				return e
			}
		}
	}
	return nil
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
