package github

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// GitHub's merge queue is known to its GraphQL API alone. Not enablePullRequestAutoMerge: it needs
// a setting of the repository, and pins nothing.
const (
	queueQuery      = `query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){pullRequest(number:$number){id headRefOid state mergeQueueEntry{state} autoMergeRequest{enabledAt}}}}`
	enqueueMutation = `mutation($id:ID!,$head:GitObjectID!){enqueuePullRequest(input:{pullRequestId:$id,expectedHeadOid:$head}){clientMutationId}}`
	dequeueMutation = `mutation($id:ID!){dequeuePullRequest(input:{id:$id}){clientMutationId}}`
	disableMutation = `mutation($id:ID!){disablePullRequestAutoMerge(input:{pullRequestId:$id}){clientMutationId}}`
)

// queueOnly is in GitHub's refusal of a merge past the queue.
const queueOnly = "merge queue"

// queuePlace is how a pull request stands to the merge queue of its base.
type queuePlace struct {
	ID    string      `json:"id"` // of GraphQL
	Head  string      `json:"headRefOid"`
	State string      `json:"state"`           // OPEN, CLOSED or MERGED
	Entry *queueEntry `json:"mergeQueueEntry"` // nil: it isn't in the queue
	Auto  *autoMerge  `json:"autoMergeRequest"`
}

// autoMerge says that a person has GitHub merge a pull request once the repository's own rules
// allow it; nil: nobody has. With a merge queue, it joins that then.
type autoMerge struct {
	EnabledAt time.Time `json:"enabledAt"`
}

type queueEntry struct {
	State string `json:"state"` // QUEUED, AWAITING_CHECKS, MERGEABLE, UNMERGEABLE or LOCKED
}

// readQueue reads how a pull request stands to the merge queue.
func (d *Driver) readQueue(ctx context.Context, op string, r forge.Repo, n int) (*queuePlace, error) {
	var data struct {
		Repository struct {
			PullRequest *queuePlace `json:"pullRequest"`
		} `json:"repository"`
	}
	err := d.callGraphQL(ctx, op, r, queueQuery, map[string]any{"owner": r.Owner, "name": r.Name, "number": n}, &data)
	switch {
	case err != nil:
		return nil, err
	case data.Repository.PullRequest == nil:
		return nil, &forge.Error{Op: op, Kind: forge.ErrNotFound, Message: "there is no such pull request"}
	}
	return data.Repository.PullRequest, nil
}

// addQueue fills in whether an open pull request is in the merge queue, where there may be one.
func (d *Driver) addQueue(ctx context.Context, r forge.Repo, pr *forge.PullRequest) error {
	if pr.State != forge.Open || !forge.HasMergeQueue(ctx) {
		return nil
	}
	place, err := d.readQueue(ctx, "read whether "+r.Number(pr.Number)+" is in the merge queue", r, pr.Number)
	if err != nil {
		return err
	}
	if place.Entry != nil && place.Head == pr.Head {
		pr.Queue = forge.Queued
	}
	return nil
}

// joinQueue has a head join the merge queue of its base; nothing has landed then. GitHub's
// refusals have no codes: what they mean is decided by looking afterwards.
func (d *Driver) joinQueue(ctx context.Context, op string, r forge.Repo, m forge.MergeRequest) (string, error) {
	place, err := d.readQueue(ctx, op, r, m.Number)
	if err != nil {
		return "", err
	}
	var refused error
	if place.Entry == nil && place.State == "OPEN" && place.Head == m.Head {
		refused = d.callGraphQL(ctx, op, r, enqueueMutation, map[string]any{"id": place.ID, "head": m.Head}, nil)
		if refused != nil && !isRefusal(refused) {
			return "", refused
		}
		if refused == nil {
			return "", nil
		}
	}
	if place, err = d.readQueue(ctx, op, r, m.Number); err != nil {
		return "", err
	}
	switch {
	case place.Head != m.Head:
		return "", &forge.Error{Op: op, Kind: forge.ErrConflict, Message: "its head is " + place.Head + ", not " + m.Head}
	case place.Entry != nil:
		return "", nil
	case place.State == "MERGED":
		pr, err := d.PullRequest(ctx, r, m.Number)
		if err != nil {
			return "", err
		}
		return pr.MergeCommit, nil
	case place.State == "CLOSED":
		return "", &forge.Error{Op: op, Kind: forge.ErrNotMergeable, Message: "it is closed"}
	case refused == nil:
		return "", &forge.Error{Op: op, Kind: forge.ErrConflict, Message: "it left the merge queue in this moment"}
	}
	return "", &forge.Error{Op: op, Kind: forge.ErrNotMergeable, Message: "GitHub doesn't let it into the merge queue: " +
		rest.ErrorOf(refused).Message}
}

// isRefusal says that GraphQL understood a call and refuses what it is for.
func isRefusal(err error) bool {
	e, ok := err.(*forge.Error)
	return ok && e.Kind == forge.ErrInvalid && e.Status == 0
}

// LeaveQueue takes a pull request out of the merge queue, and off auto-merge.
func (d *Driver) LeaveQueue(ctx context.Context, r forge.Repo, n int) error {
	op := "take " + r.Number(n) + " out of the merge queue and off auto-merge"
	place, err := d.readQueue(ctx, op, r, n)
	if err != nil {
		return err
	}
	var refused error
	for _, step := range []struct {
		needed   bool
		mutation string
	}{{place.Auto != nil && place.State == "OPEN", disableMutation}, {place.Entry != nil, dequeueMutation}} {
		if !step.needed {
			continue
		}
		if err := d.callGraphQL(ctx, op, r, step.mutation, map[string]any{"id": place.ID}, nil); err != nil && !isRefusal(err) {
			return err
		} else if err != nil {
			refused = err
		}
	}
	if refused != nil {
		if place, err = d.readQueue(ctx, op, r, n); err != nil {
			return err
		}
	}
	switch {
	case place.State == "MERGED", refused != nil && place.Entry != nil && place.Entry.State == "LOCKED":
		return &forge.Error{Op: op, Kind: forge.ErrConflict, Message: "it is merged, or being merged"}
	case refused != nil && place.Entry != nil:
		return &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "it is in the queue still: " + rest.ErrorOf(refused).Message}
	case refused != nil && place.Auto != nil && place.State == "OPEN":
		return &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "its auto-merge is on still: " + rest.ErrorOf(refused).Message}
	}
	return nil
}
