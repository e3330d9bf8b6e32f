package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/liftlock/liftlock/internal/git"
)

// fetchShare is how many times a part's time the first fetch of a repository may take.
const fetchShare = 4

// openCheckout fetches the repository into a folder of its own, as the server would into its: what
// can be read by the API may be closed to Git. nil: it can't be, and why was found. Otherwise it is
// among those that are removed in the end.
func (r *repositoryCheck) openCheckout(ctx context.Context) *Checkout {
	folder, err := os.MkdirTemp("", "liftlock-doctor-")
	if err != nil {
		r.found.add("git-unread", r.where, fmt.Sprintf("there is no folder to fetch it into: %v", err),
			"give this user a folder for temporary files (TMPDIR)")
		return nil
	}
	c := &Checkout{Config: r.config}
	if c.URL, err = r.forge.CloneURL(ctx, r.repo); err == nil {
		c.Mirror, err = r.fetchInto(ctx, folder, c.URL)
	}
	if err == nil {
		c.remove = func() { _, _ = c.Mirror.Close(), os.RemoveAll(folder) } // only read; what is left of it is the system's to remove
		r.checkouts.add(c)
		return c
	}
	_ = os.RemoveAll(folder) // likewise
	if errors.Is(err, git.ErrAuth) || errors.Is(err, git.ErrNoRepository) {
		r.found.add("git-refused", r.where, err.Error(), "let the token fetch and push by Git over HTTPS: on GitHub contents (or repo), "+
			"on GitLab write_repository, on Gitea write:repository")
	} else {
		r.found.add("git-unread", r.where, err.Error(), "check that this machine reaches the repository by Git over HTTPS, and "+
			"forges[].caFile; its pipelines weren't checked")
	}
	return nil
}

func (r *repositoryCheck) fetchInto(ctx context.Context, folder, url string) (*git.Mirror, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchShare*r.Timeout)
	defer cancel()
	// of what a probe pushes
	m, err := git.Open(ctx, git.Options{Dir: folder, URL: url, CAFile: r.forgeOf.CAFile, Timeout: fetchShare * r.Timeout,
		Author:      git.Ident{Name: "liftlock doctor", Email: "doctor@localhost"},
		Credentials: func(ctx context.Context) (string, string, error) { return r.forge.GitAuth(ctx, r.repo) }})
	if err != nil {
		return nil, err
	}
	if _, err := m.Fetch(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}
