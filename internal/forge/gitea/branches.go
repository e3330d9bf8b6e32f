package gitea

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// overlap covers a server whose clock is set back a little.
const overlap = time.Minute

// branchList is which pull requests of a repository came from which of its
// branches. A pull request's number and branch don't change, so the list only
// grows, by what was updated since the last look.
type branchList struct {
	updating lock.Keyed[forge.Repo]
	newest   time.Time // the latest update that it knows
	numbers  map[string][]int
	known    map[int]bool
}

// PullRequestsByBranch reads the pull requests of a branch one by one. Gitea has no filter by head,
// so the driver keeps a list by branch. A repository's first call lists all its pull requests,
// later ones only new ones.
func (d *Driver) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) ([]forge.PullRequest, error) {
	d.mu.Lock()
	list := d.branches[r]
	if list == nil {
		list = &branchList{numbers: map[string][]int{}, known: map[int]bool{}}
		d.branches[r] = list
	}
	d.mu.Unlock()

	numbers, err := list.updateAndFind(ctx, d, r, branch)
	if err != nil {
		return nil, err
	}
	found := make([]forge.PullRequest, 0, len(numbers))
	for _, n := range numbers {
		pr, err := d.PullRequest(ctx, r, n)
		switch {
		case errors.Is(err, forge.ErrNotFound): // deleted by an administrator
		case err != nil:
			return nil, err
		default:
			found = append(found, *pr)
		}
	}
	return found, nil
}

// updateAndFind brings the list up to date and gives a branch's numbers, highest first.
func (bl *branchList) updateAndFind(ctx context.Context, d *Driver, r forge.Repo, branch string) ([]int, error) {
	unlock, err := bl.updating.Lock(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	since := bl.newest
	if !since.IsZero() {
		since = since.Add(-overlap)
	}
	updated, err := d.listPulls(ctx, r, since)
	if err != nil {
		return nil, err
	}
	for _, p := range updated {
		pr := toPullRequest(p)
		if !bl.known[pr.Number] {
			bl.known[pr.Number] = true
			if !pr.Fork {
				bl.numbers[pr.Branch] = append(bl.numbers[pr.Branch], pr.Number)
			}
		}
		if pr.UpdatedAt.After(bl.newest) {
			bl.newest = pr.UpdatedAt
		}
	}
	numbers := slices.Clone(bl.numbers[branch])
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(b, a) })
	return numbers, nil
}

// DeleteBranch removes a branch. For one that isn't there Gitea answers 404, as
// for a repository that isn't there, or (1.23) 500: so it is asked what is.
func (d *Driver) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	op := "delete the branch " + branch + " of " + r.String()
	_, _, err := d.newClient(ctx).DeleteRepoBranch(r.Owner, r.Name, branch)
	refusal := rest.Wrap(op, err)
	if status := rest.StatusOf(err); status != http.StatusNotFound && status != http.StatusInternalServerError {
		return refusal
	}
	if _, _, err := d.newClient(ctx).GetRepo(r.Owner, r.Name); err != nil {
		return rest.Wrap(op, err)
	}
	if _, _, err := d.newClient(ctx).GetRepoBranch(r.Owner, r.Name, branch); rest.StatusOf(err) == http.StatusNotFound {
		return nil
	}
	return refusal
}
