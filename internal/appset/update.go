package appset

import (
	"context"
	"reflect"
	"slices"
	"strings"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// maxUpdated bounds the generator files whose targets are made anew by themselves.
const maxUpdated = 64

// updateTargets gives a set's targets where only some generator files differ: the targets of
// before, and those that the generators make of these files alone. It is exact for sets in which
// the targets of one file depend on no other. For other sets it is false, and all targets are made
// anew. So it is wherever more than the targets themselves changes: their number, names, order or
// problems.
func (r *Resolver) updateTargets(ctx context.Context, in *Input, s *appSet, e *pipelineEntry, c *commit, snap *snapshot,
	access *generatorAccess, last *setResults, keys setCacheKeys, files []string) (setOutcome, bool) {
	o := last.outcome.outcome
	wasWhole := len(o.problems)+len(o.notes) == 0 && len(last.built) > 0 && len(o.targets) == len(last.built)
	if !wasWhole || len(files) > maxUpdated {
		return o, false
	}
	if snap.argocd.Globbing == GlobbingDoublestar || !isMadeByFile(s.spec.Spec.Generators) {
		return o, false
	}
	places := last.placesOf(files)
	g := newGeneratorRun(ctx, s, c, snap, access, newResultCache(last, keys.targets))
	g.repos.only = files
	m := newTargetBuilder(in, s, e, c, g.cache)
	if err := g.runGenerators(r.log, s, m); err != nil || len(m.all) != len(places) {
		return o, false // made anew, all say what is wrong
	}
	if valid := snap.validateTargets(s, slices.Clone(m.all)); len(valid.problems)+len(valid.notes) > 0 ||
		len(valid.targets) != len(places) {
		return o, false
	}
	next := *last
	next.built, o.targets = slices.Clone(last.built), slices.Clone(o.targets)
	for i, fresh := range m.all {
		old := next.built[places[i]]
		at, found := slices.BinarySearchFunc(o.targets, old.target.Name,
			func(t Target, name string) int { return strings.Compare(t.Name, name) })
		if !found || fresh.target.Name != old.target.Name || !slices.Equal(fresh.files, old.files) ||
			!sameMergeKeys(s.spec.Spec.Generators, old, fresh) {
			return o, false
		}
		next.built[places[i]], o.targets[at] = fresh, fresh.target
	}
	o.scope = o.scope.withKeys(access.scope.result())
	next.outcome = last.outcome.rebasedOn(g.repos)
	next.outcome.outcome, next.outcome.answers = o, "" // which nobody has put together
	r.setCache.Put(keys.set, &next)
	return o, true
}

// isMadeByFile says that the targets of one generator file depend on no other file. The generators
// are files alone, in a matrix with clusters or a list, or with those merged into them.
func isMadeByFile(all []argov1alpha1.ApplicationSetGenerator) bool {
	return !slices.ContainsFunc(all, func(g argov1alpha1.ApplicationSetGenerator) bool {
		switch {
		case g.Git != nil:
			return !readsFiles(g.Git)
		case g.Matrix != nil:
			return countFileReaders(g.Matrix.Generators) != 1
		case g.Merge != nil:
			return len(g.Merge.Generators) == 0 || !readsFiles(g.Merge.Generators[0].Git) || countFileReaders(g.Merge.Generators) != 1
		}
		return true
	})
}

func readsFiles(g *argov1alpha1.GitGenerator) bool {
	return g != nil && len(g.Files) > 0 && len(g.Directories) == 0
}

// countFileReaders counts the git file generators; -1 where there are others than those,
// lists and clusters.
func countFileReaders(all []argov1alpha1.ApplicationSetNestedGenerator) int {
	n := 0
	for i := range all {
		switch g := &all[i]; {
		case readsFiles(g.Git):
			n++
		case g.List == nil && g.Clusters == nil:
			return -1
		}
	}
	return n
}

// sameMergeKeys says that a target's parameters are merged with the same others as before.
func sameMergeKeys(all []argov1alpha1.ApplicationSetGenerator, old, fresh *builtTarget) bool {
	for i := range all {
		if all[i].Merge == nil {
			continue
		}
		for _, key := range all[i].Merge.MergeKeys {
			if !reflect.DeepEqual(old.params[key], fresh.params[key]) {
				return false
			}
		}
	}
	return true
}
