package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
)

// groupPrefix begins the names of the branches on which GitHub's merge queue builds what it is about
// to merge as one: gh-readonly-queue/BASE/pr-NUMBER-COMMIT ("Managing a merge queue").
const groupPrefix = "gh-readonly-queue/"

// baseOfMergeGroup is the branch that a merge group is to be merged into; false where a branch is
// no merge group's.
func baseOfMergeGroup(branch string) (base string, ok bool) {
	rest, ok := strings.CutPrefix(branch, groupPrefix)
	i := strings.LastIndex(rest, "/pr-")
	if !ok || i <= 0 {
		return "", false
	}
	return rest[:i], true
}

// groupRecheckDelay is how soon a merge group is looked at again that waits for one of ours: what
// may not be merged leaves the queue by then, and the group is built anew.
const groupRecheckDelay = time.Minute

// runMergeGroup sets our commit status on the head of a merge group, which waits for it where the
// base requires it: that every promotion of ours in it may be merged, or that none is in it.
func (e *Controller) runMergeGroup(ctx context.Context, r *Repository, branch string) (time.Time, error) {
	base, ok := baseOfMergeGroup(branch)
	heads, err := r.Mirror.RemoteHeads(ctx, branch)
	head := heads[branch]
	if err != nil || !ok || head == "" { // it is over
		return time.Time{}, err
	}
	status := forge.Status{Context: act.StatusContext, State: forge.StatusSuccess, Description: "nothing of Liftlock's is in this merge group"}
	pulls, err := e.pullsInGroup(ctx, r, base, head)
	if err != nil {
		return time.Time{}, err
	}
	var names []string
	for _, pr := range pulls {
		statuses, err := r.Forge.Statuses(ctx, r.Name, pr.Head)
		if err != nil {
			return time.Time{}, err
		}
		name := fmt.Sprintf("#%d", pr.Number)
		names = append(names, name)
		if !slices.ContainsFunc(statuses, func(s forge.Status) bool { return s.Context == act.StatusContext && s.State == forge.StatusSuccess }) {
			status.State, status.Description = forge.StatusPending, "not every gate of "+name+" passes"
			break
		}
	}
	if len(names) > 0 && status.State == forge.StatusSuccess {
		status.Description = "every gate of " + strings.Join(names, ", ") + " passes"
	}
	if err := r.Forge.SetStatus(ctx, r.Name, head, status); err != nil {
		return time.Time{}, err
	}
	e.opts.Log.Info("a merge group has its status", zap.String("repository", r.ID), zap.String("branch", branch), zap.String("state", string(status.State)), zap.String("because", status.Description))
	if status.State == forge.StatusPending {
		return e.opts.Clock.Now().Add(groupRecheckDelay), nil
	}
	return time.Time{}, nil
}

// pullsInGroup are our pull requests that a merge group may bring: those that Liftlock had join the
// queue and that are in it, wherever in it they are, and those whose head is in the group.
func (e *Controller) pullsInGroup(ctx context.Context, r *Repository, base, head string) ([]forge.PullRequest, error) {
	known, err := r.Mirror.Has(ctx, head)
	if err == nil && !known {
		_, err = r.Mirror.Fetch(ctx)
	}
	if err != nil {
		return nil, err
	}
	if known, err = r.Mirror.Has(ctx, head); err != nil || !known {
		return nil, err // it is over, or another takes its place
	}
	open, err := e.opts.Gatherer.OpenPulls(ctx, r.Repository)
	if err != nil {
		return nil, err
	}
	var found []forge.PullRequest
	for _, pr := range open {
		if pr.Base != base || !r.IsOurs(pr.Author, pr.AuthorID) {
			continue
		}
		_, joined, err := e.opts.Store.State(ctx, facts.JoinedQueueKey(r.ID, pr.Number))
		if err != nil {
			return nil, err
		}
		brings := false
		if ok, err := r.Mirror.Has(ctx, pr.Head); err != nil {
			return nil, err
		} else if ok {
			if brings, err = r.Mirror.IsAncestor(ctx, pr.Head, head); err != nil {
				return nil, err
			}
		}
		if !joined && !brings {
			continue
		}
		now, err := e.opts.Gatherer.RefreshPullRequest(forge.WithMergeQueue(ctx), r.Repository, pr.Number)
		if err != nil {
			return nil, err
		}
		if now.State == forge.Open && now.Queue == forge.Queued {
			found = append(found, *now)
		}
	}
	return found, nil
}
