package github

import (
	"context"
	"errors"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
)

// Comments lists the conversation's comments; review comments on lines aren't
// part of it.
func (d *Driver) Comments(ctx context.Context, r forge.Repo, n int, since time.Time) ([]forge.Comment, error) {
	ctx, owner, name := inRepo(ctx, r)
	o := &gh.IssueListCommentsOptions{}
	if !since.IsZero() {
		o.Since = &since
	}
	var found []forge.Comment
	err := forEach("list the comments of "+r.Number(n), bounds, func(page gh.ListOptions) ([]*gh.IssueComment, *gh.Response, error) {
		o.ListOptions = page
		return d.api.Issues.ListComments(ctx, owner, name, n, o)
	}, func(c *gh.IssueComment) bool {
		found = append(found, *toComment(c))
		return false
	})
	return found, err
}

// CreateComment adds a comment to the conversation.
func (d *Driver) CreateComment(ctx context.Context, r forge.Repo, n int, body string) (*forge.Comment, error) {
	ctx, owner, name := inRepo(ctx, r)
	c, _, err := d.api.Issues.CreateComment(ctx, owner, name, n, &gh.IssueComment{Body: &body})
	if err != nil {
		return nil, wrapError("comment on "+r.Number(n), err)
	}
	return toComment(c), nil
}

// UpdateComment replaces a comment's body.
func (d *Driver) UpdateComment(ctx context.Context, r forge.Repo, n int, id int64, body string) error {
	ctx, owner, name := inRepo(ctx, r)
	_, _, err := d.api.Issues.EditComment(ctx, owner, name, id, &gh.IssueComment{Body: &body})
	return wrapError("update a comment on "+r.Number(n), err)
}

// React adds a reaction; GitHub itself answers the second time with the first one.
func (d *Driver) React(ctx context.Context, r forge.Repo, n int, comment int64, reaction string) error {
	ctx, owner, name := inRepo(ctx, r)
	_, _, err := d.api.Reactions.CreateIssueCommentReaction(ctx, owner, name, comment, reaction)
	return wrapError("react to a comment on "+r.Number(n), err)
}

// HasReacted looks for a reaction of our own.
func (d *Driver) HasReacted(ctx context.Context, r forge.Repo, n int, comment int64) (bool, error) {
	me, err := d.Me(ctx)
	if err != nil {
		return false, err
	}
	return d.findReaction(ctx, r, n, comment, func(v *gh.Reaction) bool { return strings.EqualFold(v.GetUser().GetLogin(), me.Login) })
}

// findReaction says whether there is one of a kind among the reactions to a comment.
func (d *Driver) findReaction(ctx context.Context, r forge.Repo, n int, comment int64, is func(*gh.Reaction) bool) (found bool, err error) {
	ctx, owner, name := inRepo(ctx, r)
	err = forEach("list the reactions to a comment on "+r.Number(n), bounds,
		func(page gh.ListOptions) ([]*gh.Reaction, *gh.Response, error) {
			return d.api.Reactions.ListIssueCommentReactions(ctx, owner, name, comment, &page)
		}, func(v *gh.Reaction) bool {
			found = is(v)
			return found
		})
	return found, err
}

// authorshipQuery asks who edited a comment last: only GraphQL tells.
const authorshipQuery = `query($id:ID!){node(id:$id){... on IssueComment{lastEditedAt editor{login}}}}`

// Authorship asks whether a comment was edited. Where the credentials, or the server, don't let GraphQL be
// asked that, its author's own reaction says that it is theirs.
func (d *Driver) Authorship(ctx context.Context, r forge.Repo, n int, c *forge.Comment) (forge.Authorship, string, error) {
	op := "read who edited a comment on " + r.Number(n)
	var data struct {
		Node *struct {
			LastEditedAt *time.Time `json:"lastEditedAt"`
			Editor       *struct {
				Login string `json:"login"`
			} `json:"editor"`
		} `json:"node"`
	}
	err := d.callGraphQL(ctx, op, r, authorshipQuery, map[string]any{"id": c.NodeID}, &data)
	switch {
	case errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrUnsupported), errors.Is(err, forge.ErrInvalid):
		return d.readConfirmation(ctx, r, n, c)
	case err != nil:
		return forge.AuthorshipUnknown, "", err
	case data.Node == nil:
		return forge.AuthorshipUnknown, "", &forge.Error{Op: op, Kind: forge.ErrNotFound, Message: "there is no such comment"}
	case data.Node.LastEditedAt == nil:
		return forge.AuthorsOwn, "", nil
	case data.Node.Editor == nil: // whose account is gone
		return forge.EditedLater, "", nil
	}
	return forge.EditedLater, data.Node.Editor.Login, nil
}

// readConfirmation looks for the author's own reaction.
func (d *Driver) readConfirmation(ctx context.Context, r forge.Repo, n int, c *forge.Comment) (forge.Authorship, string, error) {
	confirmed, err := d.findReaction(ctx, r, n, c.ID, func(v *gh.Reaction) bool {
		return v.GetContent() == forge.Confirmation && v.GetUser().GetID() == c.UserID && c.UserID != 0
	})
	if !confirmed {
		return forge.AuthorshipUnknown, "", err
	}
	return forge.ConfirmedByAuthor, "", err
}

func toComment(c *gh.IssueComment) *forge.Comment {
	return &forge.Comment{
		ID:        c.GetID(),
		User:      c.GetUser().GetLogin(),
		UserID:    c.GetUser().GetID(),
		Bot:       isBot(c.GetUser()),
		Body:      c.GetBody(),
		CreatedAt: c.GetCreatedAt().Time,
		UpdatedAt: c.GetUpdatedAt().Time,
		URL:       c.GetHTMLURL(),
		NodeID:    c.GetNodeID(),
	}
}
