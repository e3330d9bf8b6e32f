package doctor

import (
	"slices"
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
		{"some may merge", "github", with(func(s *forge.RuleSet) { s.Mergers = []string{"ada"} }), all, "merge", forge.PermissionWrite, []Code{"merge-forbidden"}},
		{"we may merge", "github", with(func(s *forge.RuleSet) { s.Mergers = []string{"ada", "Bot"} }), all, "merge", forge.PermissionWrite, nil},
		{"a team may merge", "github", with(func(s *forge.RuleSet) { s.Mergers = []string{"team sre"} }), all, "merge", forge.PermissionWrite, nil},
		{"Maintainers merge", "gitlab", with(func(s *forge.RuleSet) { s.Mergers = []string{"Maintainers"} }), all, "merge", forge.PermissionWrite, []Code{"merge-forbidden"}},
		{"a Maintainer merges", "gitlab", with(func(s *forge.RuleSet) { s.Mergers = []string{"Maintainers"} }), all, "merge", forge.PermissionAdmin, nil},
		{"signed commits", "gitea", with(func(s *forge.RuleSet) { s.Signatures = true }), all, "merge", forge.PermissionAdmin, []Code{"signatures-required"}},
		{"bypassed", "github", with(func(s *forge.RuleSet) { s.Bypassed = true }), all, "merge", forge.PermissionAdmin, []Code{"rules-bypassed", "status-optional"}},
		{"bypassed beside others", "github", &forge.BranchRules{Sets: []forge.RuleSet{status, {Name: "signed", Bypassed: true, Signatures: true, LinearHistory: true}}}, all, "merge", forge.PermissionWrite, []Code{"rules-bypassed"}},
		{"no rules", "gitea", &forge.BranchRules{}, all, "merge", forge.PermissionAdmin, []Code{"status-optional"}},
		{"no rules that are seen", "github", &forge.BranchRules{Hidden: "the rest"}, all, "merge", forge.PermissionWrite, []Code{"rules-hidden"}},
		{"pipelines must succeed", "gitlab", &forge.BranchRules{Sets: []forge.RuleSet{{Name: "the project's settings", AnyChecks: true}}}, all, "merge", forge.PermissionAdmin, nil},
	} {
		p := &pipeline.Pipeline{Spec: pipeline.Spec{Merge: pipeline.Merge{Method: c.method}, Environments: []pipeline.Environment{{Name: "dev"}, {Name: "qa", After: []string{"dev"}, Merge: pipeline.Auto}}}}
		j := rulesJudge{forgeType: c.forgeType, settings: &forge.RepositorySettings{Methods: c.methods, Permission: c.may}, rules: c.rules, me: "bot"}
		var found findings
		j.judgePipeline(&found, "rules of main", "main", p)
		j.judgeBranch(&found, "rules of main", "main")
		if got := (&Report{Findings: found}).Codes(); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}
