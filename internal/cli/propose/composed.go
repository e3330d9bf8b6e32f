package propose

import (
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
)

// maxComposed bounds the candidates that a component's is put together with.
const maxComposed = 12

// composeComponents makes a pair's component of two candidates where one alone gives the same name
// to several deployments. These are targets of one set, component and environment that are made
// from different folders and go to one cluster, as where each team has a component "api". Where
// they go to several clusters those are regions of one component, and several sets are often
// variants of which one runs. It is the pair itself, where no two candidates tell all of them apart
// and still have them in several environments.
func (p pair) composeComponents(candidates []candidate, targets []appset.Target, folders []madeFrom) pair {
	if !p.isRepeated(targets, folders) {
		return p
	}
	var found []pair
	for i := range candidates[:min(len(candidates), maxComposed)] {
		other := &candidates[i]
		if other.text == p.environment.text || other.text == p.component.text || other.isCluster(targets) {
			continue
		}
		for _, of := range [][2]*candidate{{other, p.component}, {p.component, other}} {
			both := composeCandidates(of[0], of[1])
			one := pair{component: &both, environment: p.environment}
			one.weigh(targets, folders)
			if one.promotes && one.score >= 0 && one.targets == p.targets && !one.isRepeated(targets, folders) {
				found = append(found, one)
			}
		}
	}
	if len(found) == 0 {
		return p
	}
	best := slices.MinFunc(found, pair.compare)
	best.score = max(best.score, p.score) // beside other environments it counts as the one that it is put in place of
	return best
}

// composeCandidates are two candidates, one after the other.
func composeCandidates(a, b *candidate) candidate {
	out := candidate{text: a.text + "-" + b.text, cost: a.cost + b.cost, values: make([]string, len(a.values))}
	for i, v := range a.values {
		if v != "" && b.values[i] != "" {
			out.values[i] = v + "-" + b.values[i]
		}
	}
	out.findKnown()
	return out
}

// isRepeated says that some targets of one set, component and environment go to one cluster and are
// made from different folders. That must be so in several environments. A single case may be a
// mistake and doesn't count.
func (p *pair) isRepeated(targets []appset.Target, folders []madeFrom) bool {
	type place struct{ set, component, environment, cluster string }
	first, repeated := map[place]int{}, map[string]bool{}
	for i, c := range p.component.values {
		e := p.environment.values[i]
		if c == "" || e == "" {
			continue
		}
		at := place{targets[i].ApplicationSetFile + "|" + targets[i].ApplicationSet, c, e, targets[i].Cluster}
		if folder, ok := first[at]; ok && folder != folders[i].folder {
			repeated[e] = true
		} else {
			first[at] = folders[i].folder
		}
	}
	return len(repeated) > 1
}
