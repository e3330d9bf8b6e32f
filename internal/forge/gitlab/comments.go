package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// userNote is what is read of a note of a merge request.
type userNote struct {
	ID        int64      `json:"id"`
	Body      string     `json:"body"`
	Author    *account   `json:"author"`
	System    bool       `json:"system"`
	Internal  bool       `json:"internal"`
	CreatedAt *time.Time `json:"created_at"`
	UpdatedAt *time.Time `json:"updated_at"`
}

func (u *userNote) missing() string {
	if u.ID <= 0 {
		return "a note's number"
	}
	return ""
}

// Comments lists the conversation's notes, not what GitLab itself writes there, and not what
// isn't for everybody.
func (d *Driver) Comments(ctx context.Context, r forge.Repo, n int, since time.Time) ([]forge.Comment, error) {
	found := []forge.Comment{}
	seen := map[int64]bool{} // one that is updated meanwhile moves, and shifts a page
	err := forEach(ctx, d, "list the notes of "+number(r, n), r, maxPages,
		query{ActivityFilter: "only_comments", OrderBy: "updated_at", Sort: "desc"}, func(o userNote) bool {
			if timeOrZero(o.UpdatedAt).Before(since) {
				return true
			}
			if !o.System && !o.Internal && !seen[o.ID] {
				seen[o.ID] = true
				found = append(found, *d.toComment(r, n, &o))
			}
			return false
		}, below(n, "notes")...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b forge.Comment) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// noteBody is a note's text.
type noteBody struct {
	Body string `json:"body"`
}

// newNote is a note that was to be added: it has no number where none was made.
type newNote userNote

// CreateComment adds a note.
func (d *Driver) CreateComment(ctx context.Context, r forge.Repo, n int, body string) (*forge.Comment, error) {
	op := "comment on " + number(r, n)
	var o newNote
	if _, err := d.callMergeRequest(ctx, op, r, n, http.MethodPost, noteBody{escapeActions(body)}, &o, "notes"); err != nil {
		return nil, err
	}
	if o.ID == 0 {
		return nil, &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "GitLab took it for a command and made no note of it"}
	}
	return d.toComment(r, n, (*userNote)(&o)), nil
}

// UpdateComment replaces a note's text.
func (d *Driver) UpdateComment(ctx context.Context, r forge.Repo, n int, id int64, body string) error {
	_, err := d.callMergeRequest(ctx, "update a note on "+number(r, n), r, n, http.MethodPut, noteBody{escapeActions(body)}, nil, "notes",
		fmt.Sprint(id))
	return err
}

// award is an emoji on a note.
type award struct {
	Name string   `json:"name"`
	User *account `json:"user,omitempty"`
}

// awardNames are GitLab's names of the reactions that aren't called so.
var awardNames = map[string]string{"+1": "thumbsup", "-1": "thumbsdown"}

// React awards an emoji. A second time is 404 for GitLab, as for a note that isn't there.
func (d *Driver) React(ctx context.Context, r forge.Repo, n int, comment int64, reaction string) error {
	name := cmp.Or(awardNames[reaction], reaction)
	_, err := d.callMergeRequest(ctx, "react to a note on "+number(r, n), r, n, http.MethodPost, award{Name: name}, nil, "notes",
		fmt.Sprint(comment), "award_emoji")
	if err != nil && rest.Says(err, "already been taken") {
		return nil
	}
	return err
}

// HasReacted looks for an emoji of our own.
func (d *Driver) HasReacted(ctx context.Context, r forge.Repo, n int, comment int64) (bool, error) {
	me, err := d.Me(ctx)
	if err != nil {
		return false, err
	}
	ours := false
	err = forEach(ctx, d, "list the reactions to a note on "+number(r, n), r, maxPages, query{}, func(a award) bool {
		ours = ours || a.User.id() == me.ID
		return ours
	}, below(n, "notes", fmt.Sprint(comment), "award_emoji")...)
	return ours, err
}

// Authorship tells by a note's own times, which have milliseconds (GitLab, "Notes API"), that nobody edited it.
// Only its author and who may administer the project may edit one.
func (d *Driver) Authorship(_ context.Context, _ forge.Repo, _ int, c *forge.Comment) (forge.Authorship, string, error) {
	if !c.UpdatedAt.Equal(c.CreatedAt) {
		return forge.EditedLater, "", nil
	}
	return forge.AuthorsOwn, "", nil
}

func (d *Driver) toComment(r forge.Repo, n int, o *userNote) *forge.Comment {
	return &forge.Comment{
		ID:        o.ID,
		User:      o.Author.login(),
		UserID:    o.Author.id(),
		Bot:       o.Author.isBot(),
		Body:      unescapeActions(o.Body),
		CreatedAt: timeOrZero(o.CreatedAt),
		UpdatedAt: timeOrZero(o.UpdatedAt),
		URL:       fmt.Sprintf("%s#note_%d", d.page(r, "-", "merge_requests", fmt.Sprint(n)), o.ID),
	}
}
