package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// commit is what is read of a commit.
type commit struct {
	ID             string     `json:"id"`
	Message        string     `json:"message"`
	AuthorName     string     `json:"author_name"`
	AuthorEmail    string     `json:"author_email"`
	CommitterName  string     `json:"committer_name"`
	CommitterEmail string     `json:"committer_email"`
	CommittedDate  *time.Time `json:"committed_date"`
}

func (c *commit) missing() string {
	if c.ID == "" {
		return "a commit's name"
	}
	return ""
}

// MergedPullRequests gives the merged ones that have the commit among theirs or landed as it.
// The branch moves before GitLab calls a merge request merged: one in between is ErrRetryable,
// as what it brings would be taken for a push.
func (d *Driver) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) ([]forge.PullRequest, error) {
	op := "find the merge requests of a commit of " + r.String()
	var found []forge.PullRequest
	merging := 0
	err := forEach(ctx, d, op, r, maxPages, query{}, func(m mergeRequest) bool {
		if pr := m.pullRequest(); pr.State == forge.Merged {
			found = append(found, pr)
		}
		if m.State == mergeLocked {
			merging = m.IID
		}
		return merging != 0
	}, "repository", "commits", commit, "merge_requests")
	if err == nil && merging != 0 {
		return nil, &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: number(r, merging) + " is being merged"}
	}
	return found, err
}

// PullRequestAuthors lists the commits of a merge request, and who pushed them where that is told.
func (d *Driver) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) ([]forge.CommitAuthors, error) {
	op := "list the commits of " + number(r, pr.Number)
	var commits []commit
	err := forEach(ctx, d, op, r, maxPages, query{}, func(c commit) bool {
		commits = append(commits, c)
		return len(commits) >= forge.MaxCommits
	}, below(pr.Number, "commits")...)
	if err != nil {
		return nil, err
	}
	slices.Reverse(commits) // GitLab lists the newest first
	all, err := d.toAuthors(ctx, op, commits)
	if err != nil {
		return nil, err
	}
	return all, d.addPushers(ctx, r, pr, all)
}

// CommitAuthors compares the two commits.
func (d *Driver) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	if base != "" {
		commits, op, err := d.compareCommits(ctx, r, base, head)
		if err != nil {
			return nil, err
		}
		return d.toAuthors(ctx, op, commits)
	}
	op := "read a commit of " + r.String()
	var c commit
	if _, err := d.callProject(ctx, op, r, http.MethodGet, query{Stats: no}, &c, "repository", "commits", head); err != nil {
		return nil, err
	}
	return d.toAuthors(ctx, op, []commit{c})
}

// Commits compares the two.
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
		all[i] = forge.Commit{SHA: c.ID, Author: c.AuthorName, Message: c.Message, At: timeOrZero(c.CommittedDate)}
	}
	return all, nil
}

// comparison is what head has and base hasn't.
type comparison struct {
	Commit  *commit  `json:"commit"` // the head
	Commits []commit `json:"commits"`
}

func (c *comparison) missing() string {
	if c.Commits == nil {
		return "the commits"
	}
	for i := range c.Commits {
		if what := c.Commits[i].missing(); what != "" {
			return what
		}
	}
	return ""
}

// compareCommits lists what head has and base hasn't, oldest first.
func (d *Driver) compareCommits(ctx context.Context, r forge.Repo, base, head string) (commits []commit, op string, err error) {
	op = "compare two commits of " + r.String()
	var compared comparison
	if _, err := d.callProject(ctx, op, r, http.MethodGet, query{From: base, To: head}, &compared, "repository", "compare"); err != nil {
		return nil, op, err
	}
	if all := compared.Commits; len(all) > 1 && compared.Commit != nil && all[0].ID == compared.Commit.ID {
		slices.Reverse(all)
	}
	return compared.Commits, op, nil
}

// toAuthors says who made commits, or that they are too many. Commits have addresses, of which
// GitLab tells the account only where that shows it.
func (d *Driver) toAuthors(ctx context.Context, op string, commits []commit) ([]forge.CommitAuthors, error) {
	if err := forge.RequireFewCommits(op, len(commits)); err != nil {
		return nil, err
	}
	known := map[string]forge.User{} // by address, in lower case
	all := make([]forge.CommitAuthors, len(commits))
	for i, c := range commits {
		all[i].Commit = c.ID
		coAuthors, tooMany := forge.CoAuthors(c.Message)
		if tooMany {
			return nil, &forge.Error{Op: op, Kind: forge.ErrTooMany, Message: "the commit " + c.ID + " names too many co-authors"}
		}
		for _, p := range append([]forge.Contributor{{Name: c.AuthorName, Email: c.AuthorEmail},
			{Name: c.CommitterName, Email: c.CommitterEmail}}, coAuthors...) {
			email := strings.ToLower(p.Email)
			if _, ok := known[email]; !ok {
				u, err := d.findUserByEmail(ctx, email)
				if err != nil {
					return nil, err
				}
				known[email] = u
			}
			p.User = known[email]
			all[i].AddContributor(p)
		}
	}
	return all, nil
}
