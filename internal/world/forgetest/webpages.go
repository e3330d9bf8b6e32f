package forgetest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// TestWebPages holds that a driver takes a web page, with which a proxy before its forge answers,
// neither for success nor for an absent object, whatever its status. The error says what came. open
// makes a driver for the forge at an address.
func TestWebPages(t *testing.T, open func(t *testing.T, url string) forge.Forge) {
	for _, c := range []struct {
		status int
		kind   error
	}{
		{http.StatusOK, forge.ErrRetryable}, {http.StatusCreated, forge.ErrRetryable}, {http.StatusNotFound, forge.ErrRetryable},
		{http.StatusConflict, forge.ErrRetryable}, {http.StatusUnprocessableEntity, forge.ErrRetryable},
		{http.StatusGone, forge.ErrRetryable},
		{http.StatusUnauthorized, forge.ErrUnauthorized}, {http.StatusForbidden, forge.ErrForbidden},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			var calls atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				w.WriteHeader(c.status)
				fmt.Fprint(w, "<!DOCTYPE html>\n<html><head><title>Sign in &middot; SSO</title></head><body>who are you?</body></html>")
			}))
			defer server.Close()
			f := open(t, server.URL)
			for name, call := range callsOfAForge(t) {
				before := calls.Load()
				err := call(f)
				if calls.Load() == before {
					// GitLab's comments say themselves when they were edited.
					isInComment := name == "Authorship" && err == nil
					if !isInComment && !errors.Is(err, forge.ErrUnsupported) {
						t.Errorf("%s asked for nothing, and gives %v", name, err)
					}
					continue
				}
				if !errors.Is(err, c.kind) {
					t.Errorf("%s gives %v, want %v", name, err, c.kind)
				} else if !strings.Contains(err.Error(), `the web page "Sign in · SSO" instead of the forge's answer`) ||
					!strings.Contains(err.Error(), "forge's url") {
					t.Errorf("%s says %q, and not what came and what to do", name, err)
				}
			}
		})
	}
}

// callsOfAForge are all calls that ask or change something, by name.
func callsOfAForge(t *testing.T) map[string]func(forge.Forge) error {
	ctx, r, title := t.Context(), forge.Repo{Owner: "acme", Name: "fleet"}, "qa: web"
	const branch, commit = "liftlock/shop/qa/web", "0123456789012345678901234567890123456789"
	team := forge.Team{Organisation: "acme", Name: "sre"}
	return map[string]func(forge.Forge) error{
		"Me":                   func(f forge.Forge) error { _, err := f.Me(ctx); return err },
		"PullRequests":         func(f forge.Forge) error { _, err := f.PullRequests(ctx, r, time.Time{}); return err },
		"PullRequest":          func(f forge.Forge) error { _, err := f.PullRequest(ctx, r, 7); return err },
		"PullRequestsByBranch": func(f forge.Forge) error { _, err := f.PullRequestsByBranch(ctx, r, branch); return err },
		"CreatePullRequest": func(f forge.Forge) error {
			_, _, err := f.CreatePullRequest(ctx, r, forge.NewPullRequest{Title: title, Branch: branch, Base: "main"})
			return err
		},
		"UpdatePullRequest": func(f forge.Forge) error {
			return f.UpdatePullRequest(ctx, r, 7, forge.PullRequestUpdate{Title: &title})
		},
		"Merge": func(f forge.Forge) error {
			_, err := f.Merge(ctx, r, forge.MergeRequest{Number: 7, Head: commit, Method: "merge"})
			return err
		},
		"UpdateBranch": func(f forge.Forge) error { return f.UpdateBranch(ctx, r, 7, commit) },
		"LeaveQueue":   func(f forge.Forge) error { return f.LeaveQueue(ctx, r, 7) },
		"DeleteBranch": func(f forge.Forge) error { return f.DeleteBranch(ctx, r, branch) },
		"Reviews":      func(f forge.Forge) error { _, err := f.Reviews(ctx, r, 7); return err },
		"RequestReviewers": func(f forge.Forge) error {
			_, err := f.RequestReviewers(ctx, r, 7, forge.Reviewers{Users: []string{"ada"}})
			return err
		},
		"Permission":         func(f forge.Forge) error { _, err := f.Permission(ctx, r, "ada"); return err },
		"IsTeamMember":       func(f forge.Forge) error { _, err := f.IsTeamMember(ctx, team, "ada"); return err },
		"TeamNumber":         func(f forge.Forge) error { _, err := f.TeamNumber(ctx, team); return err },
		"MergedPullRequests": func(f forge.Forge) error { _, err := f.MergedPullRequests(ctx, r, commit); return err },
		"PullRequestAuthors": func(f forge.Forge) error {
			_, err := f.PullRequestAuthors(ctx, r, &forge.PullRequest{Number: 7})
			return err
		},
		"AddLabels":     func(f forge.Forge) error { return f.AddLabels(ctx, r, 7, "liftlock") },
		"RemoveLabel":   func(f forge.Forge) error { return f.RemoveLabel(ctx, r, 7, "liftlock") },
		"Comments":      func(f forge.Forge) error { _, err := f.Comments(ctx, r, 7, time.Time{}); return err },
		"CreateComment": func(f forge.Forge) error { _, err := f.CreateComment(ctx, r, 7, "text"); return err },
		"UpdateComment": func(f forge.Forge) error { return f.UpdateComment(ctx, r, 7, 9, "text") },
		"React":         func(f forge.Forge) error { return f.React(ctx, r, 7, 9, "+1") },
		"HasReacted":    func(f forge.Forge) error { _, err := f.HasReacted(ctx, r, 7, 9); return err },
		"Authorship": func(f forge.Forge) error {
			_, _, err := f.Authorship(ctx, r, 7, &forge.Comment{ID: 9, NodeID: "IC_9"})
			return err
		},
		"SetStatus": func(f forge.Forge) error {
			return f.SetStatus(ctx, r, commit, forge.Status{Context: "liftlock", State: forge.StatusPending})
		},
		"Statuses": func(f forge.Forge) error { _, err := f.Statuses(ctx, r, commit); return err },
		"Checks":   func(f forge.Forge) error { _, err := f.Checks(ctx, r, commit); return err },
		"EnsureHook": func(f forge.Forge) error {
			_, err := f.EnsureHook(ctx, r, forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "s3cret"})
			return err
		},
	}
}
