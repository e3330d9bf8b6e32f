package gitea

import (
	"context"
	"net/url"

	"github.com/liftlock/liftlock/internal/forge"
)

// CloneURL follows from the server's address.
func (d *Driver) CloneURL(_ context.Context, r forge.Repo) (string, error) {
	return d.base.JoinPath(url.PathEscape(r.Owner), url.PathEscape(r.Name)+".git").String(), nil
}

// CommitURL is the page of a commit.
func (d *Driver) CommitURL(r forge.Repo, commit string) string {
	return d.base.JoinPath(url.PathEscape(r.Owner), url.PathEscape(r.Name), "commit", commit).String()
}

// CompareURL is the page of what head has and base hasn't.
func (d *Driver) CompareURL(r forge.Repo, base, head string) string {
	return d.base.JoinPath(url.PathEscape(r.Owner), url.PathEscape(r.Name), "compare", base+"..."+head).String()
}
