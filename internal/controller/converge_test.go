package controller

import "testing"

// TestDifferingReleaseIsAdopted holds that with adopt: converge what dev had before the pipeline
// comes to qa, verified and by a pull request, once.
func TestDifferingReleaseIsAdopted(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec+"  adopt: converge\n", autoQA, c.components...)
			w.settle(c.key, "it is merged", func() bool { p := w.pulls(); return len(p) == 1 && p[0].Merged })
			for _, component := range c.components {
				if text, _, err := w.forge.File(repoName, "main", kustomizationOf(component, "qa")); err != nil || text != kustomization(component, "1.1.0") {
					t.Errorf("qa has of %s: %q, %v", component, text, err)
				}
			}
			looks := 0
			w.settle(c.key, "it was looked at again", func() bool { looks++; return looks > 2 })
			if n := len(w.pulls()); n != 1 {
				t.Errorf("there are %d pull requests", n)
			}
		})
	}
}
