package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// PullRequests lists with Mergeable only where Gitea says yes.
func (d *Driver) PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	list, err := d.listPulls(ctx, r, since)
	if err != nil {
		return nil, err
	}
	found := make([]forge.PullRequest, len(list))
	for i, p := range list {
		if err := d.correctHead(ctx, r, p); err != nil {
			return nil, err
		}
		found[i] = toPullRequest(p)
	}
	return found, nil
}

// listPulls reads what was updated at or after since, most recently first.
func (d *Driver) listPulls(ctx context.Context, r forge.Repo, since time.Time) ([]*sdk.PullRequest, error) {
	since = since.Truncate(time.Second) // Gitea's times are whole seconds
	var found []*sdk.PullRequest
	seen := map[int64]bool{} // one that is updated meanwhile moves, and shifts a page
	all := rest.Bounds{PerPage: perPage, Pages: maxPullPages, TooMany: forge.ErrInvalid}
	err := forEach("list the pull requests of "+r.String(), all, func(o sdk.ListOptions) ([]*sdk.PullRequest, *sdk.Response, error) {
		return d.newClient(ctx).ListRepoPullRequests(r.Owner, r.Name, sdk.ListPullRequestsOptions{
			ListOptions: o, State: sdk.StateAll, Sort: "recentupdate",
		})
	}, func(p *sdk.PullRequest) bool {
		if timeOrZero(p.Updated).Before(since) {
			return true
		}
		if !seen[p.Index] {
			seen[p.Index] = true
			found = append(found, p)
		}
		return false
	})
	return found, err
}

// PullRequest reads one with everything.
func (d *Driver) PullRequest(ctx context.Context, r forge.Repo, n int) (*forge.PullRequest, error) {
	p, _, err := d.newClient(ctx).GetPullRequest(r.Owner, r.Name, int64(n))
	if err != nil {
		return nil, rest.Wrap("read "+r.Number(n), err)
	}
	if err := d.correctHead(ctx, r, p); err != nil {
		return nil, err
	}
	pr := toPullRequest(p)
	pr.Mergeable, pr.MergeReason = d.toMergeable(r, p)
	return &pr, nil
}

// MayOpen goes by what is known of the limits.
func (d *Driver) MayOpen(ctx context.Context, r forge.Repo) error {
	return d.budget.MayCall(ctx, "open a pull request in "+r.String(), "POST pulls")
}

// CreatePullRequest opens one, or finds the open one that Gitea says is there.
func (d *Driver) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (*forge.PullRequest, bool, error) {
	op := "open a pull request in " + r.String() + " from " + n.Branch
	labels, err := d.labelIDs(ctx, r, n.Labels)
	if err != nil {
		return nil, false, err
	}
	p, _, err := d.newClient(ctx).CreatePullRequest(r.Owner, r.Name, sdk.CreatePullRequestOption{
		Title: n.Title, Body: n.Body, Head: n.Branch, Base: n.Base, Labels: labels,
	})
	if err == nil {
		pr := toPullRequest(p)
		return &pr, true, nil
	}
	if rest.StatusOf(err) != http.StatusConflict {
		return nil, false, rest.Wrap(op, err)
	}
	pr, findErr := d.findOpenPull(ctx, r, n.Branch, n.Base)
	if findErr != nil {
		return nil, false, findErr
	}
	if pr == nil { // closed between the two calls
		return nil, false, rest.Wrap(op, err)
	}
	if err := rest.AddMissingLabels(pr, n.Labels, func(missing ...string) error {
		return d.AddLabels(ctx, r, pr.Number,
			missing...)
	}); err != nil {
		return nil, false, err
	}
	return pr, false, nil
}

// findOpenPull finds the open pull request of a branch onto a base; nil when there is none.
func (d *Driver) findOpenPull(ctx context.Context, r forge.Repo, branch, base string) (*forge.PullRequest, error) {
	var found *forge.PullRequest
	err := forEach("list the open pull requests of "+r.String(), bounds,
		func(o sdk.ListOptions) ([]*sdk.PullRequest, *sdk.Response, error) {
			return d.newClient(ctx).ListRepoPullRequests(r.Owner, r.Name, sdk.ListPullRequestsOptions{ListOptions: o, State: sdk.StateOpen})
		}, func(p *sdk.PullRequest) bool {
			if pr := toPullRequest(p); pr.Branch == branch && pr.Base == base && !pr.Fork {
				found = &pr
			}
			return found != nil
		})
	return found, err
}

// UpdatePullRequest sets what c names.
func (d *Driver) UpdatePullRequest(ctx context.Context, r forge.Repo, n int, c forge.PullRequestUpdate) error {
	if c == (forge.PullRequestUpdate{}) {
		return nil
	}
	var edit sdk.EditPullRequestOption
	if c.Title != nil {
		edit.Title = *c.Title // an empty one is "leave it" for Gitea, and no title for anybody
	}
	edit.Body = c.Body
	if c.Base != nil {
		edit.Base = *c.Base
	}
	if c.State != nil {
		s := sdk.StateType(*c.State)
		edit.State = &s
	}
	_, _, err := d.newClient(ctx).EditPullRequest(r.Owner, r.Name, int64(n), edit)
	return rest.Wrap("update "+r.Number(n), err)
}

// toPullRequest translates a pull request as it is in a list.
func toPullRequest(p *sdk.PullRequest) forge.PullRequest {
	pr := forge.PullRequest{
		Number:    int(p.Index),
		URL:       p.HTMLURL,
		Title:     p.Title,
		Body:      p.Body,
		Author:    loginOf(p.Poster),
		AuthorID:  idOf(p.Poster),
		Draft:     p.Draft,
		Ref:       fmt.Sprintf("refs/pull/%d/head", p.Index),
		State:     forge.Open,
		Mergeable: forge.MergeableUnknown,
		CreatedAt: timeOrZero(p.Created),
		UpdatedAt: timeOrZero(p.Updated),
		ClosedAt:  timeOrZero(p.Closed),
	}
	if p.Head != nil && p.Base != nil {
		// A head whose repository has been deleted has the number -1.
		pr.Branch, pr.Head, pr.Base, pr.Fork = p.Head.Name, p.Head.Sha, p.Base.Ref, p.Head.RepoID != p.Base.RepoID
	}
	for _, l := range p.Labels {
		pr.Labels = append(pr.Labels, l.Name)
	}
	slices.Sort(pr.Labels)
	pr.Labels = slices.Compact(pr.Labels)
	switch {
	case p.HasMerged:
		pr.State, pr.MergedAt, pr.MergedBy = forge.Merged, timeOrZero(p.Merged), loginOf(p.MergedBy)
		pr.MergedByID = idOf(p.MergedBy)
		if p.MergedCommitID != nil {
			pr.MergeCommit = *p.MergedCommitID
		}
	case p.State == sdk.StateClosed:
		pr.State = forge.Closed
	case p.Mergeable:
		pr.Mergeable = forge.MergeableYes
	}
	return pr
}
