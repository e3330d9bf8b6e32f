package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/git"
)

// ReleaseQuery says what is released, and where it is pushed to.
type ReleaseQuery struct {
	plan.ReleaseQuery        // without By, which is the checkout's own
	Pipeline          string // this pipeline alone; "" is all
	DryRun            bool   // push nothing
	// PullRequest has the commit pushed to a branch of the release's own, for a pull request.
	PullRequest bool
	Known       Known
	Now         func() time.Time
	// Pause is waited before the release is composed anew after a lost race, and ends the tries; nil: the usual one.
	Pause backoff.BackOff
}

// Released is a release that was pushed.
type Released struct {
	plan.Release
	Pushed bool `json:"pushed"` // the commit is on the branch; false: there was nothing to do, or it was a dry run
	// Head is the release's own branch, which has the commit in place of the environment's; empty: it has none.
	Head        string `json:"head,omitempty"`
	PullRequest string `json:"pullRequest,omitempty"` // its address, from Head; empty: there is none
	Message     string `json:"-"`                     // of the commit
}

// remoteName is the remote that releases are pushed to: the one whose branches Liftlock sees.
const remoteName = "origin"

// patience is how long a release is composed anew where others push at the same time.
const patience = 5 * time.Minute

// Release brings versions into a component's source environment: it fetches the branch, composes one commit on it, and
// pushes that. Where somebody else's push comes first, it begins anew on that. The working tree, the index and the local
// branches stay as they are. A plan.RefusedError says why nothing is released; git.ErrRejected, git.ErrAuth and
// git.ErrRemote are of the remote.
func (r *Repository) Release(ctx context.Context, q ReleaseQuery) (*Released, error) {
	by, err := r.git.Identity(ctx)
	if err != nil {
		return nil, err
	}
	q.By = by
	pause := q.Pause
	if pause == nil {
		pause = backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(10*time.Second),
			backoff.WithMaxElapsedTime(patience))
	}
	var out *Released
	err = backoff.Retry(func() error {
		var err error
		if out, err = r.releaseOnce(ctx, &q); err != nil && !errors.Is(err, git.ErrLeaseLost) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(pause, ctx))
	if errors.Is(err, git.ErrLeaseLost) {
		return nil, fmt.Errorf("%w: others pushed each time, for %s; run it again", err, patience)
	}
	return out, err
}

// releaseOnce is one try.
func (r *Repository) releaseOnce(ctx context.Context, q *ReleaseQuery) (*Released, error) {
	tracked := cmp.Or(r.main, "main")
	tip, err := r.fetchBranch(ctx, tracked)
	if err != nil {
		return nil, err
	}
	released, err := r.composeRelease(ctx, q, tip)
	if err != nil {
		return nil, err
	}
	out := &Released{Release: *released}
	if released.Branch != tracked { // the environment lives on a branch of its own, which has to be as the remote has it
		if tip, err = r.fetchBranch(ctx, released.Branch); err != nil {
			return nil, err
		}
		if tip != released.Base {
			if released, err = r.composeRelease(ctx, q, tip); err != nil {
				return nil, err
			}
			out.Release = *released
		}
	}
	if out.Commit == "" {
		return out, nil
	}
	to, old := out.Branch, out.Base
	if q.PullRequest {
		out.Head = "release/" + out.Environment + "/" + out.Component
		if to = out.Head; !q.DryRun {
			if old, err = r.fetchHead(ctx, out, q.By); err != nil {
				return nil, err
			}
		}
	}
	if made, err := r.scratch.Commit(ctx, out.Commit); err != nil {
		return nil, err
	} else if out.Message = made.Message; q.DryRun {
		return out, nil
	}
	if old != out.Commit { // else it is there from a former try
		if err := r.git.PushCommit(ctx, r.scratch, remoteName, to, out.Commit, old); err != nil {
			return nil, err
		}
	}
	out.Pushed = true
	return out, nil
}

// fetchHead gives where the release's own branch is; empty: there is none yet. Where it has the same change on the same commit,
// that one is the release's. Where somebody else has pushed to it, nothing is pushed over that.
func (r *Repository) fetchHead(ctx context.Context, released *Released, by git.Ident) (string, error) {
	head, err := r.git.FetchBranch(ctx, remoteName, released.Head)
	if err != nil || head == "" {
		return "", err
	}
	made, err := r.scratch.Commit(ctx, released.Commit)
	if err != nil {
		return "", err
	}
	is, err := r.scratch.Commit(ctx, head)
	if err != nil {
		return "", err
	}
	isOurs := is.Committer.Email == by.Email && len(is.Parents) == 1
	if isOurs {
		if isOurs, err = r.scratch.IsAncestor(ctx, is.Parents[0], released.Base); err != nil {
			return "", err
		}
	}
	if merged, err := r.scratch.IsAncestor(ctx, head, released.Base); err != nil {
		return "", err
	} else if !isOurs && !merged {
		return "", &plan.RefusedError{Why: fmt.Sprintf("the branch %s has commits that this account (%s) didn't make in one piece, the "+
			"last by %s: merge it, or delete it, and run this again", released.Head, by.Email, is.Committer.Email)}
	}
	if isOurs && is.Tree == made.Tree && is.Parents[0] == released.Base {
		released.Commit = head
	}
	return head, nil
}

func (r *Repository) fetchBranch(ctx context.Context, branch string) (string, error) {
	tip, err := r.git.FetchBranch(ctx, remoteName, branch)
	if err == nil && tip == "" {
		err = fmt.Errorf("the remote %s has no branch %s", remoteName, branch)
	}
	return tip, err
}

// composeRelease composes the commit with the tracked branch at a tip, and all others as they were fetched.
func (r *Repository) composeRelease(ctx context.Context, q *ReleaseQuery, tip string) (*plan.Release, error) {
	basis, err := r.preparePlan(ctx, PlanQuery{Rev: tip, Pipeline: q.Pipeline, Known: q.Known, Now: q.Now()})
	if err != nil {
		return nil, err
	}
	if basis.input == nil || len(basis.broken) > 0 {
		var why []string
		for _, p := range basis.broken {
			why = append(why, p.String())
		}
		return nil, &plan.RefusedError{Why: "nothing is released while this is so:\n  " + strings.Join(why, "\n  ")}
	}
	return plan.ComposeRelease(ctx, *basis.input, &q.ReleaseQuery)
}
