package facts

import (
	"cmp"
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// ShownState is what was last written on a pull request, so that it is written again
// only when it changes.
type ShownState struct {
	Page    string `json:"page,omitempty"`    // digest of title and body
	Comment string `json:"comment,omitempty"` // digest
	ID      int64  `json:"id,omitempty"`      // of the comment
	Status  string `json:"status,omitempty"`  // head, state and description
	// Bare says that there is no comment of ours yet for sure.
	Bare bool `json:"bare,omitempty"`
	// Pace is when the comment was edited last.
	Pace CommentPace `json:"pace,omitzero"`
}

// CommentPace is when a comment was edited last. Its zero value is one that was never
// edited, as far as is known.
type CommentPace struct {
	At      time.Time    `json:"at,omitzero"`
	Notices []PaceNotice `json:"notices,omitempty"` // what was told close to At
}

// PaceNotice is what a comment told at once: a digest of it, and when.
type PaceNotice struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

// Shown is what was last written on a pull request, ours or not; number 0: on the tracked branch.
var Shown = record.Declare[record.Pull, ShownState](record.Declaration{
	Name: "shown", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "Digests of what Liftlock last wrote on the pull request. Without it everything is written again.",
})

// ForgetUserPull forgets what was read of a person's own pull request and written on it, as that is
// closed. Where it is opened again our comment is found on it.
func ForgetUserPull(ctx context.Context, tx *store.Tx, repo string, number int) error {
	about := record.OfPull(repo, number)
	return cmp.Or(Shown.Drop(ctx, tx, about), commentsRead.Drop(ctx, tx, about), UnreadComments.Drop(ctx, tx, about))
}
