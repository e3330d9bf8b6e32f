package github

import (
	"context"
	"errors"
	"net/url"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

const (
	// webFlowLogin is GitHub's own account, the committer of changes made in its pages. It belongs
	// to no person.
	webFlowLogin = "web-flow"
	// maxMergedPulls bounds the pull requests of one commit that are read one by one.
	maxMergedPulls = 10
	// zeroCommit stands for no commit where a branch is made or deleted.
	zeroCommit = "0000000000000000000000000000000000000000"
)

// MergedPullRequests reads each by itself: only then GitHub says who merged it.
func (d *Driver) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) ([]forge.PullRequest, error) {
	ctx, owner, name := inRepo(ctx, r)
	op := "list the pull requests that brought a commit of " + r.String()
	var numbers []int
	err := forEach(op, bounds, func(page gh.ListOptions) ([]*gh.PullRequest, *gh.Response, error) {
		return d.api.PullRequests.ListPullRequestsWithCommit(ctx, owner, name, rest.Segment(commit), &page)
	}, func(p *gh.PullRequest) bool {
		if !p.GetMergedAt().IsZero() {
			numbers = append(numbers, p.GetNumber())
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	if len(numbers) > maxMergedPulls {
		return nil, &forge.Error{Op: op, Kind: forge.ErrTooMany}
	}
	var merged []forge.PullRequest
	for _, n := range numbers {
		pr, err := d.PullRequest(ctx, r, n)
		if err != nil {
			return nil, err
		}
		merged = append(merged, *pr)
	}
	return merged, nil
}

// PullRequestAuthors lists the commits of a pull request, and who pushed them to its branch: not in
// a fork. It reads one page of the branch's activity, and more until it has found them.
func (d *Driver) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) ([]forge.CommitAuthors, error) {
	ctx, owner, name := inRepo(ctx, r)
	op := "list the commits of " + r.Number(pr.Number)
	var commits []*gh.RepositoryCommit
	err := forEach(op, bounds, func(page gh.ListOptions) ([]*gh.RepositoryCommit, *gh.Response, error) {
		return d.api.PullRequests.ListCommits(ctx, owner, name, pr.Number, &page)
	}, func(c *gh.RepositoryCommit) bool {
		commits = append(commits, c)
		return len(commits) >= forge.MaxCommits
	})
	if err != nil {
		return nil, err
	}
	all, err := d.toAuthors(ctx, op, r, commits)
	if err != nil || pr.Fork {
		return all, err
	}
	read, pushers := 0, forge.NewPusherSearch(pr.Head, all)
	err = d.Pushes(ctx, r, pr.Branch, func(p forge.Push) bool {
		pushers.Add(p)
		read++
		return read >= perPage && pushers.IsComplete()
	})
	if forge.IsRetryable(err) || errors.Is(err, forge.ErrTooMany) {
		return nil, err
	}
	return all, nil // an instance without activities doesn't tell
}

// CommitAuthors compares the two commits: GitHub lists what a merge brought too.
func (d *Driver) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	ctx, owner, name := inRepo(ctx, r)
	var commits []*gh.RepositoryCommit
	if base == "" {
		op := "read a commit of " + r.String()
		// One changed file is asked for, not all: only the people matter.
		c, _, err := d.api.Repositories.GetCommit(ctx, owner, name, rest.Segment(head), &gh.ListOptions{PerPage: 1})
		if err != nil {
			return nil, wrapError(op, err)
		}
		return d.toAuthors(ctx, op, r, append(commits, c))
	}
	commits, op, err := d.compareCommits(ctx, r, base, head)
	if err != nil {
		return nil, err
	}
	return d.toAuthors(ctx, op, r, commits)
}

// Commits compares the two, page by page.
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
		of := c.GetCommit()
		all[i] = forge.Commit{SHA: c.GetSHA(), Author: of.GetAuthor().GetName(), Message: of.GetMessage(),
			At: of.GetCommitter().GetDate().Time}
	}
	return all, nil
}

// compareCommits lists what head has and base hasn't, until they are too many.
func (d *Driver) compareCommits(ctx context.Context, r forge.Repo, base, head string) (commits []*gh.RepositoryCommit, op string,
	err error) {
	ctx, owner, name := inRepo(ctx, r)
	op = "compare two commits of " + r.String()
	err = forEach(op, bounds, func(page gh.ListOptions) ([]*gh.RepositoryCommit, *gh.Response, error) {
		c, resp, err := d.api.Repositories.CompareCommits(ctx, owner, name, rest.Segment(base), rest.Segment(head), &page)
		if err != nil {
			return nil, resp, err
		}
		return c.Commits, resp, nil
	}, func(c *gh.RepositoryCommit) bool {
		commits = append(commits, c)
		return len(commits) >= forge.MaxCommits
	})
	return commits, op, err
}

// toAuthors says who made commits, or that they are too many.
func (d *Driver) toAuthors(ctx context.Context, op string, r forge.Repo, commits []*gh.RepositoryCommit) ([]forge.CommitAuthors, error) {
	if err := forge.RequireFewCommits(op, len(commits)); err != nil {
		return nil, err
	}
	known := map[string]forge.User{} // by address, in lower case
	all := make([]forge.CommitAuthors, len(commits))
	for i, c := range commits {
		all[i].Commit = c.GetSHA()
		for _, p := range []forge.Contributor{
			{Name: c.GetCommit().GetAuthor().GetName(), Email: c.GetCommit().GetAuthor().GetEmail(), User: toUser(c.GetAuthor())},
			{Name: c.GetCommit().GetCommitter().GetName(), Email: c.GetCommit().GetCommitter().GetEmail(), User: toUser(c.GetCommitter())},
		} {
			if d.isForgeItself(p) {
				continue
			}
			all[i].AddContributor(p)
			if p.User != (forge.User{}) {
				known[strings.ToLower(p.Email)] = p.User
			}
		}
	}
	for i, c := range commits {
		if err := d.addCoAuthors(ctx, r, &all[i], c.GetCommit().GetMessage(), known); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isForgeItself says that it is no person but GitHub: on GitHub Enterprise the address
// need not belong to an account.
func (d *Driver) isForgeItself(p forge.Contributor) bool {
	if p.User != (forge.User{}) {
		return strings.EqualFold(p.User.Login, webFlowLogin)
	}
	return isForgeAddress(d.base, p.Email)
}

// isForgeAddress says that an address is the one by which GitHub itself commits.
func isForgeAddress(base *url.URL, email string) bool {
	return strings.EqualFold(email, "noreply@github.com") || strings.EqualFold(email, "noreply@"+base.Hostname()) ||
		strings.EqualFold(email, "noreply@"+noReplyHost(base))
}

// addCoAuthors adds those whom a commit's message names. GitHub's REST API doesn't
// connect them with accounts: what the address doesn't tell, and no other commit of
// these, its GraphQL API is asked for.
func (d *Driver) addCoAuthors(ctx context.Context, r forge.Repo, c *forge.CommitAuthors, message string,
	known map[string]forge.User) error {
	contributors, tooMany := forge.CoAuthors(message)
	if tooMany {
		return &forge.Error{Op: "read who made a commit of " + r.String(), Kind: forge.ErrTooMany, Message: "the commit " + c.Commit +
			" names too many co-authors"}
	}
	queried := false
	for _, p := range contributors {
		p.User = known[strings.ToLower(p.Email)]
		if p.User == (forge.User{}) {
			p.User, _ = forge.ParseNoReply(p.Email, noReplyHost(d.base))
		}
		if p.User == (forge.User{}) && !queried {
			queried = true
			if err := d.linkAuthors(ctx, r, c.Commit, known); err != nil {
				return err
			}
			p.User = known[strings.ToLower(p.Email)]
		}
		if !d.isForgeItself(p) {
			c.AddContributor(p)
		}
	}
	return nil
}

// authorsQuery reads who made a commit with whom.
const authorsQuery = `query($owner:String!,$name:String!,$oid:GitObjectID!){repository(owner:$owner,name:$name){object(oid:$oid){...on Commit{authors(first:100){nodes{email user{databaseId login}}}}}}}`

// linkAuthors asks for the accounts of a commit's author and co-authors, by address. An
// instance without GraphQL knows none.
func (d *Driver) linkAuthors(ctx context.Context, r forge.Repo, commit string, known map[string]forge.User) error {
	op := "read the co-authors of a commit of " + r.String()
	var data struct {
		Repository struct {
			Object struct {
				Authors struct {
					Nodes []struct {
						Email string
						User  *struct {
							DatabaseID int64 `json:"databaseId"`
							Login      string
						}
					}
				}
			}
		}
	}
	if err := d.callGraphQL(ctx, op, r, authorsQuery, map[string]any{"owner": r.Owner, "name": r.Name, "oid": commit},
		&data); forge.IsRetryable(err) {
		return err
	}
	for _, n := range data.Repository.Object.Authors.Nodes {
		if n.User != nil {
			known[strings.ToLower(n.Email)] = forge.User{ID: n.User.DatabaseID, Login: n.User.Login}
		}
	}
	return nil
}
