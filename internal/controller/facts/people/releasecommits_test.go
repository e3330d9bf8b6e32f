package people

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
)

// has sets what an environment has, by the commit of dev that has the same.
func (d *devReleases) has(o *testGatherer, c *branch.ComponentBasis, env, commit string) {
	d.t.Helper()
	rel, err := o.Releases.ReadRelease(d.Repository, commit, c.Pipeline, c.Unit.Envs["dev"])
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
	got, err := o.Authors.ReleaseCommits(t.Context(), c, "prod", id)
	if err != nil {
		t.Fatal(err)
	}
	want := []ReleaseCommits{{Source: "dev", Base: start, Head: head,
		Commits: []ReleaseCommit{{Subject: "On a branch", Authors: []string{"a"}}, {Subject: "Other", Authors: []string{"a", "@dave", "T"}}, {Subject: "Two (#7)", Authors: []string{"a"}}},
		Skipped: []promotion.Release{{Name: "2"}, {Name: "x 2, y 1"}}}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ReleaseCommit{}, "SHA", "At"), cmpopts.IgnoreFields(promotion.Release{}, "ID")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.Env("prod").Release = promotion.Sure(promotion.Release{ID: strings.Repeat("0", 64)})
	if got, err = o.Authors.ReleaseCommits(t.Context(), c, "prod", id); err != nil || len(got) != 1 || got[0].Base != "" || got[0].Skipped != nil || cmp.Diff([]string{"Merge it", "Other"}, subjects(got)) != "" {
		t.Errorf("where prod has what dev never had: %+v, %v", got, err)
	}
	if got, err = o.Authors.ReleaseCommits(t.Context(), c, "prod", strings.Repeat("0", 64)); err != nil || got != nil {
		t.Errorf("of a release that nothing brought: %+v, %v", got, err)
	}
}

// TestReleaseCommitOfGates finds the commit by which gates judge a release, and says why there is none.
func TestReleaseCommitOfGates(t *testing.T) {
	d := newDevReleases(t)
	o := newTestGatherer(d.testRepo)
	d.release("ann", "Start", "1", "1")
	d.release("bob", "Two\n\nTicket: 7", "2", "1")
	c, id := d.evaluate(o)
	commit, err := o.Authors.FindReleaseCommit(t.Context(), c, "prod", id)
	if err != nil || commit.SHA != d.last || !strings.HasPrefix(commit.Message, "Two") || commit.Time.Location() != time.UTC {
		t.Errorf("it is %+v, %v", commit, err)
	}
	if commit, err = o.Authors.FindReleaseCommit(t.Context(), c, "prod", strings.Repeat("0", 64)); commit != nil || err == nil || err.Error() != "no history tells which commit brought the release" {
		t.Errorf("of a release that nothing brought: %+v, %v", commit, err)
	}
	for _, more := range []int{0, 1} {
		d.release("ann", strings.Repeat("x", maxCommitMessage-len("\n")+more), fmt.Sprint(3+more), "1")
		c, id = d.evaluate(o)
		commit, err = o.Authors.FindReleaseCommit(t.Context(), c, "prod", id)
		if tooLong := err != nil && strings.Contains(err.Error(), "is longer than 64 KiB"); tooLong != (more > 0 || commit == nil) {
			t.Errorf("a message of %d more: %v", more, err)
		}
	}
}

// TestCommitAuthors names everybody once, and not too many.
func TestCommitAuthors(t *testing.T) {
	message := "Subject\n"
	for i := range maxCommitAuthors + 2 {
		message += fmt.Sprintf("\nCo-authored-by: author %d <a%d@example.com>", i/2, i)
	}
	got := newReleaseCommit("abc", strings.Repeat("x", 2*maxSubjectBytes), "  author 0 ", message, time.Time{})
	if want := []string{"author 0", "author 1", "author 2", "author 3"}; !slices.Equal(got.Authors, want) || len(got.Subject) > maxSubjectBytes+len("…") {
		t.Errorf("it is %+v", got)
	}
	for i := range maxCommitAuthors {
		message += fmt.Sprintf("\nCo-authored-by: more %d <m%d@example.com>", i, i)
	}
	if got = newReleaseCommit("abc", "x", "", message, time.Time{}); len(got.Authors) != maxCommitAuthors || slices.Contains(got.Authors, "") {
		t.Errorf("they are %q", got.Authors)
	}
}
