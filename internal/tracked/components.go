package tracked

import (
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/fleet"
	"github.com/liftlock/liftlock/internal/overlay"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Environment is one environment of a component.
type Environment struct {
	Component, Name string
	Targets         []fleet.Target
	Roots           []string // the folders that are its alone, sorted
	Shared          []string // those that other environments or components have as well, and those of its ApplicationSets, sorted
}

// Overlay is where the environment has what a pipeline carries.
func (e *Environment) Overlay(p *pipeline.Pipeline) overlay.Overlay {
	return overlay.Overlay{Roots: e.Roots, Shared: e.Shared, Carry: p.Spec.Carry, Environment: e.Name, Component: e.Component}
}

// Components groups a fleet's managed targets by component and environment.
func Components(fl *fleet.Fleet) map[string]map[string]*Environment {
	out := map[string]map[string]*Environment{}
	owners := rootOwners(fl)
	for _, t := range fl.Targets {
		if !t.Managed() {
			continue
		}
		envs := out[t.Component]
		if envs == nil {
			envs = map[string]*Environment{}
			out[t.Component] = envs
		}
		e := envs[t.Environment]
		if e == nil {
			e = &Environment{Component: t.Component, Name: t.Environment}
			envs[t.Environment] = e
		}
		e.Targets = append(e.Targets, t)
		for _, root := range fleet.Roots(t) {
			if len(owners[root]) == 1 {
				e.Roots = append(e.Roots, root)
			} else {
				e.Shared = append(e.Shared, root)
			}
		}
		if t.ApplicationSetFile != "" {
			e.Shared = append(e.Shared, path.Dir(t.ApplicationSetFile))
		}
	}
	for _, envs := range out {
		for _, e := range envs {
			e.Roots, e.Shared = sortedOnce(e.Roots), sortedOnce(e.Shared)
		}
	}
	return out
}

func sortedOnce(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// rootOwners says which environments of which components have a folder among
// their roots. In one that several share only fields with a placeholder are any
// of theirs.
func rootOwners(fl *fleet.Fleet) map[string]map[string]bool {
	owners := map[string]map[string]bool{}
	for _, t := range fl.Targets {
		for _, root := range fleet.Roots(t) {
			if owners[root] == nil {
				owners[root] = map[string]bool{}
			}
			owners[root][t.Component+"|"+t.Environment] = true
		}
	}
	return owners
}
