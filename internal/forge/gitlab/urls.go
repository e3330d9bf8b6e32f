package gitlab

import (
	"context"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// page is the address of a project's page for people, or of one below it.
func (d *Driver) page(r forge.Repo, segments ...string) string {
	return d.base.JoinPath(append(strings.Split(r.String(), "/"), segments...)...).String()
}

// CloneURL follows from the server's address: the token goes nowhere else.
func (d *Driver) CloneURL(_ context.Context, r forge.Repo) (string, error) {
	return d.page(r) + ".git", nil
}

// CommitURL is the page of a commit.
func (d *Driver) CommitURL(r forge.Repo, commit string) string {
	return d.page(r, "-", "commit", commit)
}

// CompareURL is the page of what head has and base hasn't.
func (d *Driver) CompareURL(r forge.Repo, base, head string) string {
	return d.page(r, "-", "compare", base+"..."+head)
}
