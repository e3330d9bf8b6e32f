package forgetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// merge merges by a method and looks at what landed. The base has moved since
// the branch was made, so that no method can do without a new commit.
func merge(method string, parents int) func(t *testing.T, s *scene) {
	return func(t *testing.T, s *scene) {
		pr := s.open(t, branchA)
		s.push(t, "main", "", "moved.txt", "moved\n")
		landed := s.mergeIt(t, pr, method)
		if tip := s.tip(t, "main"); landed == "" || landed != tip {
			t.Fatalf("Merge gives %q, main is at %q", landed, tip)
		}
		p := s.read(t, pr.Number)
		if p.State != forge.Merged || p.MergeCommit != landed || p.MergedBy != s.me(t) || p.MergedAt.IsZero() || p.ClosedAt.IsZero() || p.Head != pr.Head {
			t.Errorf("merged: %+v", p)
		}
		s.git(t, s.dir, "fetch", "--quiet", "origin")
		if got := len(strings.Fields(s.git(t, s.dir, "rev-list", "--parents", "-n1", landed))) - 1; got != parents {
			t.Errorf("the commit has %d parents, want %d", got, parents)
		}
		files := s.git(t, s.dir, "ls-tree", "--name-only", landed)
		for _, f := range []string{"liftlock-shop-qa-web.txt", "moved.txt"} {
			if !strings.Contains(files, f) {
				t.Errorf("the tree has no %s: %s", f, files)
			}
		}
		if message := s.git(t, s.dir, "log", "-1", "--format=%B", landed); method != "rebase" &&
			(!strings.HasPrefix(message, "Merge title") || !strings.Contains(message, "\nLiftlock-Kind: promotion")) {
			t.Errorf("the message is %q", message)
		}
		// Again: success, and nothing more lands.
		again, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: method})
		if err != nil || again != landed || s.tip(t, "main") != landed {
			t.Errorf("the second time: %s, %v; main at %s", again, err, s.tip(t, "main"))
		}
		// And once its branch is gone.
		if err := s.Forge.DeleteBranch(s.ctx, s.Repo, branchA); err != nil {
			t.Fatal(err)
		}
		again, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: method})
		if err != nil || again != landed {
			t.Errorf("without its branch: %s, %v", again, err)
		}
		if p := s.read(t, pr.Number); p.Branch != branchA || p.Head != pr.Head || p.Fork {
			t.Errorf("without its branch: %+v", p)
		}
	}
}

func mergeStale(t *testing.T, s *scene) {
	pr := s.open(t, branchA)
	before := s.tip(t, "main")
	moved := s.push(t, branchA, "", "more.txt", "more\n")
	s.await(t, pr.Number, "the new head", func(p *forge.PullRequest) bool {
		return p.Head == moved && p.Mergeable == forge.MergeableYes
	})
	_, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	wantKind(t, "a stale head", err, forge.ErrConflict)
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Method: "merge"})
	wantKind(t, "no head", err, forge.ErrInvalid)
	if tip := s.tip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
	if p := s.read(t, pr.Number); p.State != forge.Open {
		t.Errorf("it is %s", p.State)
	}
}

func mergeClosed(t *testing.T, s *scene) {
	pr := s.open(t, branchA)
	before := s.tip(t, "main")
	closed := forge.Closed
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, forge.Change{State: &closed}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	wantKind(t, "merging what is closed", err, forge.ErrNotMergeable)
	if tip := s.tip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
}

func conflict(t *testing.T, s *scene) {
	s.push(t, branchA, "main", "same.txt", "ours\n")
	pr, _, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, pr.Number, "mergeable", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
	before := s.push(t, "main", "", "same.txt", "theirs\n")
	p := s.await(t, pr.Number, "the conflict", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableDirty })
	if p.MergeReason == "" {
		t.Error("there is no reason")
	}
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
	if !errors.Is(err, forge.ErrNotMergeable) && !errors.Is(err, forge.ErrConflict) {
		t.Errorf("merging a conflict: %v", err)
	}
	if tip := s.tip(t, "main"); tip != before {
		t.Errorf("main moved to %s", tip)
	}
	// Composed again on the new base, it can be merged.
	s.push(t, branchA, "main", "same.txt", "both\n")
	s.await(t, pr.Number, "mergeable again", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
}

func authors(t *testing.T, s *scene) {
	pr := s.open(t, branchA)
	landed := s.mergeIt(t, pr, "squash")
	got, err := s.Forge.CommitAuthors(s.ctx, s.Repo, landed)
	if err != nil || !strings.Contains(" "+strings.Join(got, " ")+" ", " "+s.me(t)+" ") {
		t.Errorf("authors of the commit that landed: %v, %v", got, err)
	}
	// A commit by an address that belongs to no account.
	pushed := s.push(t, "main", "", "direct.txt", "direct\n")
	if got, err := s.Forge.CommitAuthors(s.ctx, s.Repo, pushed); err != nil || len(got) != 0 {
		t.Errorf("authors of a commit by nobody known: %v, %v", got, err)
	}
	_, err = s.Forge.CommitAuthors(s.ctx, s.Repo, strings.Repeat("0123456789", 4))
	wantKind(t, "a commit that isn't there", err, forge.ErrGone)
}

func deleteBranch(t *testing.T, s *scene) {
	s.push(t, branchA, "main", "a.txt", "a\n")
	for range 2 { // one that is gone is success
		if err := s.Forge.DeleteBranch(s.ctx, s.Repo, branchA); err != nil {
			t.Fatal(err)
		}
	}
	if tip := s.tip(t, branchA); tip != "" {
		t.Errorf("it is still at %s", tip)
	}
	if s.tip(t, "main") == "" {
		t.Error("main is gone")
	}
}
