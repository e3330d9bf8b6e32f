package facts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
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

// UnreadCommentsKey is the store's key of that an event told of a comment since the comments of a
// pull request were read, whatever their count: one may have gone and another come. Its value is
// the last such event's.
func UnreadCommentsKey(repo string, number int) string {
	return fmt.Sprintf("unread-comments|%s|%d", repo, number)
}

// UnconfirmedKey is the store's key of that a comment's commands which loosen something wait for their author to
// say that the comment is theirs; the others were taken. Its value is when it was written.
func UnconfirmedKey(repo string, number int, comment int64) string {
	return fmt.Sprintf("%s%d|%d", UnconfirmedPrefix(repo), number, comment)
}

// UnconfirmedPrefix is what all of a repository's begin with.
func UnconfirmedPrefix(repo string) string { return "unconfirmed|" + repo + "|" }

// ForgetUnreadComments notes that the comments of a pull request are read as of the event that
// was known before that; nil: none was. What an event told of meanwhile stays to be read.
func ForgetUnreadComments(ctx context.Context, tx *store.Tx, repo string, number int, event []byte) error {
	key := UnreadCommentsKey(repo, number)
	now, unread, err := tx.State(ctx, key)
	if err != nil || !unread || !bytes.Equal(now, event) {
		return err
	}
	return tx.DeleteState(ctx, key)
}

func commentsKey(repo string, number int) string { return fmt.Sprintf("comments|%s|%d", repo, number) }

// ReadCommentsRead reads it from the store; what can't be understood is nothing.
func ReadCommentsRead(ctx context.Context, s StateReader, repo string, number int) (CommentsRead, error) {
	c, _, err := readState[CommentsRead](ctx, s, commentsKey(repo, number))
	return c, err
}

// Covers says that a pull request that was just read has no comment that wasn't read.
func (c *CommentsRead) Covers(pr *forge.PullRequest) bool {
	return c.Count != nil && pr.CommentCount != nil && *c.Count == *pr.CommentCount
}

// Store keeps it.
func (c *CommentsRead) Store(ctx context.Context, tx *store.Tx, repo string, number int) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("keep how far the comments of #%d were read: %w", number, err)
	}
	return tx.PutState(ctx, commentsKey(repo, number), raw)
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
