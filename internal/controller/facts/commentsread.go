package facts

import (
	"context"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// CommentsRead is how far the comments of a pull request were read. Its zero value is not at
// all.
type CommentsRead struct {
	Until time.Time `json:"until,omitzero"` // when the newest of them was changed
	// Count is how many there were, with those of ours that were written since; nil: not known.
	// While the forge counts as many, and no event tells of one, there is none to read: a comment
	// that was edited gives no command.
	Count *int `json:"count,omitempty"`
	// UpdatedAt is the pull request's of then.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// UnreadComments says that an event told of a comment since the comments of a pull request were
// read, whatever their count: one may have gone and another come. It is the last such event.
var UnreadComments = record.Declare[record.Pull, string](record.Declaration{
	Name: "unread-comments", Owner: "server", Lifetime: record.UntilDropped,
	Doc: "The last event that told of a comment which wasn't read yet.",
})

// Unconfirmed are the comments whose commands that loosen something wait for their author to say
// that the comment is theirs; the others were taken. It is when each was written.
var Unconfirmed = record.Declare[record.InPull, time.Time](record.Declaration{
	Name: "unconfirmed-comment", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "When a comment was written that waits for its author's word, by the comment's number.",
})

// OfComment is a comment of a pull request, for Unconfirmed.
func OfComment(repo string, number int, comment int64) record.InPull {
	return record.InPull{Pull: record.OfPull(repo, number), Name: strconv.FormatInt(comment, 10)}
}

// ForgetUnreadComments notes that the comments of a pull request are read as of the event that was
// known before that; empty: none was. A comment of a later event stays to be read.
func ForgetUnreadComments(ctx context.Context, tx *store.Tx, repo string, number int, event string) error {
	now, unread, err := UnreadComments.Get(ctx, tx, record.OfPull(repo, number))
	if err != nil || !unread || now != event {
		return err
	}
	return UnreadComments.Drop(ctx, tx, record.OfPull(repo, number))
}

var commentsRead = record.Declare[record.Pull, CommentsRead](record.Declaration{
	Name: "comments-read", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "How far the comments of the pull request were read.",
})

// ReadCommentsRead reads it from the store; what can't be understood is nothing.
func ReadCommentsRead(ctx context.Context, s record.Reader, repo string, number int) (CommentsRead, error) {
	c, _, err := commentsRead.Get(ctx, s, record.OfPull(repo, number))
	return c, err
}

// Covers says that a pull request that was just read has no comment that wasn't read.
func (c *CommentsRead) Covers(pr *forge.PullRequest) bool {
	return c.Count != nil && pr.CommentCount != nil && *c.Count == *pr.CommentCount
}

// Store keeps it.
func (c *CommentsRead) Store(ctx context.Context, tx *store.Tx, repo string, number int) error {
	return commentsRead.Put(ctx, tx, record.OfPull(repo, number), *c)
}

// CountOwnComment counts a comment that we wrote on a pull request at a time of the forge's clock;
// with first there was none before. Where others wrote one meanwhile the forge counts more, and they
// are read. Where somebody has read the comments since ours was there, it may be counted already:
// then the count isn't known any more.
func CountOwnComment(ctx context.Context, tx *store.Tx, repo string, number int, at time.Time, first bool) error {
	c, err := ReadCommentsRead(ctx, tx, repo, number)
	if err != nil {
		return err
	}
	if c.Count != nil && !c.Until.Before(at) {
		c.Count = nil
		return c.Store(ctx, tx, repo, number)
	}
	count := 1
	switch {
	case c.Count != nil:
		count += *c.Count
	case !first:
		return nil
	}
	c.Count = &count
	return c.Store(ctx, tx, repo, number)
}

// ForgetCommentCount has the comments of a pull request read with the next look, unless it is
// as it was when they were read.
func ForgetCommentCount(ctx context.Context, tx *store.Tx, repo string, pr *forge.PullRequest) error {
	c, err := ReadCommentsRead(ctx, tx, repo, pr.Number)
	if err != nil || c.Count == nil || c.UpdatedAt.Equal(pr.UpdatedAt) {
		return err
	}
	c.Count = nil
	return c.Store(ctx, tx, repo, pr.Number)
}
