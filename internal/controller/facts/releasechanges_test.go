package facts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion"
)

// TestChangedMembers finds the components that a commit moved from Git alone, and from
// memory the second time.
func TestChangedMembers(t *testing.T) {
	c := newBranchRepo(t, nil)
	o := newTestGatherer(c)
	s := takeSnapshot(t, o, c)
	p := s.Pipelines[0]
	image := func(tag string) string {
		return "resources: [../../base]\nimages: [{name: x, newTag: '" + tag + "'}]\n"
	}
	base := s.BranchTips["env/qa"]
	c.checkoutBranch("env/qa")
	one := c.commit("env/qa", map[string]string{"apps/web/kustomization.yaml": image("2")})
	both := c.commit("env/qa", map[string]string{"apps/web/kustomization.yaml": image("3"), "apps/api/kustomization.yaml": image("3")})
	other := c.commit("env/qa", map[string]string{"readme": "x", "apps/web/kustomization.yaml": image("3") + "# x\n"})
	broken := c.commit("env/qa", map[string]string{"apps/web/kustomization.yaml": "images: [\n"})
	gitGatherer := o.History
	for name, step := range map[string]struct {
		from, to string
		revert   bool
		want     string
	}{
		"one":                     {base, one, false, "web"},
		"both":                    {one, both, false, "api web"},
		"both, taken back":        {one, both, true, "api web"},
		"no field":                {both, other, false, ""},
		"what can't be read":      {other, broken, false, ""},
		"what can't be read back": {other, broken, true, "web"},
		"nothing":                 {both, both, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before []promotion.Member
			for range 2 {
				got, err := gitGatherer.ChangedMembers(t.Context(), c.Repository, p, "qa", step.from, step.to, step.revert)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, m := range got {
					names = append(names, m.Component)
					commit := step.to
					if step.revert {
						commit = step.from
					}
					if id := o.Releases.ReleaseIDAt(c.Repository, commit, p, p.Units[m.Component].Envs["qa"]); id != m.Release {
						t.Errorf("%s has %s, not %s", m.Component, id, m.Release)
					}
				}
				if text := strings.Join(names, " "); text != step.want {
					t.Errorf("got %q, want %q", text, step.want)
				}
				if before != nil && !cmp.Equal(before, got) {
					t.Errorf("from memory it is %v", got)
				}
				before = got
			}
		})
	}
	if s := gitGatherer.ReleaseChanges.Stats(); s.Misses != 5 || s.Hits == 0 {
		t.Errorf("%d were worked out, %d remembered", s.Misses, s.Hits)
	}
}
