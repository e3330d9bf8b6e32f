package gitlab

import (
	"context"
	"errors"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// maxPushPages of a project's events are looked through for one push.
const maxPushPages = forge.MaxPushes / perPage

// pushEvent is a push as a project's events have it (api/events.md, "List a project's visible
// events"). A merge's is like any other, by who merged. A push that moved more refs than an
// instance allows events for, three by default, has one event that names none of them.
type pushEvent struct {
	Author *account `json:"author"` // of a deleted account's: GitLab's ghost user
	Push   struct {
		RefType string `json:"ref_type"`    // branch or tag
		Ref     string `json:"ref"`         // without refs/heads/; null: several
		From    string `json:"commit_from"` // null: the branch was made
		To      string `json:"commit_to"`   // null: it was deleted
	} `json:"push_data"`
}

// Pushes reads the project's events, of all its branches: GitLab lists none of one alone. They
// come some time after the push.
func (d *Driver) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	return d.forEachPush(ctx, r, branch, time.Time{}, 1, enough)
}

// forEachPush gives the moves of a branch up to the end of a day, newest first; zero: up to now. At
// least so many of the events of all branches are read, also when it is enough.
func (d *Driver) forEachPush(ctx context.Context, r forge.Repo, branch string, day time.Time, least int,
	enough func(forge.Push) bool) error {
	q := query{Action: "pushed", Sort: "desc"}
	if !day.IsZero() {
		q.Before = day.UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	}
	read, done := 0, false
	return forEach(ctx, d, "read who pushed to "+branch+" of "+r.String(), r, maxPushPages, q, func(e pushEvent) bool {
		read++
		if e.Push.RefType == "branch" && e.Push.Ref == branch {
			done = enough(forge.Push{Before: e.Push.From, After: e.Push.To, By: e.Author.user()})
		}
		return done && read >= least
	}, "events")
}

// addPushers says who pushed the commits of a merge request, as far as the project's events tell,
// up to its end. It reads the events of all branches, and further back than one page until it has
// found the pushers. For a fork's merge request it adds none.
func (d *Driver) addPushers(ctx context.Context, r forge.Repo, pr *forge.PullRequest, all []forge.CommitAuthors) error {
	if pr.Fork {
		return nil
	}
	pushers := forge.NewPusherSearch(pr.Head, all)
	err := d.forEachPush(ctx, r, pr.Branch, pr.ClosedAt, perPage, func(p forge.Push) bool {
		pushers.Add(p)
		return pushers.IsComplete()
	})
	if forge.IsRetryable(err) || errors.Is(err, forge.ErrTooMany) {
		return err
	}
	return nil // where they can't be read, they tell nothing
}
