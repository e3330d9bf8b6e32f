package github

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// Every call goes to the driver of its repository.

// onRepository makes a call with the driver of a repository.
func onRepository[T any](ctx context.Context, p *App, r forge.Repo, call func(d *Driver) (T, error)) (T, error) {
	d, err := p.driver(ctx, r)
	if err != nil {
		var none T
		return none, err
	}
	return call(d)
}

// runOnRepository is onRepository for a call that answers nothing.
func (p *App) runOnRepository(ctx context.Context, r forge.Repo, call func(d *Driver) error) error {
	d, err := p.driver(ctx, r)
	if err != nil {
		return err
	}
	return call(d)
}

// CloneURL is where Git finds a repository, whoever may read it.
func (p *App) CloneURL(_ context.Context, r forge.Repo) (string, error) {
	return cloneURL(p.base, r), nil
}

// CommitURL is the page of a commit.
func (p *App) CommitURL(r forge.Repo, commit string) string { return commitURL(p.base, r, commit) }

// CompareURL is the page of what head has and base hasn't.
func (p *App) CompareURL(r forge.Repo, base, head string) string {
	return compareURL(p.base, r, base, head)
}

// GitAuth gives the token of the repository's installation, which is no other repository's.
func (p *App) GitAuth(ctx context.Context, r forge.Repo) (username, password string, err error) {
	d, err := p.driver(ctx, r)
	if err != nil {
		return "", "", err
	}
	return d.GitAuth(ctx, r)
}

// GitRefused takes note that Git's remote refused a token that GitAuth gave for a repository, and
// says whether GitAuth gives another one now: Git's calls aren't seen here, and a token may have been
// revoked.
func (p *App) GitRefused(r forge.Repo, token string) bool {
	p.mu.Lock()
	var all []*tokenSource
	for _, d := range p.drivers {
		if strings.EqualFold(d.tokens.owner, r.Owner) && strings.EqualFold(d.tokens.repo, r.Name) {
			all = append(all, d.tokens)
		}
	}
	p.mu.Unlock()
	return slices.ContainsFunc(all, func(s *tokenSource) bool { return s.refusedByGit(token) })
}

// HasDeployments is true: GitHub keeps them.
func (p *App) HasDeployments() bool { return true }

// IsTeamMember needs the App in the team's organisation.
func (p *App) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	d, err := p.teamDriver(ctx, t, "read whether "+login+" is in "+t.String())
	if err != nil {
		return false, err
	}
	return d.IsTeamMember(ctx, t, login)
}

// TeamNumber needs the App in the team's organisation.
func (p *App) TeamNumber(ctx context.Context, t forge.Team) (int64, error) {
	d, err := p.teamDriver(ctx, t, "read the number of the team "+t.String())
	if err != nil {
		return 0, err
	}
	return d.TeamNumber(ctx, t)
}

// teamDriver reads what an organisation shows its installation. ErrNotFound where the App may not
// work there: whoever isn't there sees no team.
func (p *App) teamDriver(ctx context.Context, t forge.Team, op string) (*Driver, error) {
	i, err := p.findInstallation(ctx, t.Organisation, "")
	var rests *forge.Error
	switch {
	case errors.As(err, &rests) && errors.Is(err, forge.ErrNotInstalled):
		return nil, &forge.Error{Op: op, Kind: forge.ErrNotFound, Message: rests.Message, Hint: rests.Hint}
	case err != nil:
		return nil, err
	}
	return p.driverOf(i, "").Driver, nil
}

// RepositoryNumber is the repository's driver's.
func (p *App) RepositoryNumber(ctx context.Context, r forge.Repo) (int64, error) {
	return onRepository(ctx, p, r, func(d *Driver) (int64, error) { return d.RepositoryNumber(ctx, r) })
}

// PullRequests is the repository's driver's.
func (p *App) PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.PullRequest, error) { return d.PullRequests(ctx, r, since) })
}

// PullRequest is the repository's driver's.
func (p *App) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	return onRepository(ctx, p, r, func(d *Driver) (*forge.PullRequest, error) { return d.PullRequest(ctx, r, number) })
}

// ReviewedPullRequests is the repository's driver's.
func (p *App) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) ([]forge.ReviewedPullRequest, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.ReviewedPullRequest, error) {
		return d.ReviewedPullRequests(ctx, r, numbers...)
	})
}

// PullRequestsByBranch is the repository's driver's.
func (p *App) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) ([]forge.PullRequest, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.PullRequest, error) { return d.PullRequestsByBranch(ctx, r, branch) })
}

// MayOpen is the repository's driver's.
func (p *App) MayOpen(ctx context.Context, r forge.Repo) error {
	d, err := p.driver(ctx, r)
	if err != nil {
		return err
	}
	return d.MayOpen(ctx, r)
}

// CreatePullRequest is the repository's driver's.
func (p *App) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (*forge.PullRequest, bool, error) {
	d, err := p.driver(ctx, r)
	if err != nil {
		return nil, false, err
	}
	return d.CreatePullRequest(ctx, r, n)
}

// UpdatePullRequest is the repository's driver's.
func (p *App) UpdatePullRequest(ctx context.Context, r forge.Repo, number int, c forge.PullRequestUpdate) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.UpdatePullRequest(ctx, r, number, c) })
}

// Rules is the repository's driver's.
func (p *App) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	return onRepository(ctx, p, r, func(d *Driver) (*forge.BranchRules, error) { return d.Rules(ctx, r, branch) })
}

// Merge is the repository's driver's.
func (p *App) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	return onRepository(ctx, p, r, func(d *Driver) (string, error) { return d.Merge(ctx, r, m) })
}

// UpdateBranch is the repository's driver's.
func (p *App) UpdateBranch(ctx context.Context, r forge.Repo, number int, head string) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.UpdateBranch(ctx, r, number, head) })
}

// LeaveQueue is the repository's driver's.
func (p *App) LeaveQueue(ctx context.Context, r forge.Repo, number int) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.LeaveQueue(ctx, r, number) })
}

// DeleteBranch is the repository's driver's.
func (p *App) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.DeleteBranch(ctx, r, branch) })
}

// Reviews is the repository's driver's.
func (p *App) Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.Review, error) { return d.Reviews(ctx, r, number) })
}

// RequestReviewers is the repository's driver's.
func (p *App) RequestReviewers(ctx context.Context, r forge.Repo, number int, from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.RefusedReviewer, error) { return d.RequestReviewers(ctx, r, number, from) })
}

// Permission is the repository's driver's.
func (p *App) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	return onRepository(ctx, p, r, func(d *Driver) (forge.Permission, error) { return d.Permission(ctx, r, login) })
}

// MergedPullRequests is the repository's driver's.
func (p *App) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) ([]forge.PullRequest, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.PullRequest, error) { return d.MergedPullRequests(ctx, r, commit) })
}

// PullRequestAuthors is the repository's driver's.
func (p *App) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) ([]forge.CommitAuthors, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.CommitAuthors, error) { return d.PullRequestAuthors(ctx, r, pr) })
}

// CommitAuthors is the repository's driver's.
func (p *App) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.CommitAuthors, error) { return d.CommitAuthors(ctx, r, base, head) })
}

// Commits is the repository's driver's.
func (p *App) Commits(ctx context.Context, r forge.Repo, base, head string) ([]forge.Commit, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.Commit, error) { return d.Commits(ctx, r, base, head) })
}

// Pushes is the repository's driver's.
func (p *App) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.Pushes(ctx, r, branch, enough) })
}

// AddLabels is the repository's driver's.
func (p *App) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.AddLabels(ctx, r, number, labels...) })
}

// RemoveLabel is the repository's driver's.
func (p *App) RemoveLabel(ctx context.Context, r forge.Repo, number int, label string) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.RemoveLabel(ctx, r, number, label) })
}

// Comments is the repository's driver's.
func (p *App) Comments(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.Comment, error) { return d.Comments(ctx, r, number, since) })
}

// CreateComment is the repository's driver's.
func (p *App) CreateComment(ctx context.Context, r forge.Repo, number int, body string) (*forge.Comment, error) {
	return onRepository(ctx, p, r, func(d *Driver) (*forge.Comment, error) { return d.CreateComment(ctx, r, number, body) })
}

// UpdateComment is the repository's driver's.
func (p *App) UpdateComment(ctx context.Context, r forge.Repo, number int, id int64, body string) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.UpdateComment(ctx, r, number, id, body) })
}

// React is the repository's driver's.
func (p *App) React(ctx context.Context, r forge.Repo, number int, comment int64, reaction string) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.React(ctx, r, number, comment, reaction) })
}

// Authorship is the repository's driver's.
func (p *App) Authorship(ctx context.Context, r forge.Repo, number int, c *forge.Comment) (a forge.Authorship, editor string, err error) {
	d, err := p.driver(ctx, r)
	if err != nil {
		return forge.AuthorshipUnknown, "", err
	}
	return d.Authorship(ctx, r, number, c)
}

// HasReacted is the repository's driver's.
func (p *App) HasReacted(ctx context.Context, r forge.Repo, number int, comment int64) (bool, error) {
	return onRepository(ctx, p, r, func(d *Driver) (bool, error) { return d.HasReacted(ctx, r, number, comment) })
}

// SetStatus is the repository's driver's.
func (p *App) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.SetStatus(ctx, r, commit, s) })
}

// Statuses is the repository's driver's.
func (p *App) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.Status, error) { return d.Statuses(ctx, r, commit) })
}

// Checks is the repository's driver's.
func (p *App) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.Check, error) { return d.Checks(ctx, r, commit) })
}

// Deployments is the repository's driver's.
func (p *App) Deployments(ctx context.Context, r forge.Repo, environment, task string) ([]forge.Deployment, error) {
	return onRepository(ctx, p, r, func(d *Driver) ([]forge.Deployment, error) { return d.Deployments(ctx, r, environment, task) })
}

// CreateDeployment is the repository's driver's.
func (p *App) CreateDeployment(ctx context.Context, r forge.Repo, n forge.Deployment) (int64, error) {
	return onRepository(ctx, p, r, func(d *Driver) (int64, error) { return d.CreateDeployment(ctx, r, n) })
}

// DeploymentState is the repository's driver's.
func (p *App) DeploymentState(ctx context.Context, r forge.Repo, id int64) (forge.DeploymentState, error) {
	return onRepository(ctx, p, r, func(d *Driver) (forge.DeploymentState, error) { return d.DeploymentState(ctx, r, id) })
}

// SetDeploymentStatus is the repository's driver's.
func (p *App) SetDeploymentStatus(ctx context.Context, r forge.Repo, id int64, s forge.DeploymentStatus) error {
	return p.runOnRepository(ctx, r, func(d *Driver) error { return d.SetDeploymentStatus(ctx, r, id, s) })
}
