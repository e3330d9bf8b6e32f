package gitlab

import (
	"context"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge"
)

// acceptRequest merges a merge request now.
type acceptRequest struct {
	SHA           string `json:"sha"`
	Squash        bool   `json:"squash"`
	MergeMessage  string `json:"merge_commit_message,omitempty"`
	SquashMessage string `json:"squash_commit_message,omitempty"`
}

// Merge merges one head. How is the project's choice, so a method that isn't the project's is
// refused first. GitLab's refusals don't say which of its checks failed: what they mean is
// decided by looking at the merge request, so that a merge whose answer was lost is recognised.
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
		var merged mergeRequest
		_, err := d.callMergeRequest(ctx, op, r, m.Number, http.MethodPut, newAcceptRequest(m), &merged, "merge")
		switch {
		case err == nil && merged.State == "merged":
			return merged.landed(), nil
		case err == nil:
			return "", &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "GitLab is merging it: it is " + merged.State + " still"}
		}
		if refusal = asError(err); !mayBeMerged(refusal.Status) {
			return "", err
		}
	}
	pr, err := d.PullRequest(ctx, r, m.Number)
	if err != nil {
		return "", err
	}
	if pr.State == forge.Merged && pr.Head == m.Head {
		return pr.MergeCommit, nil
	}
	explainRefusal(refusal, pr, m.Head)
	return "", refusal
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
	case p.QueueMerges:
		return "the project merges by merge trains, which Liftlock doesn't join yet", "switch them off for the project, or merge it by hand"
	case method == "rebase" && p.MergeMethod != "ff":
		return "the project makes merge commits, so nothing is merged by rebase", "set merge.method to merge or squash, or the project's merge method to fast-forward"
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
	case http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict, http.StatusUnprocessableEntity:
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
	default:
		// Still being worked out, or the base moved while it was merged.
		refusal.Kind = forge.ErrConflict
	}
}
