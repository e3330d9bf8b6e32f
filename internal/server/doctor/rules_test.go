package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestRules judges rules that not every forge can be given in a test.
func TestRules(t *testing.T) {
	all := []string{"merge", "squash", "rebase"}
	status := forge.RuleSet{Name: "branch protection", Checks: []string{"liftlock"}}
	with := func(change func(s *forge.RuleSet)) *forge.BranchRules {
		s := status
		change(&s)
		return &forge.BranchRules{Sets: []forge.RuleSet{s}}
	}
	for _, c := range []struct {
		name      string
		forgeType string
		rules     *forge.BranchRules
		methods   []string
		method    string
		may       forge.Permission
		want      []Code
	}{
		{"as it is wanted", "github", with(func(*forge.RuleSet) {}), all, "merge", forge.PermissionWrite, nil},
		{"linear history", "github", with(func(s *forge.RuleSet) { s.LinearHistory = true }), all, "merge", forge.PermissionWrite, []Code{"linear-history"}},
		{"linear history, squashed", "github", with(func(s *forge.RuleSet) { s.LinearHistory = true }), all, "squash", forge.PermissionWrite, nil},
		{"a ruleset's methods", "github", with(func(s *forge.RuleSet) { s.Methods = []string{"squash"} }), all, "merge", forge.PermissionWrite, []Code{"method-refused"}},
		{"fast-forward", "gitlab", with(func(s *forge.RuleSet) { s.LinearHistory, s.Methods = true, []string{"rebase"} }), []string{"rebase"}, "merge", forge.PermissionAdmin, []Code{"method-refused"}},
		{"approvals that go whenever another one lands", "gitlab", with(func(s *forge.RuleSet) { s.Approvals, s.DropsApprovals, s.UpToDate = 1, true, true }), all, "merge", forge.PermissionWrite, []Code{"approvals-dropped"}},
		{"approvals that stay", "gitlab", with(func(s *forge.RuleSet) { s.Approvals, s.DropsApprovals = 1, true }), all, "merge", forge.PermissionWrite, nil},
		{"approvals that GitHub keeps when it updates a branch", "github", with(func(s *forge.RuleSet) { s.Approvals, s.DropsApprovals, s.UpToDate = 1, true, true }), all, "merge", forge.PermissionWrite, nil},
		{"some may merge", "github", with(func(s *forge.RuleSet) { s.Mergers = []string{"ada"} }), all, "merge", forge.PermissionWrite, []Code{"merge-forbidden"}},
		{"we may merge", "github", with(func(s *forge.RuleSet) { s.Mergers = []string{"ada", "Bot"} }), all, "merge", forge.PermissionWrite, nil},
		{"a team may merge", "github", with(func(s *forge.RuleSet) { s.Mergers = []string{"team sre"} }), all, "merge", forge.PermissionWrite, nil},
		{"Maintainers merge", "gitlab", with(func(s *forge.RuleSet) { s.Mergers = []string{"Maintainers"} }), all, "merge", forge.PermissionWrite, []Code{"merge-forbidden"}},
		{"a Maintainer merges", "gitlab", with(func(s *forge.RuleSet) { s.Mergers = []string{"Maintainers"} }), all, "merge", forge.PermissionAdmin, nil},
		{"a whitelist of Gitea's", "gitea", with(func(s *forge.RuleSet) { s.Mergers = []string{"ada"} }), all, "merge", forge.PermissionAdmin, []Code{"merge-forbidden"}},
		{"signed commits", "github", with(func(s *forge.RuleSet) { s.Signatures = true }), all, "merge", forge.PermissionAdmin, []Code{"signatures-required"}},
		{"signed merges", "gitea", with(func(s *forge.RuleSet) { s.SignedMerges = true }), all, "merge", forge.PermissionAdmin, []Code{"merges-signed"}},
		{"bypassed", "github", with(func(s *forge.RuleSet) { s.Bypassed = true }), all, "merge", forge.PermissionAdmin, []Code{"rules-bypassed", "status-optional"}},
		{"bypassed in part", "github", with(func(s *forge.RuleSet) { s.MaybeBypassed = true }), all, "merge", forge.PermissionWrite, []Code{"rules-bypass-unsure"}},
		{"bypassed beside others", "github", &forge.BranchRules{Sets: []forge.RuleSet{status, {Name: "signed", Bypassed: true, Signatures: true, LinearHistory: true}}}, all, "merge", forge.PermissionWrite, []Code{"rules-bypassed"}},
		{"no rules", "gitea", &forge.BranchRules{}, all, "merge", forge.PermissionAdmin, []Code{"status-optional"}},
		{"no rules that are seen", "github", &forge.BranchRules{Hidden: "the rest"}, all, "merge", forge.PermissionWrite, []Code{"rules-hidden"}},
		{"pipelines must succeed", "gitlab", &forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", AnyChecks: true}}}, all, "merge", forge.PermissionAdmin, nil},
	} {
		p := &pipeline.Pipeline{Spec: pipeline.Spec{Merge: pipeline.Merge{Method: c.method}, Environments: []pipeline.Environment{{Name: "dev"}, {Name: "qa", After: []string{"dev"}, Merge: pipeline.Auto}}}}
		j := rulesJudge{forgeType: c.forgeType, settings: &forge.RepositorySettings{Methods: c.methods, Permission: c.may}, rules: c.rules, me: "bot", unsigned: "ours aren't"}
		var found findings
		j.judgePipeline(&found, "rules of main", "main", p)
		j.judgeBranch(&found, "rules of main", "main")
		if got := (&Report{Findings: found}).Codes(); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRulesOfAnUnheardQueue: the status is required of a merge queue only where the server hears of
// its groups.
func TestRulesOfAnUnheardQueue(t *testing.T) {
	queue := forge.RuleSet{Name: "queue", Queue: &forge.QueueRule{}}
	required := forge.RuleSet{Name: "checks", Checks: []string{"liftlock"}}
	bypassed := required
	bypassed.Bypassed = true
	for _, c := range []struct {
		name         string
		sets         []forge.RuleSet
		noDeliveries bool
		want         []Code
		cure         string // how the first one's begins
	}{
		{"heard", []forge.RuleSet{queue, required}, false, nil, ""},
		{"unheard", []forge.RuleSet{queue, required}, true, []Code{"queue-unheard"}, "give the server an externalURL"},
		{"unheard by others than us", []forge.RuleSet{queue, bypassed}, true, []Code{"queue-unheard", "rules-bypassed"}, "take its account off"},
		{"not required", []forge.RuleSet{queue}, true, []Code{"status-optional"}, "give the server an externalURL"},
		{"not required, heard", []forge.RuleSet{queue}, false, []Code{"status-optional"}, "require the commit status"},
		{"no queue", []forge.RuleSet{required}, true, nil, ""},
	} {
		j := rulesJudge{forgeType: "github", settings: &forge.RepositorySettings{}, rules: &forge.BranchRules{Sets: c.sets}, noDeliveries: c.noDeliveries}
		var found findings
		j.judgeBranch(&found, "rules of main", "main")
		if got := (&Report{Findings: found}).Codes(); !slices.Equal(got, c.want) || len(found) > 0 && !strings.HasPrefix(found[0].Cure, c.cure) {
			t.Errorf("%s: found %+v, want %q", c.name, found, c.want)
		}
	}
}
