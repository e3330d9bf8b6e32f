package facts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/promotion"
)

// has sets what an environment has, by the commit of dev that has the same.
func (d *devReleases) has(o *Gatherer, c *ComponentEvaluation, env, commit string) {
	d.t.Helper()
	rel, err := o.readRelease(d.Repository, commit, c.Pipeline, c.Unit.Envs["dev"])
	if err != nil {
		d.t.Fatal(err)
	}
	c.Env(env).Release = promotion.Sure(promotion.Release{ID: rel.ID(), Name: rel.String()})
}

func subjects(made []ReleaseCommits) (out []string) {
	for _, m := range made {
		for _, ci := range m.Commits {
			out = append(out, ci.Subject)
		}
	}
	slices.Sort(out) // commits of one second have no order
	return out
}

// TestReleaseCommits finds the commits that changed carried fields since what an
// environment has, and the releases in between; or at least what brought its values.
func TestReleaseCommits(t *testing.T) {
	d := newDevReleases(t)
	o := newTestGatherer(d.testRepo)
	d.release("ann", "Start", "1", "1")
	start := d.last
	d.release("bob", "Two (#7)", "2", "1")
	d.release("carol", "Other\n\nCo-authored-by: @dave <dave@example.com>\nCo-authored-by: T <t@example.com>", "2", "2")
	d.commit("env/dev", map[string]string{"apps/web/deployment.yaml": "kind: Deployment\n"})
	before := d.at
	d.release("erin", "On a branch", "3", "2")
	branch := d.last
	d.at = before
	head := d.merge("env/dev", "Merge it", branch)
	d.commit("env/dev", map[string]string{"apps/web/deployment.yaml": "kind: Deployment # newer\n"})
	d.last = d.at
	c, id := d.evaluate(o)
	d.has(o, c, "prod", start)
	got, err := o.ReleaseCommits(t.Context(), c, "prod", id)
	if err != nil {
		t.Fatal(err)
	}
	want := []ReleaseCommits{{Source: "dev", Base: start, Head: head,
		Commits: []ReleaseCommit{{Subject: "On a branch", Authors: []string{"a"}}, {Subject: "Other", Authors: []string{"a", "@dave", "T"}}, {Subject: "Two (#7)", Authors: []string{"a"}}},
		Skipped: []promotion.Release{{Name: "2"}, {Name: "2, 1"}}}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ReleaseCommit{}, "SHA", "At"), cmpopts.IgnoreFields(promotion.Release{}, "ID")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.Env("prod").Release = promotion.Sure(promotion.Release{ID: strings.Repeat("0", 64)})
	if got, err = o.ReleaseCommits(t.Context(), c, "prod", id); err != nil || len(got) != 1 || got[0].Base != "" || got[0].Skipped != nil || cmp.Diff([]string{"Merge it", "Other"}, subjects(got)) != "" {
		t.Errorf("where prod has what dev never had: %+v, %v", got, err)
	}
	if got, err = o.ReleaseCommits(t.Context(), c, "prod", strings.Repeat("0", 64)); err != nil || got != nil {
		t.Errorf("of a release that nothing brought: %+v, %v", got, err)
	}
}
