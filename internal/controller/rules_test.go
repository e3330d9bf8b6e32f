package controller

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/policies"
)

// TestAGateNamesTheForgesRules holds that a promotion which rules of the forge's own keep from
// being merged says which, by name, and what is missing; that they are read once an hour, and
// anew when the forge says that they changed.
func TestAGateNamesTheForgesRules(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Approvals: 2, Contexts: []string{"ci/build"}, Ruleset: "main"}))
	p := w.openOne("web", "2.0.0", "web")
	says := func(want string) {
		t.Helper()
		w.must(w.run(wake.ForPull(w.repo.ID, p.Number))) // as an event of it does
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		w.gateWaits("web", "mergeable", policies.Wait, want)
	}
	const blocks = `the forge blocks the merge by ruleset "main": `
	says(blocks + `needs 2 approvals; check "ci/build" is missing`)
	w.must(w.emulated.Approve(repoName, p.Number, "ada"))
	w.must(w.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/build", State: "pending"}))
	says(blocks + `needs 2 approvals and has 1; check "ci/build" is pending`)
	w.must(w.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/build", State: "failure"}))
	w.must(w.emulated.RequestChanges(repoName, p.Number, "linus", "no"))
	says(blocks + `linus asked for changes; check "ci/build" ended with failure`)

	reads := w.emulated.Calls()["GET /repos/{owner}/{repo}/rules/branches/{branch}"]
	if reads != 1 {
		t.Errorf("the rules were read %d times within an hour", reads)
	}
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Contexts: []string{"ci/test"}}))
	w.must(w.run(wake.ForRules(w.repo.ID)))
	says(`the forge blocks the merge by branch protection: check "ci/test" is missing`)
	w.must(w.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/test", State: "success"}))
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
}

// TestRulesThatCannotBeRead holds that a promotion says so, and waits.
func TestRulesThatCannotBeRead(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Approvals: 1}))
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "GET", Path: "/rules/branches/", Status: 403, Body: `{"message":"no rules for you"}`}))
	w.openOne("web", "2.0.0", "web")
	w.settle("web", "it waits", func() bool {
		g := w.gateResult("web", "mergeable")
		return g.Outcome == policies.Wait && strings.Contains(g.Reason, "its rules can't be read") && strings.Contains(g.Reason, "no rules for you")
	})
}
