package gitlab

import (
	"context"
	"fmt"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// queueRequest has a head join a merge train, which takes no message for what lands.
type queueRequest struct {
	SHA    string `json:"sha"`
	Squash bool   `json:"squash"`
}

// joinQueue has a head join the merge train of its target branch; nothing has landed then. A
// plain merge would go past the train.
func (d *Driver) joinQueue(ctx context.Context, op string, r forge.Repo, m forge.MergeRequest) (string, error) {
	_, err := d.callProject(ctx, op, r, http.MethodPost, queueRequest{SHA: m.Head, Squash: m.Method == "squash"}, nil, "merge_trains",
		"merge_requests", fmt.Sprint(m.Number))
	return "", err
}

// LeaveQueue takes a merge request off its merge train, and cancels what merges it by itself
// otherwise. GitLab has one call for both; that answers with success also where nothing was
// canceled, so what it did is read afterwards.
func (d *Driver) LeaveQueue(ctx context.Context, r forge.Repo, n int) error {
	op := "take " + number(r, n) + " off its merge train"
	_, err := d.callMergeRequest(ctx, op, r, n, http.MethodPost, nil, nil, "cancel_merge_when_pipeline_succeeds")
	var refusal *forge.Error
	if err != nil {
		if refusal = rest.ErrorOf(err); !mayBeMerged(refusal.Status) {
			return err
		}
	}
	pr, err := d.PullRequest(ctx, r, n)
	switch {
	case err != nil:
		return err
	case pr.State == forge.Merged, pr.MergeReason == mergeLocked:
		return &forge.Error{Op: op, Kind: forge.ErrConflict, Message: "it is merged, or being merged"}
	case pr.State == forge.Closed, pr.Queue == forge.NotQueued:
		return nil
	case refusal != nil && refusal.Status == http.StatusUnauthorized: // the token is good: it has just read
		return &forge.Error{Op: op, Kind: forge.ErrForbidden, Status: refusal.Status, Message: "Liftlock's account may not take it off",
			Hint: "make it a Maintainer, or one of those allowed to merge in the settings of the protected branch"}
	}
	return &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "it is in the queue still"}
}

// refusedByQueue is what a merge train says to what can't join it.
const refusedByQueue = http.StatusBadRequest
