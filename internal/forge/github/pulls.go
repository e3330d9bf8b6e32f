package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// PullRequests lists without Mergeable, MergeReason and MergedBy, which GitHub
// only tells of a single pull request.
func (d *Driver) PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	ctx, owner, name := inRepo(ctx, r)
	o := &gh.PullRequestListOptions{State: "all", Sort: "updated", Direction: "desc"}
	var found []forge.PullRequest
	seen := map[int]bool{} // one that is updated meanwhile moves, and shifts a page
	all := rest.Bounds{PerPage: perPage, Pages: maxPullPages, TooMany: forge.ErrInvalid}
	err := forEach("list the pull requests of "+r.String(), all, func(page gh.ListOptions) ([]*gh.PullRequest, *gh.Response, error) {
		o.ListOptions = page
		return d.api.PullRequests.List(ctx, owner, name, o)
	}, func(p *gh.PullRequest) bool {
		if p.GetUpdatedAt().Before(since) {
			return true
		}
		if !seen[p.GetNumber()] {
			seen[p.GetNumber()] = true
			found = append(found, toPullRequest(r, p))
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	return found, d.addMergeCommits(ctx, r, found)
}

// PullRequest reads one with everything.
func (d *Driver) PullRequest(ctx context.Context, r forge.Repo, n int) (*forge.PullRequest, error) {
	ctx, owner, name := inRepo(ctx, r)
	p, _, err := d.api.PullRequests.Get(ctx, owner, name, n)
	if err != nil {
		return nil, wrapError("read "+r.Number(n), err)
	}
	one := []forge.PullRequest{toPullRequest(r, p)}
	if err := d.addMergeCommits(ctx, r, one); err != nil {
		return nil, err
	}
	return &one[0], d.addQueue(ctx, r, &one[0])
}

// MayOpen goes by what is known of the limits.
func (d *Driver) MayOpen(ctx context.Context, r forge.Repo) error {
	ctx, _, _ = inRepo(ctx, r)
	budget, err := d.budget(ctx)
	if err != nil {
		return err
	}
	return budget.MayCall(ctx, "open a pull request in "+r.String(), "POST pulls")
}

// CreatePullRequest opens one, or finds the open one that GitHub says is there.
func (d *Driver) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (*forge.PullRequest, bool, error) {
	ctx, owner, name := inRepo(ctx, r)
	op := "open a pull request in " + r.String() + " from " + n.Branch
	p, _, err := d.api.PullRequests.Create(ctx, owner, name, &gh.NewPullRequest{
		Title: &n.Title, Body: &n.Body, Head: &n.Branch, Base: &n.Base,
	})
	var pr forge.PullRequest
	created := err == nil
	switch {
	case created:
		pr = toPullRequest(r, p)
	case rest.StatusOf(err) == http.StatusUnprocessableEntity && rest.Says(err, "already exists"):
		open, findErr := d.listByHead(ctx, r, n.Branch, gh.PullRequestListOptions{State: "open", Base: n.Base})
		if findErr != nil {
			return nil, false, findErr
		}
		i := slices.IndexFunc(open, func(p forge.PullRequest) bool { return p.Base == n.Base && p.State == forge.Open })
		if i < 0 { // closed between the two calls
			return nil, false, &forge.Error{Op: op, Kind: forge.ErrConflict, Message: "it exists and can't be found"}
		}
		pr = open[i]
	default:
		return nil, false, refusedCreation(op, err)
	}
	if err := rest.AddMissingLabels(&pr, n.Labels, func(missing ...string) error {
		return d.AddLabels(ctx, r, pr.Number,
			missing...)
	}); err != nil {
		return nil, false, err
	}
	return &pr, created, nil
}

// refusedCreation is the error of a pull request that GitHub won't open. Where the branch has
// nothing that its base hasn't, or the base is gone, the branches moved since they were read:
// another look decides otherwise.
func refusedCreation(op string, err error) error {
	err = wrapError(op, err)
	haveMoved := rest.Says(err, "no commits between") || rest.Says(err, "base invalid")
	if haveMoved && rest.StatusOf(err) == http.StatusUnprocessableEntity {
		rest.ErrorOf(err).Kind = forge.ErrConflict
	}
	return err
}

// UpdatePullRequest sets what c names.
func (d *Driver) UpdatePullRequest(ctx context.Context, r forge.Repo, n int, c forge.PullRequestUpdate) error {
	if c == (forge.PullRequestUpdate{}) {
		return nil
	}
	edit := &gh.PullRequest{Title: c.Title, Body: c.Body}
	if c.State != nil {
		edit.State = gh.String(string(*c.State))
	}
	if c.Base != nil {
		edit.Base = &gh.PullRequestBranch{Ref: c.Base}
	}
	ctx, owner, name := inRepo(ctx, r)
	_, _, err := d.api.PullRequests.Edit(ctx, owner, name, n, edit)
	return wrapError("update "+r.Number(n), err)
}

// toPullRequest translates a pull request.
func toPullRequest(r forge.Repo, p *gh.PullRequest) forge.PullRequest {
	own := p.GetBase().GetRepo().GetFullName() // a renamed repository has another name than r
	if own == "" {
		own = r.String()
	}
	pr := forge.PullRequest{
		Number:     p.GetNumber(),
		URL:        p.GetHTMLURL(),
		Title:      p.GetTitle(),
		Body:       p.GetBody(),
		Author:     p.GetUser().GetLogin(),
		AuthorID:   p.GetUser().GetID(),
		Branch:     p.GetHead().GetRef(),
		Head:       p.GetHead().GetSHA(),
		Ref:        fmt.Sprintf("refs/pull/%d/head", p.GetNumber()),
		Base:       p.GetBase().GetRef(),
		Draft:      p.GetDraft(),
		CreatedAt:  p.GetCreatedAt().Time,
		UpdatedAt:  p.GetUpdatedAt().Time,
		ClosedAt:   p.GetClosedAt().Time,
		MergedAt:   p.GetMergedAt().Time,
		MergedBy:   p.GetMergedBy().GetLogin(),
		MergedByID: p.GetMergedBy().GetID(),
		// A head without a repository is a fork that has been deleted.
		Fork:         !strings.EqualFold(p.GetHead().GetRepo().GetFullName(), own),
		State:        forge.Open,
		Mergeable:    forge.MergeableUnknown,
		CommentCount: p.Comments,
	}
	for _, l := range p.Labels {
		pr.Labels = append(pr.Labels, l.GetName())
	}
	slices.Sort(pr.Labels)
	switch {
	case !pr.MergedAt.IsZero(): // lists have no "merged"
		pr.State, pr.MergeCommit = forge.Merged, p.GetMergeCommitSHA()
	case p.GetState() == "closed":
		pr.State = forge.Closed
	default:
		pr.Mergeable, pr.MergeReason = toMergeable(p.GetMergeableState())
		if p.AutoMerge != nil {
			pr.Queue = forge.Queued
		}
	}
	return pr
}

// toMergeable reads mergeable_state; the GraphQL API names the same values in capitals
// (MergeStateStatus). Only unstable and has_hooks can be merged beside
// clean: checks that aren't required fail, or a pre-receive hook decides.
func toMergeable(s string) (forge.Mergeable, string) {
	switch s {
	case "clean", "unstable", "has_hooks":
		return forge.MergeableYes, ""
	case "dirty":
		return forge.MergeableDirty, s
	case "behind":
		return forge.MergeableBehind, s
	case "blocked", "draft":
		return forge.MergeableBlocked, s
	default: // unknown, in a list nothing
		return forge.MergeableUnknown, s
	}
}
