package intercept

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// The methods of a forge that ask it for something. Those that don't are the forge's own.

// Me implements forge.Forge.
func (f *Forge) Me(ctx context.Context) (forge.User, error) {
	return callThrough(ctx, f, Call{Name: "Me"}, func() (forge.User, error) { return f.Forge.Me(ctx) })
}

// PullRequests implements forge.Forge.
func (f *Forge) PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	return callThrough(ctx, f, Call{Name: "PullRequests"}, func() ([]forge.PullRequest, error) {
		return f.Forge.PullRequests(ctx,
			r, since)
	})
}

// PullRequest implements forge.Forge.
func (f *Forge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	return callThrough(ctx, f, Call{Name: "PullRequest", Number: number},
		func() (*forge.PullRequest, error) { return f.Forge.PullRequest(ctx, r, number) })
}

// PullRequestsByBranch implements forge.Forge.
func (f *Forge) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) ([]forge.PullRequest, error) {
	return callThrough(ctx, f, Call{Name: "PullRequestsByBranch", Subject: branch},
		func() ([]forge.PullRequest, error) { return f.Forge.PullRequestsByBranch(ctx, r, branch) })
}

// UpdatePullRequest implements forge.Forge.
func (f *Forge) UpdatePullRequest(ctx context.Context, r forge.Repo, number int, c forge.PullRequestUpdate) error {
	return f.through(ctx, Call{Name: "UpdatePullRequest", Writes: true, Number: number},
		func() error { return f.Forge.UpdatePullRequest(ctx, r, number, c) })
}

// Merge implements forge.Forge.
func (f *Forge) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (string, error) {
	return callThrough(ctx, f, Call{Name: "Merge", Writes: true, Number: m.Number},
		func() (string, error) { return f.Forge.Merge(ctx, r, m) })
}

// UpdateBranch implements forge.Forge.
func (f *Forge) UpdateBranch(ctx context.Context, r forge.Repo, number int, head string) error {
	return f.through(ctx, Call{Name: "UpdateBranch", Writes: true, Number: number},
		func() error { return f.Forge.UpdateBranch(ctx, r, number, head) })
}

// LeaveQueue implements forge.Forge.
func (f *Forge) LeaveQueue(ctx context.Context, r forge.Repo, number int) error {
	return f.through(ctx, Call{Name: "LeaveQueue", Writes: true, Number: number},
		func() error { return f.Forge.LeaveQueue(ctx, r, number) })
}

// Rules implements forge.Forge.
func (f *Forge) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	return callThrough(ctx, f, Call{Name: "Rules", Subject: branch},
		func() (*forge.BranchRules, error) { return f.Forge.Rules(ctx, r, branch) })
}

// DeleteBranch implements forge.Forge.
func (f *Forge) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	return f.through(ctx, Call{Name: "DeleteBranch", Writes: true, Subject: branch},
		func() error { return f.Forge.DeleteBranch(ctx, r, branch) })
}

// Reviews implements forge.Forge.
func (f *Forge) Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error) {
	return callThrough(ctx, f, Call{Name: "Reviews", Number: number},
		func() ([]forge.Review, error) { return f.Forge.Reviews(ctx, r, number) })
}

// RequestReviewers implements forge.Forge.
func (f *Forge) RequestReviewers(ctx context.Context, r forge.Repo, number int, from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	return callThrough(ctx, f, Call{Name: "RequestReviewers", Writes: true, Number: number},
		func() ([]forge.RefusedReviewer, error) { return f.Forge.RequestReviewers(ctx, r, number, from) })
}

// Permission implements forge.Forge.
func (f *Forge) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	return callThrough(ctx, f, Call{Name: "Permission", Subject: login},
		func() (forge.Permission, error) { return f.Forge.Permission(ctx, r, login) })
}

// IsTeamMember implements forge.Forge.
func (f *Forge) IsTeamMember(ctx context.Context, t forge.Team, login string) (bool, error) {
	return callThrough(ctx, f, Call{Name: "IsTeamMember", Subject: login},
		func() (bool, error) { return f.Forge.IsTeamMember(ctx, t, login) })
}

// TeamNumber implements forge.Forge.
func (f *Forge) TeamNumber(ctx context.Context, t forge.Team) (int64, error) {
	return callThrough(ctx, f, Call{Name: "TeamNumber", Subject: t.String()}, func() (int64, error) { return f.Forge.TeamNumber(ctx, t) })
}

// MergedPullRequests implements forge.Forge.
func (f *Forge) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) ([]forge.PullRequest, error) {
	return callThrough(ctx, f, Call{Name: "MergedPullRequests", Subject: commit},
		func() ([]forge.PullRequest, error) { return f.Forge.MergedPullRequests(ctx, r, commit) })
}

// PullRequestAuthors implements forge.Forge.
func (f *Forge) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) ([]forge.CommitAuthors, error) {
	return callThrough(ctx, f, Call{Name: "PullRequestAuthors", Number: pr.Number},
		func() ([]forge.CommitAuthors, error) { return f.Forge.PullRequestAuthors(ctx, r, pr) })
}

// CommitAuthors implements forge.Forge.
func (f *Forge) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	return callThrough(ctx, f, Call{Name: "CommitAuthors", Subject: head},
		func() ([]forge.CommitAuthors, error) { return f.Forge.CommitAuthors(ctx, r, base, head) })
}

// Commits implements forge.Forge.
func (f *Forge) Commits(ctx context.Context, r forge.Repo, base, head string) ([]forge.Commit, error) {
	return callThrough(ctx, f, Call{Name: "Commits", Subject: head},
		func() ([]forge.Commit, error) { return f.Forge.Commits(ctx, r, base, head) })
}

// Pushes implements forge.Forge.
func (f *Forge) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	return f.through(ctx, Call{Name: "Pushes", Subject: branch}, func() error { return f.Forge.Pushes(ctx, r, branch, enough) })
}

// AddLabels implements forge.Forge.
func (f *Forge) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	return f.through(ctx, Call{Name: "AddLabels", Writes: true, Number: number},
		func() error { return f.Forge.AddLabels(ctx, r, number, labels...) })
}

// RemoveLabel implements forge.Forge.
func (f *Forge) RemoveLabel(ctx context.Context, r forge.Repo, number int, label string) error {
	return f.through(ctx, Call{Name: "RemoveLabel", Writes: true, Number: number, Subject: label},
		func() error { return f.Forge.RemoveLabel(ctx, r, number, label) })
}

// Comments implements forge.Forge.
func (f *Forge) Comments(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error) {
	return callThrough(ctx, f, Call{Name: "Comments", Number: number},
		func() ([]forge.Comment, error) { return f.Forge.Comments(ctx, r, number, since) })
}

// CreateComment implements forge.Forge.
func (f *Forge) CreateComment(ctx context.Context, r forge.Repo, number int, body string) (*forge.Comment, error) {
	return callThrough(ctx, f, Call{Name: "CreateComment", Writes: true, Number: number},
		func() (*forge.Comment, error) { return f.Forge.CreateComment(ctx, r, number, body) })
}

// UpdateComment implements forge.Forge.
func (f *Forge) UpdateComment(ctx context.Context, r forge.Repo, number int, id int64, body string) error {
	return f.through(ctx, Call{Name: "UpdateComment", Writes: true, Number: number},
		func() error { return f.Forge.UpdateComment(ctx, r, number, id, body) })
}

// React implements forge.Forge.
func (f *Forge) React(ctx context.Context, r forge.Repo, number int, comment int64, reaction string) error {
	return f.through(ctx, Call{Name: "React", Writes: true, Number: number, Subject: reaction},
		func() error { return f.Forge.React(ctx, r, number, comment, reaction) })
}

// HasReacted implements forge.Forge.
func (f *Forge) HasReacted(ctx context.Context, r forge.Repo, number int, comment int64) (bool, error) {
	return callThrough(ctx, f, Call{Name: "HasReacted", Number: number},
		func() (bool, error) { return f.Forge.HasReacted(ctx, r, number, comment) })
}

// SetStatus implements forge.Forge.
func (f *Forge) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	return f.through(ctx, Call{Name: "SetStatus", Writes: true, Subject: string(s.State)},
		func() error { return f.Forge.SetStatus(ctx, r, commit, s) })
}

// Statuses implements forge.Forge.
func (f *Forge) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	return callThrough(ctx, f, Call{Name: "Statuses", Subject: commit},
		func() ([]forge.Status, error) { return f.Forge.Statuses(ctx, r, commit) })
}

// Checks implements forge.Forge.
func (f *Forge) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	return callThrough(ctx, f, Call{Name: "Checks", Subject: commit},
		func() ([]forge.Check, error) { return f.Forge.Checks(ctx, r, commit) })
}

// Deployments implements forge.Forge.
func (f *Forge) Deployments(ctx context.Context, r forge.Repo, environment, task string) ([]forge.Deployment, error) {
	return callThrough(ctx, f, Call{Name: "Deployments", Subject: environment},
		func() ([]forge.Deployment, error) { return f.Forge.Deployments(ctx, r, environment, task) })
}

// CreateDeployment implements forge.Forge.
func (f *Forge) CreateDeployment(ctx context.Context, r forge.Repo, n forge.Deployment) (int64, error) {
	return callThrough(ctx, f, Call{Name: "CreateDeployment", Writes: true, Subject: n.Environment},
		func() (int64, error) { return f.Forge.CreateDeployment(ctx, r, n) })
}

// DeploymentState implements forge.Forge.
func (f *Forge) DeploymentState(ctx context.Context, r forge.Repo, id int64) (forge.DeploymentState, error) {
	return callThrough(ctx, f, Call{Name: "DeploymentState"}, func() (forge.DeploymentState, error) {
		return f.Forge.DeploymentState(
			ctx, r, id)
	})
}

// SetDeploymentStatus implements forge.Forge.
func (f *Forge) SetDeploymentStatus(ctx context.Context, r forge.Repo, id int64, s forge.DeploymentStatus) error {
	return f.through(ctx, Call{Name: "SetDeploymentStatus", Writes: true, Subject: string(s.State)},
		func() error { return f.Forge.SetDeploymentStatus(ctx, r, id, s) })
}

// EnsureHook implements forge.Forge.
func (f *Forge) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (bool, error) {
	return callThrough(ctx, f, Call{Name: "EnsureHook", Writes: true}, func() (bool, error) { return f.Forge.EnsureHook(ctx, r, h) })
}

// MissedDeliveries implements forge.Forge.
func (f *Forge) MissedDeliveries(ctx context.Context, r forge.Repo, q forge.DeliveryQuery) (forge.MissedDeliveries, error) {
	return callThrough(ctx, f, Call{Name: "MissedDeliveries"}, func() (forge.MissedDeliveries, error) {
		return f.Forge.MissedDeliveries(
			ctx, r, q)
	})
}

// CreatePullRequest implements forge.Forge.
func (f *Forge) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (pr *forge.PullRequest, created bool,
	err error) {
	pr, err = callThrough(ctx, f, Call{Name: "CreatePullRequest", Writes: true, Subject: n.Branch}, func() (*forge.PullRequest, error) {
		pr, created, err = f.Forge.CreatePullRequest(ctx, r, n)
		return pr, err
	})
	return pr, created, err
}

// Authorship implements forge.Forge.
func (f *Forge) Authorship(ctx context.Context, r forge.Repo, number int, c *forge.Comment) (a forge.Authorship, editor string, err error) {
	a, err = callThrough(ctx, f, Call{Name: "Authorship", Number: number}, func() (forge.Authorship, error) {
		a, editor, err = f.Forge.Authorship(ctx, r, number, c)
		return a, err
	})
	return a, editor, err
}

// ReviewedPullRequests implements forge.BulkReader, where the forge does.
func (f *Forge) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) ([]forge.ReviewedPullRequest, error) {
	bulk, is := f.Forge.(forge.BulkReader)
	if !is {
		return nil, forge.ErrUnsupported
	}
	return callThrough(ctx, f, Call{Name: "ReviewedPullRequests"},
		func() ([]forge.ReviewedPullRequest, error) { return bulk.ReviewedPullRequests(ctx, r, numbers...) })
}
