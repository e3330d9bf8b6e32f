package github

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// TestMergeQueueAnswers holds what GitHub's answers about its merge queue mean; what it does is the
// contract's matter.
func TestMergeQueueAnswers(t *testing.T) {
	place := func(head, state, entry string) response {
		pr := jsonObject{"id": "PR_1", "headRefOid": head, "state": state, "mergeQueueEntry": nil}
		if entry != "" {
			pr["mergeQueueEntry"] = jsonObject{"state": entry}
		}
		return okResponse(jsonObject{"data": jsonObject{"repository": jsonObject{"pullRequest": pr}}})
	}
	refusal := func(kind, words string) response {
		return okResponse(jsonObject{"data": nil, "errors": []jsonObject{{"type": kind, "message": words}}})
	}
	done := okResponse(jsonObject{"data": jsonObject{}})
	pastQueue := messageResponse(405, "Repository rule violations found Changes must be made through the merge queue")
	for _, c := range []struct {
		name    string
		leave   bool
		answers []response // of GraphQL
		kind    error      // nil: success
		words   string
	}{
		{"joins", false, []response{place(head1, "OPEN", ""), done}, nil, ""},
		{"is in it", false, []response{place(head1, "OPEN", "AWAITING_CHECKS")}, nil, ""},
		{"its head moved", false, []response{place(head2, "OPEN", "")}, forge.ErrConflict, "its head is " + head2},
		{"it is closed", false, []response{place(head1, "CLOSED", "")}, forge.ErrNotMergeable, "it is closed"},
		{"the head moves in this moment", false, []response{place(head1, "OPEN", ""), refusal("UNPROCESSABLE", "Head sha was modified"), place(head2, "OPEN", "")}, forge.ErrConflict, "its head is " + head2},
		{"somebody else has it join", false, []response{place(head1, "OPEN", ""), refusal("UNPROCESSABLE", "already in the queue"), place(head1, "OPEN", "QUEUED")}, nil, ""},
		{"refused", false, []response{place(head1, "OPEN", ""), refusal("UNPROCESSABLE", "a check is missing"), place(head1, "OPEN", "")}, forge.ErrNotMergeable, "a check is missing"},
		{"forbidden", false, []response{place(head1, "OPEN", ""), refusal("FORBIDDEN", "no")}, forge.ErrForbidden, "write contents and pull requests"},
		{"a server without queues", false, []response{refusal("", "Field 'mergeQueueEntry' doesn't exist on type 'PullRequest'")}, forge.ErrUnsupported, ""},
		{"no such pull request", false, []response{refusal("NOT_FOUND", "Could not resolve")}, forge.ErrNotFound, ""},
		{"limited", false, []response{refusal("RATE_LIMITED", "slow down")}, forge.ErrRateLimited, ""},
		{"a gateway in between", false, []response{{status: 502}}, forge.ErrRetryable, ""},

		{"leaves", true, []response{place(head1, "OPEN", "QUEUED"), done}, nil, ""},
		{"isn't in it", true, []response{place(head1, "OPEN", "")}, nil, ""},
		{"leaves with what landed", true, []response{place(head1, "MERGED", "")}, forge.ErrConflict, "merged"},
		{"is being merged", true, []response{place(head1, "OPEN", "LOCKED"), refusal("UNPROCESSABLE", "locked"), place(head1, "OPEN", "LOCKED")}, forge.ErrConflict, "being merged"},
		{"doesn't leave", true, []response{place(head1, "OPEN", "QUEUED"), refusal("UNPROCESSABLE", "later"), place(head1, "OPEN", "QUEUED")}, forge.ErrRetryable, "in the queue still: later"},
		{"may not leave", true, []response{place(head1, "OPEN", "QUEUED"), refusal("FORBIDDEN", "no")}, forge.ErrForbidden, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("PUT repos/acme/fleet/pulls/7/merge", pastQueue)
			r.on("POST /api/graphql", c.answers...)
			var err error
			if c.leave {
				err = d.LeaveQueue(ctx, testRepoName, 7)
			} else {
				var landed string
				if landed, err = d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: "merge"}); landed != "" {
					t.Errorf("it landed as %s", landed)
				}
			}
			if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v, want %v with %q", err, c.kind, c.words)
			}
		})
	}
}
