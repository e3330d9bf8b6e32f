package memoryforge

import (
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// noticeRefs compares the repository's branches with the last known ones and applies all
// consequences of a push. These are the event, new heads of pull requests, their closing and their
// merging. Only here the forge learns of a moved branch, whoever moved it.
func (c *call) noticeRefs(by *account) error {
	before, now := c.repo.heads, c.repo.remote.Heads()
	if maps.Equal(before, now) {
		return nil
	}
	c.repo.heads = now
	for _, branch := range changedBranches(before, now) {
		c.recordPush(by, branch, before[branch], now[branch])
		if err := c.followHead(by, branch, now[branch]); err != nil {
			return err
		}
		if err := c.followBase(by, branch, before[branch], now[branch]); err != nil {
			return err
		}
	}
	return nil
}

// changedBranches are those that were made, moved or deleted, by name.
func changedBranches(before, now map[string]string) []string {
	var changed []string
	for branch, commit := range now {
		if before[branch] != commit {
			changed = append(changed, branch)
		}
	}
	for branch := range before {
		if now[branch] == "" {
			changed = append(changed, branch)
		}
	}
	slices.Sort(changed)
	return changed
}

// recordPush remembers who moved a branch, and tells.
func (c *call) recordPush(by *account, branch, before, after string) {
	merge := slices.ContainsFunc(c.repo.byCommit[after], func(p *pull) bool {
		return p.info.MergeCommit == after && p.info.Base == branch
	})
	c.repo.pushes[branch] = append(c.repo.pushes[branch], forge.Push{Before: before, After: after, By: by.user, Merge: merge})
	c.emitEvent(Event{Kind: PushEvent, Branch: branch, Before: before, After: after}, by)
}

// followHead follows a pull request's branch. One that is gone, or has nothing left
// to merge, closes its pull request.
func (c *call) followHead(by *account, branch, tip string) error {
	for _, p := range c.repo.listOpen() {
		if p.info.Fork || p.info.Branch != branch {
			continue
		}
		if tip == "" {
			c.closePull(p, by)
			continue
		}
		if err := c.moveHead(p, by, tip); err != nil {
			return err
		}
	}
	return nil
}

// moveHead brings an open pull request to another head.
func (c *call) moveHead(p *pull, by *account, tip string) error {
	before := p.info.Head
	c.leaveQueue(p)
	if err := c.setHead(p, tip); err != nil {
		return err
	}
	updated, err := c.isUpdate(p, before)
	if err != nil {
		return err
	}
	if c.repo.protections[p.info.Base].DismissStale && !updated {
		for _, v := range p.reviews {
			if v.state == approved {
				c.dismissReview(p, v, by)
			}
		}
	}
	c.markUpdated(p)
	c.emitEvent(Event{
		Kind: PullRequestEvent, Action: "synchronize", Number: p.info.Number, Branch: p.info.Branch, Fork: p.info.Fork,
		Before: before, After: tip, Commit: tip,
	}, by)
	if len(p.commits) == 0 {
		c.closePull(p, by)
	}
	return nil
}

// isUpdate says whether a pull request's new head only brings the one before up to date: it
// merges a commit of the base branch into it. That dismisses no approval.
func (c *call) isUpdate(p *pull, before string) (bool, error) {
	head, err := c.repo.remote.Commit(c.ctx, p.info.Head)
	if err != nil || len(head.Parents) != 2 || head.Parents[0] != before {
		return false, err
	}
	return c.repo.remote.IsAncestor(c.ctx, head.Parents[1], c.repo.heads[p.info.Base])
}

// followBase finds the pull requests that somebody merged by pushing, because their
// head has become reachable from the base branch, and closes those whose base is gone.
func (c *call) followBase(by *account, branch, before, tip string) error {
	if before == "" {
		return nil
	}
	onto := slices.DeleteFunc(c.repo.listOpen(), func(p *pull) bool { return p.info.Base != branch })
	if len(onto) == 0 {
		return nil
	}
	if tip == "" {
		for _, p := range onto {
			c.closePull(p, by)
		}
		return nil
	}
	brought, err := c.repo.remote.Log(c.ctx, git.LogQuery{From: tip, Until: before})
	if err != nil {
		return err
	}
	reached := map[string]bool{}
	for _, found := range brought {
		reached[found.SHA] = true
	}
	for _, p := range onto {
		if !reached[p.info.Head] {
			continue
		}
		landed, err := c.findLandedCommit(p.info.Head, before, tip)
		if err != nil {
			return err
		}
		c.markMerged(p, by, landed, nil)
	}
	return nil
}

// findLandedCommit finds the commit of a branch's own line, between before and tip,
// with which head came in.
func (c *call) findLandedCommit(head, before, tip string) (string, error) {
	line, err := c.repo.remote.Log(c.ctx, git.LogQuery{From: tip, Until: before, FirstParent: true})
	if err != nil {
		return "", err
	}
	for _, found := range slices.Backward(line) {
		in, err := c.repo.remote.IsAncestor(c.ctx, head, found.SHA)
		if err != nil {
			return "", err
		}
		if in {
			return found.SHA, nil
		}
	}
	return tip, nil
}
