package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// call is one call of the forge: it may fail before it has an effect or after it.
func call[T any](ctx context.Context, f *reachedForge, op string, writes bool, do func() (T, error)) (T, error) {
	var none T
	t := taskOf(ctx)
	if err := f.sim.reach(t, theForge, op, false); err != nil {
		return none, err
	}
	if t != nil && writes {
		f.sim.truth.lastWrite = f.sim.now
	}
	out, err := do()
	if err != nil || !writes {
		return out, err
	}
	f.sim.judgeLease(t, "calls "+op)
	if err := f.sim.reach(t, theForge, op, true); err != nil {
		return none, err
	}
	return out, nil
}

// effect is a call without an answer.
func effect(ctx context.Context, f *reachedForge, op string, writes bool, do func() error) error {
	_, err := call(ctx, f, op, writes, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (f *reachedForge) Me(ctx context.Context) (forge.User, error) {
	return call(ctx, f, "Me", false, func() (forge.User, error) { return f.Forge.Me(ctx) })
}

func (f *reachedForge) PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	return call(ctx, f, "PullRequests", false, func() ([]forge.PullRequest, error) { return f.Forge.PullRequests(ctx, r, since) })
}

func (f *reachedForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	return call(ctx, f, "PullRequest", false, func() (*forge.PullRequest, error) { return f.Forge.PullRequest(ctx, r, number) })
}

// ReviewedPullRequests is the forge's own, where it reads several together.
func (f *reachedForge) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) ([]forge.ReviewedPullRequest, error) {
	bulk, is := f.Forge.(forge.BulkReader)
	if !is {
		return nil, forge.ErrUnsupported
	}
	return call(ctx, f, "ReviewedPullRequests", false, func() ([]forge.ReviewedPullRequest, error) { return bulk.ReviewedPullRequests(ctx, r, numbers...) })
}

func (f *reachedForge) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) ([]forge.PullRequest, error) {
	return call(ctx, f, "PullRequestsByBranch", false, func() ([]forge.PullRequest, error) { return f.Forge.PullRequestsByBranch(ctx, r, branch) })
}

func (f *reachedForge) Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error) {
	return call(ctx, f, "Reviews", false, func() ([]forge.Review, error) { return f.Forge.Reviews(ctx, r, number) })
}

func (f *reachedForge) RequestReviewers(ctx context.Context, r forge.Repo, number int, from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	refused, err := call(ctx, f, "RequestReviewers", true, func() ([]forge.RefusedReviewer, error) { return f.Forge.RequestReviewers(ctx, r, number, from) })
	if err == nil { // without an answer it has to be done again
		f.sim.noteRequested(number, from)
	}
	return refused, err
}

func (f *reachedForge) Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error) {
	return call(ctx, f, "Permission", false, func() (forge.Permission, error) { return f.Forge.Permission(ctx, r, login) })
}

func (f *reachedForge) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) ([]forge.PullRequest, error) {
	return call(ctx, f, "MergedPullRequests", false, func() ([]forge.PullRequest, error) { return f.Forge.MergedPullRequests(ctx, r, commit) })
}

func (f *reachedForge) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) ([]forge.CommitAuthors, error) {
	return call(ctx, f, "PullRequestAuthors", false, func() ([]forge.CommitAuthors, error) { return f.Forge.PullRequestAuthors(ctx, r, pr) })
}

func (f *reachedForge) Commits(ctx context.Context, r forge.Repo, base, head string) ([]forge.Commit, error) {
	return call(ctx, f, "Commits", false, func() ([]forge.Commit, error) { return f.Forge.Commits(ctx, r, base, head) })
}

func (f *reachedForge) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) ([]forge.CommitAuthors, error) {
	return call(ctx, f, "CommitAuthors", false, func() ([]forge.CommitAuthors, error) { return f.Forge.CommitAuthors(ctx, r, base, head) })
}

func (f *reachedForge) Comments(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error) {
	all, err := call(ctx, f, "Comments", false, func() ([]forge.Comment, error) { return f.Forge.Comments(ctx, r, number, since) })
	if err == nil {
		f.sim.noteCommentsRead(taskOf(ctx), number)
	}
	return all, err
}

func (f *reachedForge) HasReacted(ctx context.Context, r forge.Repo, number int, comment int64) (bool, error) {
	return call(ctx, f, "HasReacted", false, func() (bool, error) { return f.Forge.HasReacted(ctx, r, number, comment) })
}

func (f *reachedForge) Authorship(ctx context.Context, r forge.Repo, number int, c *forge.Comment) (a forge.Authorship, editor string, err error) {
	a, err = call(ctx, f, "Authorship", false, func() (forge.Authorship, error) {
		a, editor, err = f.Forge.Authorship(ctx, r, number, c)
		return a, err
	})
	return a, editor, err
}

func (f *reachedForge) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	return call(ctx, f, "Statuses", false, func() ([]forge.Status, error) { return f.Forge.Statuses(ctx, r, commit) })
}

func (f *reachedForge) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	return call(ctx, f, "Checks", false, func() ([]forge.Check, error) { return f.Forge.Checks(ctx, r, commit) })
}

func (f *reachedForge) UpdatePullRequest(ctx context.Context, r forge.Repo, number int, u forge.PullRequestUpdate) error {
	return effect(ctx, f, "UpdatePullRequest", true, func() error {
		f.sim.noteUpdate(number, u)
		return f.Forge.UpdatePullRequest(ctx, r, number, u)
	})
}

func (f *reachedForge) UpdateBranch(ctx context.Context, r forge.Repo, number int, head string) error {
	return effect(ctx, f, "UpdateBranch", true, func() error { return f.Forge.UpdateBranch(ctx, r, number, head) })
}

func (f *reachedForge) LeaveQueue(ctx context.Context, r forge.Repo, number int) error {
	return effect(ctx, f, "LeaveQueue", true, func() error {
		err := f.Forge.LeaveQueue(ctx, r, number)
		if err == nil {
			f.sim.report("%s takes #%d out of the merge queue", f.sim.nameOf(taskOf(ctx)), number)
			delete(f.sim.truth.joined, number) // it may join again when nothing stands against it
		}
		return err
	})
}

func (f *reachedForge) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	return effect(ctx, f, "DeleteBranch", true, func() error { return f.Forge.DeleteBranch(ctx, r, branch) })
}

func (f *reachedForge) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	return effect(ctx, f, "Pushes", false, func() error { return f.Forge.Pushes(ctx, r, branch, enough) })
}

func (f *reachedForge) RemoveLabel(ctx context.Context, r forge.Repo, number int, label string) error {
	return effect(ctx, f, "RemoveLabel", true, func() error { return f.Forge.RemoveLabel(ctx, r, number, label) })
}

func (f *reachedForge) UpdateComment(ctx context.Context, r forge.Repo, number int, id int64, body string) error {
	return effect(ctx, f, "UpdateComment", true, func() error {
		f.sim.noteEdit(number, id, body)
		return f.Forge.UpdateComment(ctx, r, number, id, body)
	})
}

func (f *reachedForge) React(ctx context.Context, r forge.Repo, number int, comment int64, reaction string) error {
	return effect(ctx, f, "React", true, func() error {
		err := f.Forge.React(ctx, r, number, comment, reaction)
		if err == nil {
			f.sim.noteReaction(comment, reaction)
		}
		return err
	})
}

func (f *reachedForge) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	return effect(ctx, f, "SetStatus", true, func() error {
		f.sim.noteStatus(commit, s)
		err := f.Forge.SetStatus(ctx, r, commit, s)
		if err == nil {
			maps.DeleteFunc(f.sim.truth.pushed, func(_ string, p pushedHead) bool { return p.commit == commit })
		}
		return err
	})
}

func (f *reachedForge) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	return effect(ctx, f, "AddLabels", true, func() error {
		err := f.Forge.AddLabels(ctx, r, number, labels...)
		if err == nil && slices.Contains(labels, promotion.LabelSuperseded) {
			f.sim.truth.superseded[number] = true
		}
		return err
	})
}

func (f *reachedForge) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (*forge.PullRequest, bool, error) {
	created := false
	pr, err := call(ctx, f, "CreatePullRequest", true, func() (pr *forge.PullRequest, err error) {
		pr, created, err = f.Forge.CreatePullRequest(ctx, r, n)
		return pr, err
	})
	return pr, created, err
}

func (f *reachedForge) Deployments(ctx context.Context, r forge.Repo, environment, task string) ([]forge.Deployment, error) {
	return call(ctx, f, "Deployments", false, func() ([]forge.Deployment, error) { return f.Forge.Deployments(ctx, r, environment, task) })
}

func (f *reachedForge) CreateDeployment(ctx context.Context, r forge.Repo, d forge.Deployment) (int64, error) {
	return call(ctx, f, "CreateDeployment", true, func() (int64, error) {
		f.sim.noteDeployment(d)
		return f.Forge.CreateDeployment(ctx, r, d)
	})
}

func (f *reachedForge) DeploymentState(ctx context.Context, r forge.Repo, id int64) (forge.DeploymentState, error) {
	return call(ctx, f, "DeploymentState", false, func() (forge.DeploymentState, error) { return f.Forge.DeploymentState(ctx, r, id) })
}

func (f *reachedForge) SetDeploymentStatus(ctx context.Context, r forge.Repo, id int64, s forge.DeploymentStatus) error {
	return effect(ctx, f, "SetDeploymentStatus", true, func() error { return f.Forge.SetDeploymentStatus(ctx, r, id, s) })
}
