package github

import (
	"context"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// Merge merges one head, or has it join the merge queue where GitHub refuses to merge past one.
// GitHub's refusals are 405 and 409 with words. The pull request's state afterwards decides their
// meaning, so that a merge whose answer was lost is recognised.
func (d *Driver) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	ctx, owner, name := inRepo(ctx, r)
	op := "merge " + r.Number(m.Number)
	if m.Head == "" {
		return "", &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "no head to merge was given"}
	}
	result, _, err := d.api.PullRequests.Merge(ctx, owner, name, m.Number, m.Message, &gh.PullRequestOptions{
		CommitTitle: m.Title, SHA: m.Head, MergeMethod: m.Method,
	})
	if err == nil {
		return result.GetSHA(), nil
	}
	if rest.StatusOf(err) != http.StatusMethodNotAllowed && rest.StatusOf(err) != http.StatusConflict {
		return "", wrapError(op, err)
	}
	if rest.Says(err, queueOnly) {
		return d.joinQueue(ctx, op, r, m)
	}
	refusal := rest.ErrorOf(wrapError(op, err))
	pr, lookErr := d.PullRequest(ctx, r, m.Number)
	if lookErr != nil {
		return "", lookErr
	}
	switch {
	case pr.State == forge.Merged && pr.Head == m.Head:
		return pr.MergeCommit, nil
	case pr.Head != m.Head:
		refusal.Kind, refusal.Message = forge.ErrConflict, "its head is "+pr.Head+", not "+m.Head
	case pr.State == forge.Closed:
		refusal.Kind, refusal.Message = forge.ErrNotMergeable, "it is closed"
	case refusal.Status == http.StatusConflict || rest.Says(err, "was modified") || rest.Says(err, "already in progress"):
		// "Base branch was modified. Review and try the merge again": another merge came just
		// before. "Head branch was modified" with the same head: a push is on its way. "Merge
		// already in progress": an attempt whose answer was lost, or another account's, hasn't come
		// to its end.
		refusal.Kind = forge.ErrConflict
	case pr.Mergeable == forge.MergeableUnknown:
		// "Pull Request is not mergeable" is also what it says while it computes.
		refusal.Kind = forge.ErrConflict
	default:
		refusal.Kind = forge.ErrNotMergeable
		if pr.MergeReason != "" {
			refusal.Message += " (" + pr.MergeReason + ")"
		}
	}
	return "", refusal
}

// UpdateBranch merges the base into a pull request's branch. GitHub has that done in the
// background, and answers 202.
func (d *Driver) UpdateBranch(ctx context.Context, r forge.Repo, n int, head string) error {
	ctx, owner, name := inRepo(ctx, r)
	op := "bring " + r.Number(n) + " up to date"
	_, _, err := d.api.PullRequests.UpdateBranch(ctx, owner, name, n, &gh.PullRequestBranchUpdateOptions{ExpectedHeadSHA: &head})
	switch {
	case err == nil, isAccepted(err):
		return nil
	case rest.StatusOf(err) == http.StatusUnprocessableEntity:
		// "expected head sha didn't match current head ref.", "merge conflict between base and head"
		err = wrapError(op, err)
		rest.ErrorOf(err).Kind = forge.ErrConflict
		return err
	}
	return wrapError(op, err)
}
