package fieldedit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

func TestScopeInputs(t *testing.T) {
	images := pipeline.Carry{KustomizeImages: []string{"r/*"}}
	for name, c := range map[string]struct {
		at    Overlay
		want  []string
		reads map[string]bool
	}{
		"its own folders, whole": {Overlay{Roots: []string{"a/qa", "b/qa"}, Carry: []pipeline.Carry{images}}, []string{"a/qa", "b/qa"},
			map[string]bool{"a/qa/kustomization.yaml": true, "a/qa/.argocd-source-web.yaml": true, "a/qa/values.yaml": false, "a/kustomization.yaml": false, "a/qa/x/.argocd-source.yaml": false}},
		"its kustomizations, for remote bases": {Overlay{Roots: []string{"a/qa"}, Shared: []string{"common"}, Carry: []pipeline.Carry{{KustomizeRefs: []string{"**"}}}}, []string{"a/qa", "common/.argocd-source.yaml"},
			map[string]bool{"a/qa/kustomization.yaml": true, "a/qa/values.yaml": false, "common/kustomization.yaml": false}},
		"of shared folders what overrides": {Overlay{Roots: []string{"a/qa"}, Shared: []string{".", "common"}, Carry: []pipeline.Carry{images}, Environment: "qa"},
			[]string{".argocd-source.yaml", "a/qa", "common/.argocd-source.yaml"},
			map[string]bool{"common/kustomization.yaml": false, "common/.argocd-source.yaml": true, "common/.argocd-source-web.yaml": false}},
		"and what has placeholders": {Overlay{Shared: []string{"common"}, Environment: "qa",
			Carry: []pipeline.Carry{images, yamlCarry("", "envs/{{environment}}/values*.yaml", "tag"), yamlCarry("", "tags.yaml", "{{environment}}.tag"), yamlCarry("", "other.yaml", "tag")}},
			[]string{"common/.argocd-source.yaml", "common/envs/qa", "common/tags.yaml"},
			map[string]bool{"common/tags.yaml": true, "common/envs/qa/values-x.yaml": true, "common/envs/prod/values.yaml": false, "common/other.yaml": false}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewScope(c.at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.Inputs()); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
			for file, want := range c.reads {
				if got := s.MayRead(file); got != want {
					t.Errorf("reads %s: %t", file, got)
				}
			}
		})
	}
}
