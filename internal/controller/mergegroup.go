package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/webhooks"
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

// groupRecheckDelay is how soon a merge group that waits for one of ours is evaluated again. A pull
// request that may not be merged leaves the queue by then, and the group is built anew.
const groupRecheckDelay = time.Minute

// groupMember is an open pull request of ours that a merge group may bring.
type groupMember struct {
	forge.PullRequest
	joined bool // it is in the queue, and not merely contained in the group
}

// runMergeGroup sets our commit status on the head of a merge group, which waits for it where the
// base requires it. It succeeds where every promotion of ours in it may be merged, or none is in
// it. The statuses on the heads of those aren't believed: anybody who may push can set a status.
func (co *Controller) runMergeGroup(ctx context.Context, r *Repository, branch string) (time.Time, error) {
	base, ok := baseOfMergeGroup(branch)
	heads, err := r.Mirror.RemoteHeads(ctx, branch)
	head := heads[branch]
	if err != nil || !ok || head == "" { // it is over
		return time.Time{}, err
	}
	if err := co.fetchGroup(ctx, r, branch, head); err != nil {
		return time.Time{}, err
	}
	members, headOf, err := co.readGroup(ctx, r, base, head)
	if err != nil {
		return time.Time{}, err
	}
	if headOf != 0 {
		co.opts.Log.Warn("a branch named like a merge group's is at the head of a pull request of Liftlock's: somebody pushed it, and it "+
			"gets no status; delete the branch",
			zap.String("repository", r.ID), zap.String("branch", branch), zap.String("commit", head), zap.Int("pull", headOf))
		return time.Time{}, servedGroups.Put(ctx, co.opts.Store, record.OfBranch(r.ID, branch), head)
	}
	status := forge.Status{Context: act.StatusContext, State: forge.StatusSuccess,
		Description: "nothing of Liftlock's is in this merge group"}
	var names []string
	for i := range members {
		name := fmt.Sprintf("#%d", members[i].Number)
		names = append(names, name)
		if !members[i].joined {
			status.State, status.Description = forge.StatusPending, name+" is in this group and not in the merge queue"
			break
		}
		if kept, err := co.judgeQueued(ctx, r, &members[i].PullRequest); err != nil {
			return time.Time{}, fmt.Errorf("judge %s in the merge group %s: %w", name, branch, err)
		} else if !kept {
			status.State, status.Description = forge.StatusPending, "not every gate of "+name+" passes"
			break
		}
	}
	if len(names) > 0 && status.State == forge.StatusSuccess {
		status.Description = wording.ClipRunes("every gate of "+strings.Join(names, ", ")+" passes", maxGroupDescription)
	}
	if err := r.Forge.SetStatus(ctx, r.Name, head, status); err != nil {
		return time.Time{}, err
	}
	co.opts.Log.Info("a merge group has its status", zap.String("repository", r.ID), zap.String("branch", branch),
		zap.String("state", string(status.State)), zap.String("because", status.Description))
	if err := servedGroups.Put(ctx, co.opts.Store, record.OfBranch(r.ID, branch), head); err != nil {
		return time.Time{}, err
	}
	if status.State == forge.StatusPending {
		return co.opts.Clock.Now().Add(groupRecheckDelay), nil
	}
	return time.Time{}, nil
}

// servedGroups are the heads at which merge groups were evaluated last.
var servedGroups = record.Declare[record.InRepository, string](record.Declaration{
	Name: "served-merge-group", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "The head at which the merge group of a branch got its status.",
})

// unservedGroups are the keys of the merge groups that weren't evaluated at their present heads, as
// of the last fetch: where the event of one was lost. Records of those that are over are forgotten.
func (co *Controller) unservedGroups(ctx context.Context, r *Repository) ([]wake.Key, error) {
	if r.ForgeType != webhooks.GitHub {
		return nil, nil // to others such a branch is one like any
	}
	heads, err := r.Mirror.Heads(ctx, groupPrefix)
	if err != nil {
		return nil, err
	}
	served, err := servedGroups.List(ctx, co.opts.Store, record.Within{Repo: r.ID})
	if err != nil {
		return nil, err
	}
	headOf := map[string]string{}
	for i := range served {
		branch := served[i].About.Name
		headOf[branch] = served[i].Value
		if _, there := heads[branch]; !there {
			if err := servedGroups.Drop(ctx, co.opts.Store, served[i].About); err != nil {
				return nil, err
			}
		}
	}
	var keys []wake.Key
	for branch, head := range heads {
		if _, is := baseOfMergeGroup(branch); is && headOf[branch] != head {
			keys = append(keys, wake.ForMergeGroup(r.ID, branch))
		}
	}
	return keys, nil
}

// maxGroupDescription is how many characters GitHub takes as the description of a status.
const maxGroupDescription = 140

// fetchGroup has a merge group's commits in the mirror. ErrStale: they aren't there to be fetched;
// the group is over, or another takes its place.
func (co *Controller) fetchGroup(ctx context.Context, r *Repository, branch, head string) error {
	known, err := r.Mirror.Has(ctx, head)
	if err == nil && !known {
		if _, err = r.Mirror.Fetch(ctx); err == nil {
			known, err = r.Mirror.Has(ctx, head)
		}
	}
	if err == nil && !known {
		err = fmt.Errorf("%w: the merge group %s was at %s, which can't be fetched", act.ErrStale, branch, wording.Short(head))
	}
	return err
}

// readGroup reads from the forge our open pull requests that a merge group may bring: those whose
// head is in the group, and those in the queue. Where a queue squashes or rebases, no head is in
// its group. headOf is one of ours whose own head the group is at, 0 where none is: a real group
// has a commit of the forge's making.
func (co *Controller) readGroup(ctx context.Context, r *Repository, base, head string) (members []groupMember, headOf int, err error) {
	if err := facts.MergesByQueue.Put(ctx, co.opts.Store, record.Repository(r.ID), true); err != nil {
		return nil, 0, err
	}
	if err := co.opts.Gatherer.PullCache.RefreshPullRequests(ctx, r.Repository); err != nil {
		return nil, 0, err
	}
	open, err := co.opts.Gatherer.PullCache.OpenPulls(ctx, r.Repository)
	if err != nil {
		return nil, 0, err
	}
	for i := range open {
		if !r.HasOpened(&open[i]) {
			continue
		}
		if open[i].Head == head {
			return nil, open[i].Number, nil
		}
		if open[i].Base != base {
			continue
		}
		now, err := co.opts.Gatherer.PullCache.RefreshPullRequest(forge.WithMergeQueue(ctx), r.Repository, open[i].Number)
		switch {
		case isGone(err):
			continue
		case err != nil:
			return nil, 0, err
		case now.Head == head:
			return nil, now.Number, nil
		}
		brings, err := r.Mirror.Has(ctx, now.Head)
		if err == nil && brings {
			brings, err = r.Mirror.IsAncestor(ctx, now.Head, head)
		}
		if err != nil {
			return nil, 0, err
		}
		if joined := now.Queue == forge.Queued; now.State == forge.Open && (joined || brings) {
			members = append(members, groupMember{PullRequest: *now, joined: joined})
		}
	}
	return members, 0, nil
}

// judgeQueued says whether a pull request in the queue would be merged now, judged anew. Where it
// wouldn't, its unit is woken, which takes it out of the queue.
func (co *Controller) judgeQueued(ctx context.Context, r *Repository, pr *forge.PullRequest) (bool, error) {
	ref, ours := promotion.ParseBranch(pr.Branch)
	if !ours {
		return false, nil
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return false, err
	}
	u := s.RunsAs(promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component})
	unlock, err := co.units.Lock(ctx, u)
	if err != nil {
		return false, err
	}
	defer unlock()
	_, d, err := co.opts.Gatherer.Evaluate(ctx, s, u, false)
	if errors.Is(err, branch.ErrNoUnit) {
		return false, nil // nothing looks after it
	}
	if err != nil || d.KeepsInQueue(pr.Number) {
		return err == nil, err
	}
	return false, co.opts.Store.WakeAs(ctx, store.Urgent, wake.ForUnit(u).String())
}
