package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/policies"
)

// TestApprovalsByTeamAndOwners holds whose approval merges a promotion where a gate names teams or
// owners. An approver who leaves the team before the merge loses it. A review that asks for changes
// keeps it waiting until it is dismissed.
func TestApprovalsByTeamAndOwners(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]string{"a team": "teams: [acme/sre]", "owners": "codeowners: true"} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", "    - {name: qa, after: [dev], merge: auto, gates: [{approvals: {count: 1, from: {"+from+"}}}], verify: "+quickly+"}\n", "web")
			w.must(w.forge.SetTeam("acme/sre", "", "ada"))
			_, err := w.forge.CommitAs(repoName, "linus", "main", "Owners", map[string]string{".github/CODEOWNERS": "apps/*/qa/ @acme/sre\n"})
			w.must(err)
			w.runRepository()
			p := w.openOne("web", "2.0.0", "web")
			stays := func(why string) {
				t.Helper()
				w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
				looks := 0
				w.settle("web", "it was looked at", func() bool { looks++; return looks > 2 })
				if w.pulls()[0].Merged {
					t.Fatal("it is merged")
				}
				s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
				w.must(err)
				_, d, err := w.opts.Gatherer.Evaluate(t.Context(), s, w.unit("web"), true)
				w.must(err)
				gates := d.Components[0].Env("qa").Gates
				if !slices.ContainsFunc(gates, func(g policies.Result) bool { return strings.Contains(g.Reason, why) }) {
					t.Errorf("it waits for %+v, want %q", gates, why)
				}
			}
			w.must(w.forge.Approve(repoName, p.Number, "grace"))
			stays("approvals by people who aren't asked don't count (grace)")
			w.must(w.forge.RequestChanges(repoName, p.Number, "ada", "not on a Friday"))
			stays("changes are asked for by ada")
			w.must(w.forge.SetTeam("acme/sre", "", "linus"))
			w.must(w.forge.Approve(repoName, p.Number, "ada"))
			stays("approvals by people who aren't asked don't count (ada, grace)")
			w.must(w.forge.SetTeam("acme/sre", "", "ada"))
			w.clock.Step(6 * time.Minute) // it is remembered for five who isn't in it
			w.settle("web", "it is merged", func() bool { w.must(w.run(wake.ForPull(w.repo.ID, p.Number))); return w.pulls()[0].Merged })
		})
	}
}
