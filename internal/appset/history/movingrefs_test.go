package history

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestMovingRefs finds a carried ref that follows a branch where another environment has a revision.
func TestMovingRefs(t *testing.T) {
	components := map[string]map[string]*Environment{"web": {
		"dev": {Component: "web", Name: "dev", Roots: []string{"dev"}}, "prod": {Component: "web", Name: "prod", Roots: []string{"prod"}}}}
	for name, c := range map[string]struct{ dev, prod, want string }{
		"revisions": {"v2", "v1", ""},
		"a branch in one of them": {"main", "v1",
			"line 2: resources[https://git.example/acme/web].ref is carried, and it is the branch main: a promotion would have prod follow it too; name a revision here, or take the base out of kustomizeRefs"},
		"by its whole name": {"refs/heads/master", "v1",
			"line 2: resources[https://git.example/acme/web].ref is carried, and it is the branch refs/heads/master: a promotion would have prod follow it too; name a revision here, or take the base out of kustomizeRefs"},
		"branches in all": {"main", "main", ""},
		"no such base":    {"main", "v1\n- ]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := func(ref string) *fstest.MapFile {
				return &fstest.MapFile{Data: []byte("resources:\n- https://git.example/acme/web?ref=" + ref + "\n")}
			}
			files := fstest.MapFS{"dev/kustomization.yaml": base(c.dev), "prod/kustomization.yaml": base(c.prod)}
			p := &pipeline.Pipeline{}
			p.Spec.Carry = []pipeline.Carry{{KustomizeRefs: []string{"https://git.example/**"}}}
			got := MovingRefs(p, components, func(string) fs.FS { return files })
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].File != "dev/kustomization.yaml" || got[0].Message != c.want) {
				t.Errorf("it says %+v, not %q", got, c.want)
			}
		})
	}
}
