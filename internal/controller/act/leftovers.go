package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// DeleteLeftovers deletes the unit's branches that nobody needs any more, each only
// while it is where it was seen. It is for a run in which nothing else was done:
// what is about to be opened pushes its branch first. A deletion that the forge
// refuses is not asked for again by this process.
func (a *Actor) DeleteLeftovers(ctx context.Context, ev *facts.Evaluation) error {
	if ev.Pipeline.Spec.Mode == pipeline.ModeDryRun {
		return nil
	}
	left, err := a.findLeftovers(ctx, ev)
	if err != nil || len(left) == 0 {
		return err
	}
	// The process that opened a pull request may have died, or lost the store, before it was known.
	// The forge would close it with its branch, and that would count as a person's close.
	if err := a.opts.Gatherer.PullCache.RefreshPullRequests(ctx, ev.Snapshot.Repo); err != nil {
		return err
	}
	known := len(left)
	if left, err = a.findLeftovers(ctx, ev); err != nil {
		return err
	}
	for _, l := range left {
		a.opts.Log.Info("deleting a branch that is left over", append(unitFields(ev.Unit), zap.String("branch", l.Branch))...)
		err := a.deleteBranch(ctx, ev.Snapshot.Repo, l.Branch, l.Head)
		switch {
		case errors.Is(err, git.ErrLeaseLost): // somebody pushed to it: no longer left over
		case errors.Is(err, git.ErrRejected):
			a.undeletable.Store(l, true)
			a.opts.Log.Warn("a branch of ours can't be deleted; the next promotion takes it over", zap.String("branch", l.Branch),
				zap.Error(err))
		case err != nil:
			return err
		}
	}
	if len(left) < known {
		return fmt.Errorf("%w: a branch has a pull request that wasn't known", ErrStale)
	}
	return nil
}

// DeleteOver deletes the branch of a pull request that is over, while it is where the pull request
// left it. A branch that remains is a leftover.
func (a *Actor) DeleteOver(ctx context.Context, r *branch.Repository, pr *forge.PullRequest) {
	err := a.deleteBranch(ctx, r, pr.Branch, pr.Head)
	if err != nil && !errors.Is(err, git.ErrLeaseLost) { // gone, or somebody pushed to it
		a.opts.Log.Warn("a branch of ours could not be deleted; it is tried again, and the next promotion takes it over",
			zap.String("branch", pr.Branch), zap.Error(err))
	}
}

// deleteBranch deletes a branch of ours while it is at a commit. Git does it, which costs no call
// of the forge's and is refused when the branch has moved. GitLab lets nobody delete a protected
// branch by Git, and those who may by its API.
func (a *Actor) deleteBranch(ctx context.Context, r *branch.Repository, branch, head string) error {
	err := r.Mirror.Push(ctx, git.PushSpec{Branch: branch, Old: head})
	if !errors.Is(err, git.ErrRejected) {
		return err
	}
	if now, herr := r.Mirror.RemoteHeads(ctx, branch); herr != nil || now[branch] != head {
		return err
	}
	if derr := r.Forge.DeleteBranch(ctx, r.Name, branch); derr != nil {
		return fmt.Errorf("%w; and by the forge's API: %w", err, derr)
	}
	return nil
}

// findLeftovers leaves out those whose deletion was refused.
func (a *Actor) findLeftovers(ctx context.Context, ev *facts.Evaluation) ([]facts.Leftover, error) {
	left, err := a.opts.Gatherer.Leftovers(ctx, ev)
	return slices.DeleteFunc(left, func(l facts.Leftover) bool {
		_, refused := a.undeletable.Load(l)
		return refused
	}), err
}
