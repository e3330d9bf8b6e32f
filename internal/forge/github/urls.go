package github

import (
	"context"
	"net/url"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// CloneURL follows from the API's address.
func (d *Driver) CloneURL(_ context.Context, r forge.Repo) (string, error) {
	u := pageURL(d.base, r)
	u.Path += ".git"
	return u.String(), nil
}

// CommitURL is the page of a commit.
func (d *Driver) CommitURL(r forge.Repo, commit string) string {
	return pageURL(d.base, r).JoinPath("commit", commit).String()
}

// CompareURL is the page of what head has and base hasn't.
func (d *Driver) CompareURL(r forge.Repo, base, head string) string {
	return pageURL(d.base, r).JoinPath("compare", base+"..."+head).String()
}

// pageURL is the repository's page, beside the API: at github.com for api.github.com, at
// SUB.ghe.com for api.SUB.ghe.com, and on a GitHub Enterprise Server without /api/v3.
func pageURL(base *url.URL, r forge.Repo) *url.URL {
	owner, name := repoPath(r)
	u := *base
	u.Host = pageHost(base)
	if u.Host != base.Host {
		u.Path = "/"
	}
	u.Path = strings.TrimSuffix(u.Path, "api/v3/")
	return u.JoinPath(owner, name)
}

// pageHost is the host, maybe with a port, of the pages and of Git.
func pageHost(base *url.URL) string {
	if host, ok := strings.CutPrefix(base.Host, "api."); ok && (host == "github.com" || strings.HasSuffix(host, hostedSuffix)) {
		return host
	}
	return base.Host
}

// hostedSuffix ends the names of what GitHub hosts for an enterprise.
const hostedSuffix = ".ghe.com"

// noReplyHost is the host of the addresses that GitHub gives to accounts, without
// users.noreply.
func noReplyHost(base *url.URL) string {
	pages := url.URL{Host: pageHost(base)}
	return pages.Hostname()
}
