package forgetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/forge"
)

// testBulk holds what is read of several pull requests together against what is read of each.
func testBulk(t *testing.T, s *fixture) {
	bulk, is := s.Forge.(forge.BulkReader)
	if !is {
		t.Skip("they are read one by one")
	}
	approved, plain, closed := s.openPull(t, branchA), s.openPull(t, branchB), s.openPull(t, "topic")
	s.Review(t, approved.Number, Reject, approved.Head)
	s.Review(t, approved.Number, Approve, approved.Head)
	s.Review(t, plain.Number, CommentOnly, plain.Head)
	if _, err := s.Forge.CreateComment(s.ctx, s.Repo, plain.Number, "a word"); err != nil {
		t.Fatal(err)
	}
	if err := s.Forge.AddLabels(s.ctx, s.Repo, plain.Number, "liftlock", "env/qa"); err != nil {
		t.Fatal(err)
	}
	done := forge.Closed
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, closed.Number, forge.PullRequestUpdate{State: &done}); err != nil {
		t.Fatal(err)
	}
	merged := s.openPull(t, "merged")
	s.mergePull(t, merged, "merge")
	numbers := []int{approved.Number, plain.Number, closed.Number, merged.Number}
	if s.Fork != nil {
		numbers = append(numbers, s.Fork(t, "from-a-fork"))
	}
	var want []forge.ReviewedPullRequest
	for _, n := range numbers {
		one := forge.ReviewedPullRequest{PullRequest: *s.readPull(t, n)}
		var err error
		if one.Reviews, err = s.Forge.Reviews(s.ctx, s.Repo, n); err != nil {
			t.Fatal(err)
		}
		may := true
		for i := range one.Reviews {
			one.Reviews[i].MayWrite = &may
		}
		want = append(want, one)
	}
	got, err := bulk.ReviewedPullRequests(s.ctx, s.Repo, append(numbers, 9999)...)
	if err != nil {
		t.Fatal(err)
	}
	// The forge computes whether they merge in its own time.
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(forge.PullRequest{}, "Mergeable",
		"MergeReason")); diff != "" {
		t.Errorf("-one by one +together:\n%s", diff)
	}
	s.eventually(t, "it can be merged", func() bool {
		one, err := bulk.ReviewedPullRequests(s.ctx, s.Repo, approved.Number)
		return err == nil && len(one) == 1 && one[0].Mergeable == forge.MergeableYes
	})
	if all, err := bulk.ReviewedPullRequests(s.ctx, s.Repo); err != nil || len(all) != 0 {
		t.Errorf("none at all: %+v, %v", all, err)
	}
	if _, err := bulk.ReviewedPullRequests(s.ctx, s.Repo, make([]int, forge.MaxBulk+1)...); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("more than one call reads: %v", err)
	}
}
