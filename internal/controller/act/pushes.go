package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// pushBranch writes the commit and moves our branch to it, with a lease on what was there when that
// was judged. The commit is a function of its content and its parent, and the forge's signed
// version of it is kept with the mirror. Done again, it is the same. The store knows beforehand
// what is pushed, so that a head is known for ours whenever the process dies; the pull request's
// mark says the same.
func (a *Actor) pushBranch(ctx context.Context, s *subject, in *prtext.Input, branchName, base string,
	edits []fieldedit.Edit) (string, error) {
	r, m := s.ev.Snapshot.Repo, s.ev.Snapshot.Repo.Mirror
	if len(edits) == 0 {
		return "", errors.New("there is nothing to commit")
	}
	head, err := effects.CommitEdits(ctx, m, base, edits, r.Words(prtext.CommitMessage(*in)))
	if err != nil {
		return "", err
	}
	if head, err = m.Sign(forge.WithPriority(ctx, priorityOf(in)), head); err != nil {
		return "", err
	}
	setMarker(s, in, branchName, head, true)
	if !in.Revert {
		pushed := branch.Pushed{{Head: head, Releases: s.releases()}}
		// A head that somebody else made isn't ours, whatever we have put below it.
		if s.pull != nil && s.pull.Proven != nil && s.pull.Head != head && s.pull.HeadState != promotion.HeadModified {
			before := branch.PushedHead{Head: s.pull.Head, Releases: s.pull.Proven} // still there if the push fails
			pushed = slices.Insert(pushed, 0, before)
		}
		if err := a.opts.Store.Tx(ctx, "push", func(tx *store.Tx) error { return addPushed(ctx, tx, r, branchName, pushed) }); err != nil {
			return "", err
		}
	}
	if s.pull != nil {
		// Composed anew it joins the forge's queue again, also where the same commit comes of it.
		if err := facts.DropJoinedQueue(ctx, a.opts.Store, r.ID, s.number); err != nil {
			return "", err
		}
	}
	old, err := a.judgedHead(ctx, s, branchName)
	if err != nil {
		return "", err
	}
	if old == head {
		// The mirror may be older than the remote: push anyway, an unmoved branch costs nothing.
		a.opts.Log.Debug("the branch is there already", zap.String("branch", branchName))
	}
	return head, m.Push(ctx, git.PushSpec{Branch: branchName, New: head, Old: old})
}

// judgedHead is what our branch has to be at for a push over it. The mirror may know a newer head,
// which was pushed while the commit was composed and signed, and which wasn't evaluated yet.
func (a *Actor) judgedHead(ctx context.Context, s *subject, branch string) (string, error) {
	if s.pull != nil {
		return s.pull.Head, nil
	}
	if head, known := s.ev.JudgedHead(branch); known {
		return head, nil
	}
	head, _, err := s.ev.Snapshot.Repo.Mirror.Head(ctx, branch)
	return head, err
}

// priorityOf is how soon a pull request is to be opened: a revert before all others.
func priorityOf(in *prtext.Input) forge.Priority {
	if in.Revert {
		return forge.PriorityUrgent
	}
	return forge.PriorityNormal
}

// maxPushed bounds the heads that are kept of a branch while pushes to it fail.
const maxPushed = 20

// addPushed records the head that is about to be pushed beside the ones that may be there. The push
// may fail, and where two processes work on the same unit the other's head may be on the branch.
func addPushed(ctx context.Context, tx *store.Tx, r *branch.Repository, branchName string, pushed branch.Pushed) error {
	known, _, err := branch.PushedHeads.Get(ctx, tx, record.OfBranch(r.ID, branchName))
	if err != nil {
		return err
	}
	known = slices.DeleteFunc(known, func(k branch.PushedHead) bool {
		return slices.ContainsFunc(pushed, func(p branch.PushedHead) bool { return p.Head == k.Head })
	})
	all := append(known, pushed...)
	return branch.PushedHeads.Put(ctx, tx, record.OfBranch(r.ID, branchName), all[max(0, len(all)-maxPushed):])
}

// pushOwn moves one of our branches that is no promotion's, with a lease on where it was. The store knows beforehand what is pushed;
// name is its transaction's.
func (a *Actor) pushOwn(ctx context.Context, r *branch.Repository, name string, spec git.PushSpec) error {
	pushed := branch.Pushed{{Head: spec.New}}
	if spec.Old != "" && spec.Old != spec.New {
		pushed = branch.Pushed{{Head: spec.Old}, {Head: spec.New}} // the former is still there if the push fails
	}
	if err := a.opts.Store.Tx(ctx, name, func(tx *store.Tx) error { return addPushed(ctx, tx, r, spec.Branch, pushed) }); err != nil {
		return err
	}
	return r.Mirror.Push(ctx, spec)
}

// putOnlyPushed writes down that a push has ended: nothing older of ours may be there. pr is the
// pull request as the forge has it since. While that shows the head before, it may be that which is
// merged, and then the store has to know that it is ours too. Another process's later pushes aren't
// forgotten for this: it has the unit's key by then.
func putOnlyPushed(ctx context.Context, tx *store.Tx, s *subject, pr *forge.PullRequest, head string) error {
	if pr.Head != head {
		return nil
	}
	pushed := branch.Pushed{{Head: head, Releases: s.releases()}}
	return branch.PushedHeads.Put(ctx, tx, record.OfBranch(s.ev.Snapshot.Repo.ID, pr.Branch), pushed)
}

// refreshPushed reads a pull request again to whose branch we have just pushed. ErrStale: it isn't open
// any more. A merge pins no branch: what a person merged while we pushed landed with the head before,
// which the store still names beside the new one.
func (a *Actor) refreshPushed(ctx context.Context, s *subject) (*forge.PullRequest, error) {
	pr, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, s.ev.Snapshot.Repo, s.number)
	if err != nil {
		return nil, err
	}
	if pr.State != forge.Open {
		return nil, fmt.Errorf("%w: #%d was %s at %s while it was composed anew", ErrStale, s.number, pr.State, wording.Short(pr.Head))
	}
	return pr, nil
}
