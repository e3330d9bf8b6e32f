package tracked

import (
	"slices"
	"sort"

	"github.com/liftlock/liftlock/internal/fleet"
)

// Environment is one environment of a component.
type Environment struct {
	Targets []fleet.Target
	Roots   []string // the folders of its overlay, sorted; what other environments read too is none of them
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
			e = &Environment{}
			envs[t.Environment] = e
		}
		e.Targets = append(e.Targets, t)
		for _, root := range fleet.Roots(t) {
			if !slices.Contains(e.Roots, root) && len(owners[root]) == 1 {
				e.Roots = append(e.Roots, root)
			}
		}
		sort.Strings(e.Roots)
	}
	return out
}

// rootOwners says which environments of which components have a folder among
// their roots. One that several share holds no overlay of any of them.
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
