package gitlab

import (
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/forgetest"
)

func TestRules(t *testing.T) {
	const branch, protection = "GET repository/branches/main", "GET protected_branches/main"
	level := func(words string) response {
		return okResponse(jsonObject{"name": "main", "code_owner_approval_required": true, "merge_access_levels": []jsonObject{{"access_level": 40, "access_level_description": words}}})
	}
	for _, c := range []struct {
		name    string
		project jsonObject
		answers map[string]response
		want    forge.BranchRules
		kind    error
	}{
		{"no protection", jsonObject{"merge_method": "merge", "squash_option": "never", "approvals_before_merge": 1}, map[string]response{branch: okResponse(jsonObject{"name": "main"})},
			forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", Approvals: 1, Methods: []string{"merge"}}}}, nil},
		{"fast-forward, a train, and Maintainers merge", jsonObject{"merge_method": "ff", "merge_trains_enabled": true, "only_allow_merge_if_pipeline_succeeds": true, "only_allow_merge_if_all_discussions_are_resolved": true},
			map[string]response{branch: okResponse(jsonObject{"protected": true}), protection: level("Maintainers")},
			forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", AnyChecks: true, Threads: true, UpToDate: true, LinearHistory: true, Methods: []string{"squash", "rebase"}, Queue: &forge.QueueRule{}},
				{Name: `protected branch "main"`, CodeOwners: true, Mergers: []string{"Maintainers"}}}}, nil},
		{"Developers merge too", jsonObject{"merge_method": "merge", "squash_option": "always"}, map[string]response{branch: okResponse(jsonObject{"protected": true}), protection: level("Developers + Maintainers")},
			forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", Methods: []string{"squash"}}, {Name: `protected branch "main"`, CodeOwners: true}}}, nil},
		{"who isn't a Maintainer", jsonObject{"merge_method": "rebase_merge"}, map[string]response{branch: okResponse(jsonObject{"protected": true}), protection: errorResponse(403, "403 Forbidden")},
			forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", UpToDate: true, Methods: []string{"merge", "squash"}}, {Name: `protected branch "main"`, Mergers: []string{"Maintainers, or whom the protection names"}}},
				Hidden: "what else the protection of the branch main demands: only Maintainers see it, and only where it names the branch itself"}, nil},
		{"approvals that go with a push, and external checks", jsonObject{"merge_method": "ff", "approvals_before_merge": 2, "only_allow_merge_if_all_status_checks_passed": true},
			map[string]response{branch: okResponse(jsonObject{"name": "main"}), "GET approvals": okResponse(jsonObject{"reset_approvals_on_push": true})},
			forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", Approvals: 2, DropsApprovals: true, UpToDate: true, LinearHistory: true, Methods: []string{"squash", "rebase"}, Others: []string{externalChecks}}}}, nil},
		{"whose approval settings can't be read", jsonObject{"approvals_before_merge": 0}, map[string]response{branch: okResponse(jsonObject{"name": "main"}), "GET approvals": errorResponse(502, "")}, forge.BranchRules{}, forge.ErrRetryable},
		{"the branch can't be read", jsonObject{}, map[string]response{branch: errorResponse(502, "")}, forge.BranchRules{}, forge.ErrRetryable},
		{"the protection can't be read", jsonObject{}, map[string]response{branch: okResponse(jsonObject{"protected": true}), protection: errorResponse(502, "")}, forge.BranchRules{}, forge.ErrRetryable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			c.project["id"] = 7
			r.on("GET projects/7", okResponse(c.project))
			for call, answer := range c.answers {
				r.on(call, answer)
			}
			got, err := d.Rules(ctx, testRepoName, "main")
			forgetest.CompareRules(t, got, err, &c.want, c.kind)
		})
	}
}
