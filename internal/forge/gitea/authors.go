package gitea

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// MergedPullRequests gives the one that landed as the commit. Gitea doesn't know the
// pull request of commits below it.
func (d *Driver) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) ([]forge.PullRequest, error) {
	var p sdk.PullRequest
	err := d.getJSON(ctx, "find the pull request of a commit of "+r.String(), nil, &p, "repos", r.Owner, r.Name, "commits", commit, "pull")
	if rest.StatusOf(err) == http.StatusNotFound || err == nil && !p.HasMerged {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []forge.PullRequest{toPullRequest(&p)}, nil
}

// PullRequestAuthors lists the commits of a pull request, page by page. Their pushers are only in
// the feed of the whole repository, which is too long to be read for it.
func (d *Driver) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) ([]forge.CommitAuthors, error) {
	op := "list the commits of " + r.Number(pr.Number)
	var commits []*sdk.Commit
	err := forEach(op, bounds, func(o sdk.ListOptions) (page []*sdk.Commit, resp *sdk.Response, err error) {
		resp, err = d.getPage(ctx, op, withPage(contributorsOnly(), o), &page, "repos", r.Owner, r.Name, "pulls",
			strconv.Itoa(pr.Number), "commits")
		return page, resp, err
	}, func(c *sdk.Commit) bool {
		commits = append(commits, c)
		return len(commits) >= forge.MaxCommits
	})
	if err != nil {
		return nil, err
	}
	return d.toAuthors(ctx, op, commits)
}

// CommitAuthors compares the two commits, which Gitea does since 1.22.
func (d *Driver) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	if base == "" {
		op := "read a commit of " + r.String()
		var c sdk.Commit
		if err := d.getJSON(ctx, op, contributorsOnly(), &c, "repos", r.Owner, r.Name, "git", "commits", head); err != nil {
			return nil, err
		}
		return d.toAuthors(ctx, op, []*sdk.Commit{&c})
	}
	commits, op, err := d.compareCommits(ctx, r, base, head)
	if err != nil {
		return nil, err
	}
	return d.toAuthors(ctx, op, commits)
}

// Commits compares the two, which Gitea does since 1.22.
func (d *Driver) Commits(ctx context.Context, r forge.Repo, base, head string) ([]forge.Commit, error) {
	commits, op, err := d.compareCommits(ctx, r, base, head)
	if err != nil {
		return nil, err
	}
	if err := forge.RequireFewCommits(op, len(commits)); err != nil {
		return nil, err
	}
	all := make([]forge.Commit, len(commits))
	for i, c := range commits {
		if err := requireAuthors(op, c); err != nil {
			return nil, err
		}
		all[i] = forge.Commit{SHA: c.SHA, Author: c.RepoCommit.Author.Name, Message: c.RepoCommit.Message}
		if at, err := time.Parse(time.RFC3339, c.RepoCommit.Committer.Date); err == nil {
			all[i].At = at
		}
	}
	return all, nil
}

// compareCommits lists what head has and base hasn't, oldest first.
func (d *Driver) compareCommits(ctx context.Context, r forge.Repo, base, head string) (commits []*sdk.Commit, op string, err error) {
	op = "compare two commits of " + r.String()
	var compared struct {
		Commits []*sdk.Commit `json:"commits"`
	}
	if err := d.getJSON(ctx, op, contributorsOnly(), &compared, "repos", r.Owner, r.Name, "compare", base+"..."+head); err != nil {
		return nil, op, err
	}
	slices.Reverse(compared.Commits) // Gitea lists the newest first
	return compared.Commits, op, nil
}

// requireAuthors says that a commit names no author or no committer.
func requireAuthors(op string, c *sdk.Commit) error {
	if c.CommitMeta == nil || c.RepoCommit == nil || c.RepoCommit.Author == nil || c.RepoCommit.Committer == nil {
		return &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "the answer has a commit without an author"}
	}
	return nil
}

// toAuthors says who made commits, or that they are too many.
func (d *Driver) toAuthors(ctx context.Context, op string, commits []*sdk.Commit) ([]forge.CommitAuthors, error) {
	if err := forge.RequireFewCommits(op, len(commits)); err != nil {
		return nil, err
	}
	known := map[string]forge.User{} // by address, in lower case
	all := make([]forge.CommitAuthors, len(commits))
	for i, c := range commits {
		if err := requireAuthors(op, c); err != nil {
			return nil, err
		}
		all[i].Commit = c.SHA
		for _, p := range []forge.Contributor{
			{Name: c.RepoCommit.Author.Name, Email: c.RepoCommit.Author.Email, User: toUser(c.Author)},
			{Name: c.RepoCommit.Committer.Name, Email: c.RepoCommit.Committer.Email, User: toUser(c.Committer)},
		} {
			all[i].AddContributor(p)
			if p.User != (forge.User{}) {
				known[strings.ToLower(p.Email)] = p.User
			}
		}
	}
	for i, c := range commits {
		if err := d.addCoAuthors(ctx, op, &all[i], c.RepoCommit.Message, known); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addCoAuthors adds those whom a commit's message names: Gitea connects them with
// accounts in its pages, but not in its API.
func (d *Driver) addCoAuthors(ctx context.Context, op string, c *forge.CommitAuthors, message string, known map[string]forge.User) error {
	contributors, tooMany := forge.CoAuthors(message)
	if tooMany {
		return &forge.Error{Op: op, Kind: forge.ErrTooMany, Message: "the commit " + c.Commit + " names too many co-authors"}
	}
	for _, p := range contributors {
		email := strings.ToLower(p.Email)
		if _, ok := known[email]; !ok {
			u, err := d.findUserByEmail(ctx, email)
			if err != nil {
				return err
			}
			known[email] = u
		}
		p.User = known[email]
		c.AddContributor(p)
	}
	return nil
}

// findUserByEmail finds the account that shows an address; the zero user when none does,
// or when the token may not look.
func (d *Driver) findUserByEmail(ctx context.Context, email string) (forge.User, error) {
	local, _, ok := strings.Cut(email, "@")
	if !ok || local == "" {
		return forge.User{}, nil
	}
	for _, q := range []string{email, local} { // an address of Gitea's own making isn't searched for
		var found struct{ Data []*sdk.User }
		err := d.getJSON(ctx, "find the account of an address", url.Values{"q": {q}, "limit": {strconv.Itoa(perPage)}}, &found,
			"users", "search")
		if forge.IsRetryable(err) {
			return forge.User{}, err
		}
		for _, u := range found.Data {
			if err == nil && strings.EqualFold(u.Email, email) {
				return toUser(u), nil
			}
		}
	}
	return forge.User{}, nil
}

// contributorsOnly leaves out of a commit what isn't about people.
func contributorsOnly() url.Values {
	return url.Values{"stat": {"false"}, "verification": {"false"}, "files": {"false"}}
}

// withPage adds a page's number and size to a query.
func withPage(query url.Values, o sdk.ListOptions) url.Values {
	q := url.Values{"page": {strconv.Itoa(o.Page)}, "limit": {strconv.Itoa(o.PageSize)}}
	for k, v := range query {
		q[k] = v
	}
	return q
}
