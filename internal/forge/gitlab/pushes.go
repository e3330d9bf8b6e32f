package gitlab

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// maxPushPages of a project's events are looked through for one push.
const maxPushPages = forge.MaxPushes / perPage

// pushEvent is a push as a project's events have it (api/events.md, "List a project's visible
// events"). A merge's is like any other, by who merged. Of a push that moved more refs than an
// instance allows events for, three by default, there is one event that names none of them.
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
	return d.forEachPush(ctx, r, branch, time.Time{}, maxPushPages, enough)
}

// forEachPush gives the moves of a branch up to the end of a day, newest first; zero: up to now.
func (d *Driver) forEachPush(ctx context.Context, r forge.Repo, branch string, day time.Time, pages int, enough func(forge.Push) bool) error {
	q := query{Action: "pushed", Sort: "desc"}
	if !day.IsZero() {
		q.Before = day.UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	}
	return forEach(ctx, d, "read who pushed to "+branch+" of "+r.String(), r, pages, q, func(e pushEvent) bool {
		if e.Push.RefType != "branch" || e.Push.Ref != branch {
			return false
		}
		return enough(forge.Push{Before: e.Push.From, After: e.Push.To, By: e.Author.user()})
	}, "events")
}

// addPushers says who pushed the commits of a merge request, as far as one page of events tells:
// of the newest pushes up to its end, to all branches. Of a fork's nothing is told.
func (d *Driver) addPushers(ctx context.Context, r forge.Repo, pr *forge.PullRequest, all []forge.CommitAuthors) error {
	if pr.Fork {
		return nil
	}
	pushers := map[string]forge.User{} // by the commit that came last; the oldest push of it counts
	err := d.forEachPush(ctx, r, pr.Branch, pr.ClosedAt, 1, func(p forge.Push) bool {
		pushers[p.After] = p.By
		return false
	})
	if forge.IsRetryable(err) {
		return err
	}
	for i := range all {
		all[i].Pusher = pushers[all[i].Commit]
	}
	return nil // what can't be read, or is more than a page, tells no more
}
