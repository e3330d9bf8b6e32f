package appset

import (
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// walkGenerators calls visit for every generator of a set, combining ones included;
// merged says that a merge decides the order of what it gives.
func walkGenerators(a *argov1alpha1.ApplicationSet, visit func(g *argov1alpha1.ApplicationSetGenerator, merged bool)) {
	var walk func(g *argov1alpha1.ApplicationSetGenerator, merged bool)
	nested := func(list []argov1alpha1.ApplicationSetNestedGenerator, merged bool) {
		for i := range list {
			// These were decoded strictly before (checkNested), so they decode.
			if g, err := newChildGenerator(&list[i], a); err == nil {
				walk(g, merged)
			}
		}
	}
	walk = func(g *argov1alpha1.ApplicationSetGenerator, merged bool) {
		visit(g, merged)
		if g.Matrix != nil {
			nested(g.Matrix.Generators, merged)
		}
		if g.Merge != nil {
			nested(g.Merge.Generators, true)
		}
	}
	for i := range a.Spec.Generators {
		walk(&a.Spec.Generators[i], false)
	}
}

// hasMerge says that a merge decides the order of the set's Applications.
func hasMerge(a *argov1alpha1.ApplicationSet) bool {
	found := false
	walkGenerators(a, func(_ *argov1alpha1.ApplicationSetGenerator, merged bool) { found = found || merged })
	return found
}
