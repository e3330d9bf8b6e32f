package gitea

import (
	"context"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// Merge merges one head. Gitea answers a merge with nothing, so the commit that landed is read
// afterwards. Its refusals are 404, 405 and 409 with words. The pull request's state decides their
// meaning, so that a merge whose answer was lost is recognised.
func (d *Driver) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	op := "merge " + r.Number(m.Number)
	if m.Head == "" {
		return "", &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "no head to merge was given"}
	}
	_, _, err := d.newClient(ctx).MergePullRequest(r.Owner, r.Name, int64(m.Number), sdk.MergePullRequestOption{
		Style: sdk.MergeStyle(m.Method), Title: m.Title, Message: m.Message, HeadCommitId: m.Head,
	})
	merged, refusal := err == nil, rest.ErrorOf(rest.Wrap(op, err))
	switch {
	case merged, refusal.Status == http.StatusNotFound, refusal.Status == http.StatusMethodNotAllowed,
		refusal.Status == http.StatusConflict:
	default:
		return "", refusal
	}
	pr, err := d.PullRequest(ctx, r, m.Number)
	if err != nil {
		return "", err
	}
	switch {
	case pr.State == forge.Merged && pr.Head == m.Head:
		return pr.MergeCommit, nil
	case merged:
		return "", &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "Gitea merged it and doesn't show it yet"}
	case pr.Head != m.Head:
		refusal.Kind, refusal.Message = forge.ErrConflict, "its head is "+pr.Head+", not "+m.Head
	case pr.State == forge.Closed:
		refusal.Kind, refusal.Message = forge.ErrNotMergeable, "it is closed"
	case pr.Mergeable == forge.MergeableDirty, pr.Draft, strings.HasPrefix(refusal.Message, "PushRejected"):
		refusal.Kind = forge.ErrNotMergeable
	case refusal.Status == http.StatusMethodNotAllowed && refusal.Message != tryLater:
		refusal.Kind = forge.ErrNotMergeable // branch protection, a method that is off
	default:
		// Still being checked for conflicts; a conflict found while merging; the
		// base moved ("merge push out of date").
		refusal.Kind = forge.ErrConflict
	}
	return "", refusal
}

// tryLater is what Gitea says while it checks for conflicts, and when there are some.
const tryLater = "Please try again later"

// UpdateBranch is ErrUnsupported: Gitea doesn't pin the head, and keeps approvals of a head that changes the same.
func (d *Driver) UpdateBranch(_ context.Context, r forge.Repo, n int, _ string) error {
	return &forge.Error{Op: "bring " + r.Number(n) + " up to date", Kind: forge.ErrUnsupported, Message: "it is composed anew instead"}
}
