package gitea

import (
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/forgetest"
)

func TestRules(t *testing.T) {
	const branch, protection = "GET repos/acme/fleet/branches/main", "GET repos/acme/fleet/branch_protections/release%2F%2A"
	protected := okResponse(jsonObject{"name": "main", "protected": true, "required_approvals": 2, "enable_status_check": true, "status_check_contexts": []string{"ci/build"},
		"effective_branch_protection_name": "release/*"})
	settings := forge.RuleSet{Name: "the repository's settings", Methods: []string{"merge", "rebase"}}
	for _, c := range []struct {
		name    string
		answers map[string]response
		want    forge.BranchRules
		kind    error
	}{
		{"no such branch", nil, forge.BranchRules{Sets: []forge.RuleSet{settings}}, nil},
		{"no protection", map[string]response{branch: okResponse(jsonObject{"name": "main"})}, forge.BranchRules{Sets: []forge.RuleSet{settings}}, nil},
		{"who isn't an administrator", map[string]response{branch: protected}, forge.BranchRules{
			Sets:   []forge.RuleSet{settings, {Name: "branch protection", Approvals: 2, Checks: []string{"ci/build"}, Mergers: []string{"whom the protection names"}}},
			Hidden: "what else the branch protection demands, which only administrators of the repository see"}, nil},
		{"all", map[string]response{branch: protected, protection: okResponse(jsonObject{"rule_name": "release/*", "block_on_outdated_branch": true, "require_signed_commits": true,
			"dismiss_stale_approvals": true, "enable_merge_whitelist": true, "merge_whitelist_usernames": []string{"ada"}, "merge_whitelist_teams": []string{"sre"},
			"block_on_official_review_requests": true, "protected_file_patterns": "*.lock"})}, forge.BranchRules{
			Sets: []forge.RuleSet{settings, {Name: `branch protection "release/*"`, Approvals: 2, Checks: []string{"ci/build"}, Mergers: []string{"ada", "team sre"},
				UpToDate: true, SignedMerges: true, DropsApprovals: true, Others: []string{"requested reviews are given", "files that it protects aren't changed"}}}}, nil},
		{"the branch can't be read", map[string]response{branch: errorResponse(502, "")}, forge.BranchRules{}, forge.ErrRetryable},
		{"the protection can't be read", map[string]response{branch: protected, protection: errorResponse(502, "")}, forge.BranchRules{}, forge.ErrRetryable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d, _ := newReplayServer(t)
			r.on("GET repos/acme/fleet", okResponse(jsonObject{"name": "fleet", "allow_merge_commits": true, "allow_rebase": true}))
			for call, answer := range c.answers {
				r.on(call, answer)
			}
			got, err := d.Rules(ctx, testRepoName, "main")
			forgetest.CompareRules(t, got, err, &c.want, c.kind)
		})
	}
}
