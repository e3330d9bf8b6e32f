package backtest

import (
	"slices"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// compiledRules are rules as a component's facts have them.
type compiledRules struct {
	pipeline *pipeline.Pipeline
	envs     []promotion.Env // topological, with nothing but the rules
	batched  bool
	// looksAgain says that what is verified now may change a decision only at the next look: a soak
	// begins, or others of a batch wait for it.
	looksAgain bool
}

// ruleSource finds rules by their digest: those of the record, or others in their place.
type ruleSource struct {
	recorded map[string]Rules
	instead  *pipeline.Pipeline // nil: the recorded ones
	compiled map[string]*compiledRules
}

// newRuleSource compiles all of a record's rules, so that it may be used concurrently.
func newRuleSource(recorded map[string]Rules, instead *pipeline.Pipeline) *ruleSource {
	s := &ruleSource{recorded: recorded, instead: instead, compiled: map[string]*compiledRules{}}
	for digest, r := range recorded {
		if instead != nil {
			r.Pipeline = instead
		}
		s.compiled[digest] = compileRules(r)
	}
	return s
}

// find finds rules; nil where the record doesn't have them.
func (rs *ruleSource) find(digest string) *compiledRules { return rs.compiled[digest] }

// compileRules is nil where there is no pipeline.
func compileRules(r Rules) *compiledRules {
	if r.Pipeline == nil {
		return nil
	}
	p := *r.Pipeline
	p.Spec.Deployments = false // what the forge shows of environments decides nothing
	c := &compiledRules{pipeline: &p, batched: p.Spec.BatchesByEnvironment()}
	c.looksAgain = c.batched
	goesByTime := func(g policies.Gate) bool { return g.Soak != nil || g.Expression != nil }
	for _, spec := range inOrder(p.Spec.Environments) {
		gates := r.gatesOf(&spec)
		c.envs = append(c.envs, promotion.Env{Name: spec.Name, Branch: spec.Branch, Spec: spec, Gates: gates, Floor: r.Floor[spec.Name]})
		c.looksAgain = c.looksAgain || slices.ContainsFunc(gates, goesByTime)
	}
	return c
}

// inOrder are environments with each after those that it comes after; those of a circle are left out.
func inOrder(all []pipeline.Environment) []pipeline.Environment {
	var out []pipeline.Environment
	done := map[string]bool{}
	for range all {
		for _, e := range all {
			ready := !slices.ContainsFunc(e.After, func(name string) bool { return !done[name] })
			if ready && !done[e.Name] {
				done[e.Name] = true
				out = append(out, e)
			}
		}
	}
	return out
}
