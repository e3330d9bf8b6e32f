package forgetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

func testRules(t *testing.T, s *fixture) {
	read := func() *forge.BranchRules {
		t.Helper()
		rules, err := s.Forge.Rules(s.ctx, s.Repo, "main")
		if err != nil {
			t.Fatal(err)
		}
		if rules.Queue() != nil || rules.IsBypassed() {
			t.Errorf("the rules have a queue, or are bypassed: %+v", rules)
		}
		return rules
	}
	needsReviews := func(r *forge.RuleSet) bool { return r.Approvals > 0 }
	if rules := read(); rules.Any(needsReviews) || rules.Any(func(r *forge.RuleSet) bool {
		return r.AnyChecks || len(r.Checks) > 0 ||
			r.Signatures
	}) {
		t.Errorf("a branch without rules has %+v", rules)
	} else if !rules.Any(func(r *forge.RuleSet) bool { return slices.Contains(r.Methods, "merge") }) {
		t.Errorf("nothing says that it is merged by merge commits: %+v", rules)
	}
	if s.Protect == nil {
		return
	}
	s.Protect(t, 2, "ci/build")
	rules := read()
	if !rules.Any(func(r *forge.RuleSet) bool { return r.Approvals == 2 }) {
		t.Errorf("nothing demands two approvals: %+v", rules)
	}
	if !rules.Any(func(r *forge.RuleSet) bool { return r.AnyChecks || slices.Contains(r.Checks, "ci/build") }) {
		t.Errorf("nothing demands the check: %+v", rules)
	}
	for _, r := range rules.Sets {
		if strings.TrimSpace(r.Name) == "" {
			t.Errorf("a set has no name: %+v", r)
		}
	}
	// A writer sees as many of them, or which parts are hidden.
	seen, err := s.Reviewer.Rules(s.ctx, s.Repo, "main")
	if err != nil || !seen.Any(needsReviews) && seen.Hidden == "" {
		t.Errorf("who may write sees %+v, %v", seen, err)
	}
	if rules, err := s.Forge.Rules(s.ctx, s.Repo, "no/such branch"); err == nil && rules.Any(needsReviews) {
		t.Errorf("a branch that isn't there has %+v", rules)
	}
}

func testUpdateBranch(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	s.awaitPull(t, pr.Number, "mergeable", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
	moved := s.pushCommit(t, "main", "", "moved.txt", "moved\n")
	err := s.Forge.UpdateBranch(s.ctx, s.Repo, pr.Number, moved)
	if errors.Is(err, forge.ErrUnsupported) {
		if tip := s.branchTip(t, branchA); tip != pr.Head {
			t.Errorf("the branch moved to %s", tip)
		}
		return
	}
	wantKind(t, "a head that isn't the pull request's", err, forge.ErrConflict)
	if s.Protect != nil {
		s.Protect(t, 1, "ci/build")
	}
	s.Review(t, pr.Number, Approve, pr.Head)
	if err := s.Forge.UpdateBranch(s.ctx, s.Repo, pr.Number, pr.Head); err != nil {
		t.Fatal(err)
	}
	p := s.awaitPull(t, pr.Number, "the new head", func(p *forge.PullRequest) bool { return p.Head != pr.Head })
	if c := s.Git.ReadCommit(t, p.Head); c.Parents != 2 || !slices.Contains(c.Files, "moved.txt") {
		t.Errorf("the new head is %+v", c)
	}
	reviews, err := s.Forge.Reviews(s.ctx, s.Repo, pr.Number)
	if err != nil || !slices.ContainsFunc(reviews, func(v forge.Review) bool { return v.Approved }) {
		t.Errorf("the approval is gone: %+v, %v", reviews, err)
	}
}
