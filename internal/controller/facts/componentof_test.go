package facts

import "github.com/liftlock/liftlock/internal/controller/facts/branch"

// componentOf makes what one look has of a component, of a whole.
func componentOf(ev *Evaluation, c branch.ComponentBasis) *ComponentEvaluation {
	c.Basis = &ev.Basis
	return &ComponentEvaluation{ComponentBasis: c, Evaluation: ev}
}
