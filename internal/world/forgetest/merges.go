package forgetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// testMerge merges by a method and looks at what landed. The base has moved since
// the branch was made, so that no method can do without a new commit.
func testMerge(t *testing.T, s *fixture, method string) {
	pr := s.openPull(t, branchA)
	s.pushCommit(t, "main", "", "moved.txt", "moved\n")
	if s.ForwardOnly && method == "rebase" {
		s.awaitPull(t, pr.Number, "behind", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableBehind })
		moved := s.pushCommit(t, branchA, "main", "liftlock-shop-qa-web.txt", "from "+branchA+"\n")
		pr = s.awaitPull(t, pr.Number, "the new head", func(p *forge.PullRequest) bool { return p.Head == moved })
	}
	landed := s.mergePull(t, pr, method)
	if tip := s.branchTip(t, "main"); landed == "" || landed != tip {
		t.Fatalf("Merge gives %q, main is at %q", landed, tip)
	}
	p := s.readPull(t, pr.Number)
	isMerged := p.State == forge.Merged && p.MergedBy == s.ownLogin(t) && !p.MergedAt.IsZero() && !p.ClosedAt.IsZero()
	if !isMerged || p.MergeCommit != landed || p.Head != pr.Head {
		t.Errorf("merged: %+v", p)
	}
	c := s.Git.ReadCommit(t, landed)
	parents := 1
	if method == "merge" || method == "squash" && s.SquashMerges {
		parents = 2
	}
	if c.Parents != parents {
		t.Errorf("the commit has %d parents, want %d", c.Parents, parents)
	}
	for _, f := range []string{"liftlock-shop-qa-web.txt", "moved.txt"} {
		if !slices.Contains(c.Files, f) {
			t.Errorf("the tree has no %s: %s", f, c.Files)
		}
	}
	if method != "rebase" && (!strings.HasPrefix(c.Message, "Merge title") || !strings.Contains(c.Message, "\nLiftlock-Kind: promotion")) {
		t.Errorf("the message is %q", c.Message)
	}
	// Again: success, and nothing more lands.
	again, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: method})
	if err != nil || again != landed || s.branchTip(t, "main") != landed {
		t.Errorf("the second time: %s, %v; main at %s", again, err, s.branchTip(t, "main"))
	}
	// And once its branch is gone.
	if err := s.Forge.DeleteBranch(s.ctx, s.Repo, branchA); err != nil {
		t.Fatal(err)
	}
	again, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: method})
	if err != nil || again != landed {
		t.Errorf("without its branch: %s, %v", again, err)
	}
	if p := s.readPull(t, pr.Number); p.Branch != branchA || p.Head != pr.Head || p.Fork {
		t.Errorf("without its branch: %+v", p)
	}
}

func testMergeStale(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	before := s.branchTip(t, "main")
	moved := s.pushCommit(t, branchA, "", "more.txt", "more\n")
	s.awaitPull(t, pr.Number, "the new head", func(p *forge.PullRequest) bool {
		return p.Head == moved && p.Mergeable == forge.MergeableYes
	})
	_, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	wantKind(t, "a stale head", err, forge.ErrConflict)
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Method: "merge"})
	wantKind(t, "no head", err, forge.ErrInvalid)
	if tip := s.branchTip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
	if p := s.readPull(t, pr.Number); p.State != forge.Open {
		t.Errorf("it is %s", p.State)
	}
}

func testMergeClosed(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	before := s.branchTip(t, "main")
	closed := forge.Closed
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	wantKind(t, "merging what is closed", err, forge.ErrNotMergeable)
	if tip := s.branchTip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
}

func testConflict(t *testing.T, s *fixture) {
	s.pushCommit(t, branchA, "main", "same.txt", "ours\n")
	pr, _, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitPull(t, pr.Number, "mergeable", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
	before := s.pushCommit(t, "main", "", "same.txt", "theirs\n")
	p := s.awaitPull(t, pr.Number, "the conflict", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableDirty })
	if p.MergeReason == "" {
		t.Error("there is no reason")
	}
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	if !errors.Is(err, forge.ErrNotMergeable) && !errors.Is(err, forge.ErrConflict) {
		t.Errorf("merging a conflict: %v", err)
	}
	if tip := s.branchTip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
	// Composed again on the new base, it can be merged.
	s.pushCommit(t, branchA, "main", "same.txt", "both\n")
	s.awaitPull(t, pr.Number, "mergeable again", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
}

func testDeleteBranch(t *testing.T, s *fixture) {
	s.pushCommit(t, branchA, "main", "a.txt", "a\n")
	for range 2 { // one that is gone is success
		if err := s.Forge.DeleteBranch(s.ctx, s.Repo, branchA); err != nil {
			t.Fatal(err)
		}
	}
	if tip := s.branchTip(t, branchA); tip != "" {
		t.Errorf("it is still at %s", tip)
	}
	if s.branchTip(t, "main") == "" {
		t.Error("main is gone")
	}
}
