package gitea

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// Comments lists the conversation's comments, not what Gitea itself writes there
// (pushes, labels). It gives all at once, in whole seconds.
func (d *Driver) Comments(ctx context.Context, r forge.Repo, n int, since time.Time) ([]forge.Comment, error) {
	list, _, err := d.newClient(ctx).ListIssueComments(r.Owner, r.Name, int64(n), sdk.ListIssueCommentOptions{
		ListOptions: sdk.ListOptions{Page: -1}, Since: since.Truncate(time.Second),
	})
	if err != nil {
		return nil, d.orNotFound(ctx, r, n, rest.Wrap("list the comments of "+r.Number(n), err))
	}
	found := make([]forge.Comment, len(list))
	for i, c := range list {
		found[i] = *toComment(c)
	}
	return found, nil
}

// CreateComment adds a comment to the conversation.
func (d *Driver) CreateComment(ctx context.Context, r forge.Repo, n int, body string) (*forge.Comment, error) {
	c, _, err := d.newClient(ctx).CreateIssueComment(r.Owner, r.Name, int64(n), sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return nil, d.orNotFound(ctx, r, n, rest.Wrap("comment on "+r.Number(n), err))
	}
	return toComment(c), nil
}

// UpdateComment replaces a comment's body.
func (d *Driver) UpdateComment(ctx context.Context, r forge.Repo, n int, id int64, body string) error {
	_, _, err := d.newClient(ctx).EditIssueComment(r.Owner, r.Name, id, sdk.EditIssueCommentOption{Body: body})
	return rest.Wrap("update a comment on "+r.Number(n), err)
}

// React adds a reaction; Gitea itself answers the second time with the first one.
func (d *Driver) React(ctx context.Context, r forge.Repo, n int, comment int64, reaction string) error {
	_, _, err := d.newClient(ctx).PostIssueCommentReaction(r.Owner, r.Name, comment, reaction)
	return rest.Wrap("react to a comment on "+r.Number(n), err)
}

// HasReacted looks for a reaction of our own.
func (d *Driver) HasReacted(ctx context.Context, r forge.Repo, n int, comment int64) (bool, error) {
	me, err := d.Me(ctx)
	if err != nil {
		return false, err
	}
	list, _, err := d.newClient(ctx).GetIssueCommentReactions(r.Owner, r.Name, comment)
	if err != nil {
		return false, rest.Wrap("list the reactions to a comment on "+r.Number(n), err)
	}
	for _, v := range list {
		if strings.EqualFold(loginOf(v.User), me.Login) {
			return true, nil
		}
	}
	return false, nil
}

// Authorship looks for the author's own reaction. An account with write access edits others'
// comments, the times are whole seconds, and only Gitea's pages show the earlier text (1.23,
// routers/api/v1/repo/issue_comment.go and routers/web/repo/issue_content_history.go). A review
// says nothing more, as its words are edited alike.
func (d *Driver) Authorship(ctx context.Context, r forge.Repo, n int, c *forge.Comment) (forge.Authorship, string, error) {
	list, _, err := d.newClient(ctx).GetIssueCommentReactions(r.Owner, r.Name, c.ID)
	if err != nil {
		return forge.AuthorshipUnknown, "", rest.Wrap("list the reactions to a comment on "+r.Number(n), err)
	}
	for _, v := range list {
		if v.Reaction == forge.Confirmation && c.UserID != 0 && idOf(v.User) == c.UserID {
			return forge.ConfirmedByAuthor, "", nil
		}
	}
	return forge.AuthorshipUnknown, "", nil
}

// orNotFound checks after a failed call whether the pull request is there at all. For one that
// isn't, Gitea's comments answer 500 (1.23, routers/api/v1/repo/ issue_comment.go), which would be
// tried again for ever.
func (d *Driver) orNotFound(ctx context.Context, r forge.Repo, n int, err error) error {
	if rest.StatusOf(err) != http.StatusInternalServerError {
		return err
	}
	if _, look := d.PullRequest(ctx, r, n); errors.Is(look, forge.ErrNotFound) {
		return look
	}
	return err
}

func toComment(c *sdk.Comment) *forge.Comment {
	return &forge.Comment{
		ID:        c.ID,
		User:      loginOf(c.Poster),
		UserID:    idOf(c.Poster),
		Bot:       isBot(c.Poster),
		Body:      c.Body,
		CreatedAt: c.Created,
		UpdatedAt: c.Updated,
		URL:       c.HTMLURL,
	}
}
