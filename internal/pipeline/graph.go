package pipeline

import (
	"slices"
)

// TopologicalOrder is the environments in an order in which each comes after all of its
// `after` environments; where that leaves a choice, in the file's order. The
// pointers are into the pipeline.
func (p *Pipeline) TopologicalOrder() []*Environment {
	environments := p.Spec.Environments
	ordered := make([]*Environment, 0, len(environments))
	placed := map[string]bool{}
	for len(ordered) < len(environments) {
		before := len(ordered)
		for i := range environments {
			e := &environments[i]
			if placed[e.Name] || slices.ContainsFunc(e.After, func(a string) bool { return !placed[a] }) {
				continue
			}
			ordered = append(ordered, e)
			placed[e.Name] = true
			break // from the top again, to stay close to the file's order
		}
		if len(ordered) == before {
			return ordered // a cycle, which Parse refuses
		}
	}
	return ordered
}

// FindCycle is one cycle of the `after` graph as a path that ends where it began,
// nil when there is none. Names that don't exist are passed over.
func (s *Spec) FindCycle() []string {
	const (
		walking = 1
		done    = 2
	)
	state := map[string]int{}
	var path []string
	var walk func(name string) []string
	walk = func(name string) []string {
		e := s.EnvironmentByName(name)
		if e == nil || state[name] == done {
			return nil
		}
		if state[name] == walking {
			return append(slices.Clone(path[slices.Index(path, name):]), name)
		}
		state[name] = walking
		path = append(path, name)
		for _, a := range e.After {
			if c := walk(a); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		return nil
	}
	for _, e := range s.Environments {
		if c := walk(e.Name); c != nil {
			return c
		}
	}
	return nil
}

// isUpstream says that a release reaches one environment only through another: it stands,
// directly or not, before it. A circle, which Parse refuses, comes to an end too.
func (s *Spec) isUpstream(name, of string) bool {
	seen := map[string]bool{}
	var walk func(of string) bool
	walk = func(of string) bool {
		e := s.EnvironmentByName(of)
		if e == nil || seen[of] {
			return false
		}
		seen[of] = true
		return slices.Contains(e.After, name) || slices.ContainsFunc(e.After, walk)
	}
	return walk(of)
}
