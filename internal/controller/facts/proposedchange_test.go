package facts

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// TestReadChange says what there is to judge about a person's pull request. The key is the same as
// long as the answer is, and it says which of its files its branch has changed, too.
func TestReadChange(t *testing.T) {
	c := newBranchRepo(t, nil)
	o := newTestGatherer(c)
	start := c.at
	head := c.commit("feature", map[string]string{"a": "1\n", "apps/web/x": "1\n"})
	rules := c.commit("rules", map[string]string{".liftlock.yaml": branchPipeline + "# x\n"})
	c.at = "" // with nothing before it
	stranger := c.commit("stranger", map[string]string{"a": "2\n"})
	c.at = start

	var snapshot *branch.Snapshot
	read := func(base, branch, head string) *effects.ProposedChange {
		t.Helper()
		snapshot = takeSnapshot(t, o, c)
		pr := &forge.PullRequest{Number: 7, Base: base, Head: head, Ref: "refs/heads/" + branch}
		into, ok := snapshot.BaseOf(pr)
		if !ok {
			t.Fatalf("%s is no branch that is judged", base)
		}
		change, err := o.Changes.ReadChange(t.Context(), snapshot, into, pr)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	first := read("main", "feature", head)
	if first.Base != start || first.ChangesRules || len(first.AlsoChanged) > 0 || !slices.Equal(first.Changed, []string{"a", "apps/web/x"}) {
		t.Errorf("at first: %+v", first)
	}
	if change := read("env/qa", "feature", head); change.Key == first.Key {
		t.Error("into another branch it has the same key")
	}
	if change := read("main", "rules", rules); !change.ChangesRules {
		t.Error("it doesn't change the rules")
	}
	if change := read("env/qa", "rules", rules); change.ChangesRules {
		t.Error("pipeline files on an environment's own branch are no rules")
	}
	c.commit("main", map[string]string{"b": "1\n"})
	if change := read("main", "feature", head); change.Key != first.Key || change.Base != start {
		t.Errorf("after a commit of another file: %+v", change)
	}
	c.commit("main", map[string]string{"a": "3\n"})
	if change := read("main", "feature", head); change.Key == first.Key || !slices.Equal(change.AlsoChanged, []string{"a"}) {
		t.Errorf("after a commit of the same file: %+v", change)
	}
	change := read("main", "stranger", stranger)
	if change.Base != "" || len(change.AlsoChanged) > 0 {
		t.Errorf("with nothing in common: %+v", change)
	}
	if report, err := o.Changes.EvaluateChange(t.Context(), snapshot, change, render.TextLimit{}); err != nil || report.Failed != "it has no commit in common with main" || report.Report != nil {
		t.Errorf("with nothing in common: %+v, %v", report, err)
	}
	if _, ok := snapshot.BaseOf(&forge.PullRequest{Base: "feature"}); ok {
		t.Error("a branch that nobody judges is a base")
	}
}
