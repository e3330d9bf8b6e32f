package github

import (
	"context"
	"errors"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// Merge merges one head. GitHub's refusals are 405 and 409 with words: what they
// mean is decided by looking at the pull request afterwards, so that a merge
// whose answer was lost is recognised.
func (d *Driver) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	owner, name := repoPath(r)
	op := "merge " + r.Number(m.Number)
	if m.Head == "" {
		return "", &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "no head to merge was given"}
	}
	result, resp, err := d.api.PullRequests.Merge(ctx, owner, name, m.Number, m.Message, &gh.PullRequestOptions{
		CommitTitle: m.Title, SHA: m.Head, MergeMethod: m.Method,
	})
	if err == nil {
		return result.GetSHA(), nil
	}
	if !hasStatus(err, http.StatusMethodNotAllowed) && !hasStatus(err, http.StatusConflict) {
		return "", wrapError(op, resp, err)
	}
	refusal := wrapError(op, resp, err).(*forge.Error)
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
	case refusal.Status == http.StatusConflict || messageContains(err, "was modified"):
		// "Base branch was modified. Review and try the merge again": another merge
		// came just before. "Head branch was modified" with the same head: a push is
		// on its way.
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
	owner, name := repoPath(r)
	op := "bring " + r.Number(n) + " up to date"
	_, resp, err := d.api.PullRequests.UpdateBranch(ctx, owner, name, n, &gh.PullRequestBranchUpdateOptions{ExpectedHeadSHA: &head})
	var accepted *gh.AcceptedError
	switch {
	case err == nil, errors.As(err, &accepted):
		return nil
	case hasStatus(err, http.StatusUnprocessableEntity):
		// "expected head sha didn't match current head ref.", "merge conflict between base and head"
		refusal := wrapError(op, resp, err).(*forge.Error)
		refusal.Kind = forge.ErrConflict
		return refusal
	}
	return wrapError(op, resp, err)
}

// LeaveQueue is ErrUnsupported. GitHub's merge queue is only left by GraphQL, and Liftlock doesn't join it.
func (d *Driver) LeaveQueue(_ context.Context, r forge.Repo, n int) error {
	return &forge.Error{Op: "take " + r.Number(n) + " out of the merge queue", Kind: forge.ErrUnsupported, Message: "Liftlock knows no merge queue of GitHub"}
}
