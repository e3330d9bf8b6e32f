package gitlab

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// GitLab's own notes about reviews.
const (
	approvedNote         = "approved this merge request"
	requestedChangesNote = "requested changes"
)

// approval is one that counts. Older versions don't say when it was given.
type approval struct {
	User account    `json:"user"`
	At   *time.Time `json:"approved_at"`
}

// reviewer is one from whom a review is requested, and how that stands.
type reviewer struct {
	User  account    `json:"user"`
	State string     `json:"state"`
	At    *time.Time `json:"created_at"` // since when
}

// Reviews gives one review a person. GitLab keeps no reviews but how each person stands, and
// of no commit: that is the newest head that the merge request had before.
func (d *Driver) Reviews(ctx context.Context, r forge.Repo, n int) ([]forge.Review, error) {
	var approved struct {
		By []approval `json:"approved_by"`
	}
	if _, err := d.callMergeRequest(ctx, "read the approvals of "+number(r, n), r, n, http.MethodGet, nil, &approved,
		"approvals"); err != nil {
		return nil, err
	}
	var reviewers []reviewer
	if _, err := d.callMergeRequest(ctx, "list the reviewers of "+number(r, n), r, n, http.MethodGet, nil, &reviewers,
		"reviewers"); err != nil {
		return nil, err
	}
	wanted := wantedNotes(approved.By, reviewers)
	noted, err := d.findReviewNotes(ctx, r, n, wanted)
	if err != nil {
		return nil, err
	}
	var versions []version
	if len(approved.By) > 0 || len(wanted) > 0 {
		if versions, err = d.listVersions(ctx, r, n); err != nil {
			return nil, err
		}
	}
	return toReviews(approved.By, reviewers, noted, versions), nil
}

// reviewNote names a note of GitLab's own about somebody's review.
type reviewNote struct {
	user int64
	body string
}

// wantedNotes are those that tell times which nothing else does.
func wantedNotes(approvals []approval, reviewers []reviewer) map[reviewNote]bool {
	wanted := map[reviewNote]bool{}
	for _, a := range approvals {
		if a.At == nil {
			wanted[reviewNote{a.User.ID, approvedNote}] = true
		}
	}
	for _, v := range reviewers {
		if v.State == "requested_changes" {
			wanted[reviewNote{v.User.ID, requestedChangesNote}] = true
		}
	}
	return wanted
}

// findReviewNotes finds when the newest of each wanted note was left.
func (d *Driver) findReviewNotes(ctx context.Context, r forge.Repo, n int, wanted map[reviewNote]bool) (map[reviewNote]time.Time, error) {
	found := map[reviewNote]time.Time{}
	if len(wanted) == 0 {
		return found, nil
	}
	err := forEach(ctx, d, "list the activity of "+number(r, n), r, maxPages,
		query{ActivityFilter: "only_activity", OrderBy: "created_at", Sort: "desc"}, func(o userNote) bool {
			key := reviewNote{o.Author.id(), o.Body}
			if _, known := found[key]; o.System && wanted[key] && !known {
				found[key] = timeOrZero(o.CreatedAt)
			}
			return len(found) == len(wanted)
		}, below(n, "notes")...)
	return found, err
}

// toReviews makes reviews of how users stand. A reviewer who asks for changes has not approved.
// Changes that were asked for at an unknown time are asked of the newest head.
func toReviews(approvals []approval, reviewers []reviewer, noted map[reviewNote]time.Time, versions []version) []forge.Review {
	byUser := map[int64]forge.Review{}
	for _, a := range approvals {
		at := timeOrZero(a.At)
		if a.At == nil {
			at = noted[reviewNote{a.User.ID, approvedNote}]
		}
		byUser[a.User.ID] = forge.Review{Approved: true, Commit: headAt(versions, at), At: at}
	}
	for _, v := range reviewers {
		_, approved := byUser[v.User.ID]
		switch {
		case v.State == "requested_changes":
			at, commit := noted[reviewNote{v.User.ID, requestedChangesNote}], ""
			if commit = headAt(versions, at); commit == "" && len(versions) > 0 {
				commit = versions[0].Head
			}
			byUser[v.User.ID] = forge.Review{Rejected: true, Commit: commit, At: at}
		case v.State == "reviewed" && !approved:
			byUser[v.User.ID] = forge.Review{At: timeOrZero(v.At)}
		}
	}
	users := map[int64]account{}
	for _, a := range approvals {
		users[a.User.ID] = a.User
	}
	for _, v := range reviewers {
		users[v.User.ID] = v.User
	}
	all := make([]forge.Review, 0, len(byUser))
	for id, v := range byUser {
		who := users[id]
		v.ID, v.User, v.UserID, v.Bot = id, who.Username, id, who.isBot()
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b forge.Review) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.User, b.User)) })
	return all
}
