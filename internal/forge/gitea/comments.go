package gitea

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
)

// Comments lists the conversation's comments, not what Gitea itself writes there
// (pushes, labels). It gives all at once, in whole seconds.
func (d *Driver) Comments(ctx context.Context, r forge.Repo, n int, since time.Time) ([]forge.Comment, error) {
	list, resp, err := d.api(ctx).ListIssueComments(r.Owner, r.Name, int64(n), sdk.ListIssueCommentOptions{
		ListOptions: sdk.ListOptions{Page: -1}, Since: since.Truncate(time.Second),
	})
	if err != nil {
		return nil, d.orGone(ctx, r, n, fail("list the comments of "+number(r, n), resp, err))
	}
	found := make([]forge.Comment, len(list))
	for i, c := range list {
		found[i] = *neutralComment(c)
	}
	return found, nil
}

// CreateComment adds a comment to the conversation.
func (d *Driver) CreateComment(ctx context.Context, r forge.Repo, n int, body string) (*forge.Comment, error) {
	c, resp, err := d.api(ctx).CreateIssueComment(r.Owner, r.Name, int64(n), sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return nil, d.orGone(ctx, r, n, fail("comment on "+number(r, n), resp, err))
	}
	return neutralComment(c), nil
}

// UpdateComment replaces a comment's body.
func (d *Driver) UpdateComment(ctx context.Context, r forge.Repo, n int, id int64, body string) error {
	if _, resp, err := d.api(ctx).EditIssueComment(r.Owner, r.Name, id, sdk.EditIssueCommentOption{Body: body}); err != nil {
		return fail("update a comment on "+number(r, n), resp, err)
	}
	return nil
}

// React adds a reaction; Gitea itself answers the second time with the first one.
func (d *Driver) React(ctx context.Context, r forge.Repo, n int, comment int64, reaction string) error {
	if _, resp, err := d.api(ctx).PostIssueCommentReaction(r.Owner, r.Name, comment, reaction); err != nil {
		return fail("react to a comment on "+number(r, n), resp, err)
	}
	return nil
}

// Reacted looks for a reaction of our own.
func (d *Driver) Reacted(ctx context.Context, r forge.Repo, n int, comment int64) (bool, error) {
	me, err := d.Me(ctx)
	if err != nil {
		return false, err
	}
	list, resp, err := d.api(ctx).GetIssueCommentReactions(r.Owner, r.Name, comment)
	if err != nil {
		return false, fail("list the reactions to a comment on "+number(r, n), resp, err)
	}
	for _, v := range list {
		if strings.EqualFold(login(v.User), me.Login) {
			return true, nil
		}
	}
	return false, nil
}

// orGone looks after a failed call whether the pull request is there at all: for
// one that isn't, Gitea's comments answer 500 (1.23, routers/api/v1/repo/
// issue_comment.go), which would be tried again for ever.
func (d *Driver) orGone(ctx context.Context, r forge.Repo, n int, err error) error {
	if status(err) != http.StatusInternalServerError {
		return err
	}
	if _, look := d.PullRequest(ctx, r, n); errors.Is(look, forge.ErrGone) {
		return look
	}
	return err
}

func neutralComment(c *sdk.Comment) *forge.Comment {
	return &forge.Comment{
		ID:        c.ID,
		User:      login(c.Poster),
		Bot:       isBot(c.Poster),
		Body:      c.Body,
		CreatedAt: c.Created,
		UpdatedAt: c.Updated,
		URL:       c.HTMLURL,
	}
}
