package forgetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/forge"
)

// testEndedLease holds that nothing changes for a run whose lease is over, not even by work that
// outlasts the run's context. The same work is done for a run whose lease isn't over.
func testEndedLease(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	s.pushCommit(t, branchB, "main", "b.txt", "b\n")
	comment, err := s.Forge.CreateComment(s.ctx, s.Repo, pr.Number, "first")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lease := lock.NewLease(time.Minute, func() time.Time { return now }, now)
	now = now.Add(time.Minute)
	ended := context.WithoutCancel(lock.WithLease(s.ctx, lease))
	title := "another"
	for what, change := range map[string]func(ctx context.Context) error{
		"open": func(ctx context.Context) error {
			_, _, err := s.Forge.CreatePullRequest(ctx, s.Repo, forge.NewPullRequest{Title: "T", Body: "B", Branch: branchB, Base: "main"})
			return err
		},
		"update": func(ctx context.Context) error {
			return s.Forge.UpdatePullRequest(ctx, s.Repo, pr.Number, forge.PullRequestUpdate{Title: &title})
		},
		"comment": func(ctx context.Context) error {
			_, err := s.Forge.CreateComment(ctx, s.Repo, pr.Number, "second")
			return err
		},
		"edit a comment": func(ctx context.Context) error {
			return s.Forge.UpdateComment(ctx, s.Repo, pr.Number, comment.ID, "changed")
		},
		"react":  func(ctx context.Context) error { return s.Forge.React(ctx, s.Repo, pr.Number, comment.ID, "+1") },
		"label":  func(ctx context.Context) error { return s.Forge.AddLabels(ctx, s.Repo, pr.Number, "late") },
		"delete": func(ctx context.Context) error { return s.Forge.DeleteBranch(ctx, s.Repo, branchB) },
		"set a status": func(ctx context.Context) error {
			return s.Forge.SetStatus(ctx, s.Repo, pr.Head, forge.Status{Context: "late", State: forge.StatusSuccess})
		},
		"merge": func(ctx context.Context) error {
			_, err := s.Forge.Merge(ctx, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"})
			return err
		},
	} {
		if err := change(ended); !errors.Is(err, lock.ErrLeaseOver) {
			t.Errorf("%s: %v", what, err)
		}
	}
	after := s.readPull(t, pr.Number)
	comments, err := s.Forge.Comments(s.ctx, s.Repo, pr.Number, time.Time{})
	if err != nil || len(comments) != 1 || comments[0].Body != "first" {
		t.Errorf("the comments are %+v, %v", comments, err)
	}
	if after.State != forge.Open || after.Title != pr.Title || after.HasLabel("late") || s.branchTip(t, branchB) == "" {
		t.Errorf("it was changed to %+v", after)
	}
	if list, err := s.Forge.Statuses(s.ctx, s.Repo, pr.Head); err != nil || len(list) != 0 {
		t.Errorf("the statuses are %+v, %v", list, err)
	}
	lease.Renew(now)
	if landed, err := s.Forge.Merge(ended, s.Repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "merge"}); err != nil ||
		landed == "" {
		t.Errorf("after a renewal: %q, %v", landed, err)
	}
}
