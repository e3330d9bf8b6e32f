package gitlab

import (
	"context"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// acceptRequest merges a merge request now.
type acceptRequest struct {
	SHA           string `json:"sha"`
	Squash        bool   `json:"squash"`
	MergeMessage  string `json:"merge_commit_message,omitempty"`
	SquashMessage string `json:"squash_commit_message,omitempty"`
}

// Merge merges one head, or has it join the merge train of its target branch. How is the project's
// choice, so a method that isn't the project's is refused first. GitLab's refusals don't say which
// of its checks failed. The merge request's state decides their meaning, so that a merge whose
// answer was lost is recognised.
func (d *Driver) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	op := "merge " + number(r, m.Number)
	if m.Head == "" {
		return "", &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "no head to merge was given"}
	}
	p, err := d.readProject(ctx, r)
	if err != nil {
		return "", err
	}
	var refusal *forge.Error
	if why, what := refuseMethod(p, m.Method); why != "" {
		refusal = &forge.Error{Op: op, Kind: forge.ErrNotMergeable, Message: why, Hint: what}
	} else {
		land := d.acceptNow
		if p.QueueMerges {
			land = d.joinQueue
		}
		commit, err := land(ctx, op, r, m)
		if err == nil {
			return commit, nil
		}
		if refusal = rest.ErrorOf(err); !mayBeMerged(refusal.Status) && !(p.QueueMerges && refusal.Status == refusedByQueue) {
			return "", err
		}
	}
	pr, err := d.PullRequest(ctx, r, m.Number)
	if err != nil {
		return "", err
	}
	switch {
	case pr.State == forge.Merged && pr.Head == m.Head:
		return pr.MergeCommit, nil
	case pr.Queue == forge.Queued && pr.Head == m.Head && p.QueueMerges:
		return "", nil // it has joined before
	}
	explainRefusal(refusal, pr, m.Head)
	return "", refusal
}

// acceptNow merges a head, and gives the commit that landed.
func (d *Driver) acceptNow(ctx context.Context, op string, r forge.Repo, m forge.MergeRequest) (string, error) {
	var merged mergeRequest
	_, err := d.callMergeRequest(ctx, op, r, m.Number, http.MethodPut, newAcceptRequest(m), &merged, "merge")
	switch {
	case err != nil:
		return "", err
	case merged.State != "merged":
		return "", &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "GitLab is merging it: it is " + merged.State + " still"}
	}
	return merged.landed(), nil
}

func newAcceptRequest(m forge.MergeRequest) acceptRequest {
	a := acceptRequest{SHA: m.Head, Squash: m.Method == "squash"}
	if m.Title != "" {
		a.MergeMessage = m.Title
		if m.Message != "" {
			a.MergeMessage += "\n\n" + m.Message
		}
		a.SquashMessage = a.MergeMessage
	}
	return a
}

// refuseMethod says why a project doesn't merge by a method, and what to do; empty: it does.
func refuseMethod(p project, method string) (why, what string) {
	switch {
	case method == "rebase" && p.MergeMethod != "ff":
		return "the project makes merge commits, so nothing is merged by rebase",
			"set merge.method to merge or squash, or the project's merge method to fast-forward"
	case method == "merge" && p.MergeMethod == "ff":
		return "the project makes no merge commits", "set merge.method to squash or rebase, or the project's merge method to merge commit"
	case method == "squash" && p.SquashOption == "never":
		return "the project doesn't allow squashing", "set merge.method to another, or allow squashing in the project's settings"
	case method != "squash" && p.SquashOption == "always":
		return "the project always squashes", "set merge.method to squash, or don't require squashing in the project's settings"
	}
	return "", ""
}

// mayBeMerged says that a refusal leaves open what became of the merge request. 406 is what
// old versions say for 422.
func mayBeMerged(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict,
		http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// explainRefusal gives a refused merge its kind, by what the merge request is now.
func explainRefusal(refusal *forge.Error, pr *forge.PullRequest, head string) {
	why := func(kind error, message string) { refusal.Kind, refusal.Message, refusal.Hint = kind, message, "" }
	switch {
	case pr.Head != head:
		why(forge.ErrConflict, "its head is "+pr.Head+", not "+head)
	case pr.State == forge.Merged:
	case pr.State == forge.Closed:
		why(forge.ErrNotMergeable, "it is closed")
	case refusal.Status == 0: // by its method
	case refusal.Status == http.StatusUnauthorized: // the token is good: it has just read
		why(forge.ErrForbidden, "Liftlock's account may not merge into "+pr.Base)
		refusal.Hint = "make it a Maintainer, or one of those allowed to merge in the settings of the protected branch"
	case pr.Mergeable == forge.MergeableDirty, pr.Mergeable == forge.MergeableBlocked, pr.Mergeable == forge.MergeableBehind:
		why(forge.ErrNotMergeable, pr.MergeReason)
	case refusal.Status == refusedByQueue && pr.Mergeable == forge.MergeableYes:
		why(forge.ErrNotMergeable, "GitLab doesn't let it onto the merge train: "+refusal.Message)
		refusal.Hint = "look at the project's merge trains, or switch them off in its settings"
	default:
		// Still being worked out, or the base moved while it was merged.
		refusal.Kind = forge.ErrConflict
	}
}

// UpdateBranch is ErrUnsupported: GitLab rebases, and approvals that it removes with a push it removes with that too.
func (d *Driver) UpdateBranch(_ context.Context, r forge.Repo, n int, _ string) error {
	return &forge.Error{Op: "bring " + number(r, n) + " up to date", Kind: forge.ErrUnsupported, Message: "it is composed anew instead"}
}
