package gitlab

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// maxVersionPages are enough for the 1,000 versions that GitLab keeps of a merge request.
const maxVersionPages = 11

// version is a head that a merge request had, from a time on.
type version struct {
	Head string     `json:"head_commit_sha"`
	At   *time.Time `json:"created_at"`
}

// listVersions lists the heads that a merge request had, newest first.
func (d *Driver) listVersions(ctx context.Context, r forge.Repo, n int) ([]version, error) {
	var all []version
	err := forEach(ctx, d, "list the versions of "+number(r, n), r, maxVersionPages, query{}, func(v version) bool {
		all = append(all, v)
		return false
	}, below(n, "versions")...)
	return all, err
}

// headAt is the head that a merge request had at a time; empty: that can't be told. A version of
// the very same time may have been seen or not, so it counts as later.
func headAt(versions []version, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	var newest version
	for _, v := range versions {
		if v.At == nil {
			return ""
		}
		if v.At.Before(at) && (newest.At == nil || v.At.After(*newest.At)) {
			newest = v
		}
	}
	return newest.Head
}
