package facts

import (
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
	// While the forge counts as many there is none to read: a comment that was edited gives no
	// command, and where one went and another came, the sweep reads them all the same.
	Count *int `json:"count,omitempty"`
	// UpdatedAt is the pull request's of then.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

func commentsKey(repo string, number int) string { return fmt.Sprintf("comments|%s|%d", repo, number) }

// ReadCommentsRead reads it from the store; what can't be understood is nothing.
func ReadCommentsRead(ctx context.Context, s StateReader, repo string, number int) (CommentsRead, error) {
	var c CommentsRead
	raw, ok, err := s.State(ctx, commentsKey(repo, number))
	if err != nil || !ok || json.Unmarshal(raw, &c) != nil {
		return CommentsRead{}, err
	}
	return c, nil
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

// CountOwnComment counts a comment that we wrote on a pull request; with first there was none
// before. Where others wrote one meanwhile the forge counts more, and they are read.
func CountOwnComment(ctx context.Context, tx *store.Tx, repo string, number int, first bool) error {
	c, err := ReadCommentsRead(ctx, tx, repo, number)
	if err != nil {
		return err
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
