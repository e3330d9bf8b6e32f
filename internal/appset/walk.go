package appset

import (
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// walkGenerators calls visit for every generator of a set in the shape of a nested one,
// combining generators included.
func walkGenerators(a *argov1alpha1.ApplicationSet, visit func(g *argov1alpha1.ApplicationSetNestedGenerator, merged bool)) {
	for i := range a.Spec.Generators {
		g := &a.Spec.Generators[i]
		visit(&argov1alpha1.ApplicationSetNestedGenerator{
			List: g.List, Clusters: g.Clusters, Git: g.Git,
			SCMProvider: g.SCMProvider, ClusterDecisionResource: g.ClusterDecisionResource, PullRequest: g.PullRequest, Plugin: g.Plugin,
		}, false)
		if g.Matrix != nil {
			walkNested(g.Matrix.Generators, false, visit)
		}
		if g.Merge != nil {
			walkNested(g.Merge.Generators, true, visit)
		}
	}
}

func walkNested(nested []argov1alpha1.ApplicationSetNestedGenerator, merged bool, visit func(*argov1alpha1.ApplicationSetNestedGenerator, bool)) {
	for i := range nested {
		g := &nested[i]
		visit(g, merged)
		// These were decoded strictly before (checkNested), so they decode.
		if matrix, err := argov1alpha1.ToNestedMatrixGenerator(g.Matrix); err == nil && matrix != nil {
			walkNested(matrix.ToMatrixGenerator().Generators, merged, visit)
		}
		if merge, err := argov1alpha1.ToNestedMergeGenerator(g.Merge); err == nil && merge != nil {
			walkNested(merge.ToMergeGenerator().Generators, true, visit)
		}
	}
}

// hasMerge says that a merge decides the order of the set's Applications.
func hasMerge(a *argov1alpha1.ApplicationSet) bool {
	found := false
	walkGenerators(a, func(_ *argov1alpha1.ApplicationSetNestedGenerator, merged bool) { found = found || merged })
	return found
}
