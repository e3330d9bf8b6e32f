package forgetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

func testNotFound(t *testing.T, s *fixture) {
	_, err := s.Forge.PullRequest(s.ctx, s.Repo, 9999)
	wantKind(t, "a pull request", err, forge.ErrNotFound)
	_, err = s.Forge.Reviews(s.ctx, s.Repo, 9999)
	wantKind(t, "its reviews", err, forge.ErrNotFound)
	_, err = s.Forge.Comments(s.ctx, s.Repo, 9999, time.Time{})
	wantKind(t, "its comments", err, forge.ErrNotFound)
	_, err = s.Forge.CreateComment(s.ctx, s.Repo, 9999, "hello")
	wantKind(t, "a comment on it", err, forge.ErrNotFound)
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: 9999, Head: s.branchTip(t, "main"), Method: "merge"})
	wantKind(t, "merging it", err, forge.ErrNotFound)
	title := "T"
	wantKind(t, "updating it", s.Forge.UpdatePullRequest(s.ctx, s.Repo, 9999, forge.PullRequestUpdate{Title: &title}), forge.ErrNotFound)

	nowhere := forge.Repo{Owner: s.Repo.Owner, Name: "no-such-repository"}
	_, err = s.Forge.PullRequests(s.ctx, nowhere, time.Time{})
	wantKind(t, "a repository's pull requests", err, forge.ErrNotFound)
	wantKind(t, "a repository's branch", s.Forge.DeleteBranch(s.ctx, nowhere, branchA), forge.ErrNotFound)
	if !s.App {
		_, err = s.Forge.EnsureHook(s.ctx, nowhere, forge.Hook{URL: "http://127.0.0.1:9/", Secret: "s"})
		wantKind(t, "a repository's hook", err, forge.ErrNotFound)
	}
	for _, r := range []forge.Repo{{Owner: "..", Name: ".."}, {Owner: s.Repo.Owner, Name: ""}, {Owner: "a/b", Name: "c?d#e"}} {
		if _, err := s.Forge.PullRequest(s.ctx, r, 1); err == nil {
			t.Errorf("%q was found", r)
		}
	}
}

func testCanceled(t *testing.T, s *fixture) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.Forge.PullRequests(ctx, s.Repo, time.Time{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// The next call isn't touched by it.
	if _, err := s.Forge.PullRequests(s.ctx, s.Repo, time.Time{}); err != nil {
		t.Error(err)
	}
}

func testBadCredentials(t *testing.T, w Backend) {
	f, p := w.WithBadToken(t), w.NewRepository(t)
	_, err := f.Me(context.Background())
	wantKind(t, "who we are", err, forge.ErrUnauthorized)
	_, err = f.PullRequest(context.Background(), p.Repo, 1)
	wantKind(t, "a pull request", err, forge.ErrUnauthorized)
	var e *forge.Error
	if errors.As(err, &e) && e.Hint == "" {
		t.Error("there is no hint what to do")
	}
}
