package memoryforge

import (
	"context"
	"errors"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
)

// queuedMerge is a pull request in a repository's merge queue.
type queuedMerge struct {
	pull    *pull
	by      *account
	request forge.MergeRequest
}

// QueueMerges has a repository merge by a queue: a driver's merges join it, and land when
// RunMergeQueue says so. People's merges by hand land at once, past the queue.
func (f *Forge) QueueMerges(r forge.Repo) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo, err := f.findRepository("queue merges", r)
	if err != nil {
		return err
	}
	repo.queueMerges = true
	return nil
}

// joinQueue puts a pull request at the end of the queue, if it could be merged now. One that
// is in it with this head stays where it is.
func (c *call) joinQueue(p *pull, m forge.MergeRequest) error {
	if p.info.Queue == forge.Queued && p.info.Head == m.Head {
		return nil
	}
	if err := c.checkMerge(p, m); err != nil {
		return err
	}
	p.info.Queue = forge.Queued
	c.repo.queue = append(c.repo.queue, queuedMerge{p, c.by, m})
	c.markUpdated(p)
	return nil
}

// leaveQueue takes a pull request out of the queue, if it is in it.
func (c *call) leaveQueue(p *pull) {
	if p.info.Queue == forge.NotQueued {
		return
	}
	p.info.Queue = forge.NotQueued
	c.repo.queue = slices.DeleteFunc(c.repo.queue, func(q queuedMerge) bool { return q.pull == p })
	c.markUpdated(p)
}

// RunMergeQueue merges the pull requests in a repository's queue, in the order in which they
// joined, each as the account that had it join. It drops those that can't be merged any more.
func (f *Forge) RunMergeQueue(r forge.Repo, login string) error {
	return f.act("run the merge queue of "+r.String()+" as "+login, login, r, forge.PermissionRead, func(c *call) error {
		for len(c.repo.queue) > 0 {
			if err := c.mergeNextQueued(); err != nil {
				return err
			}
		}
		return nil
	})
}

// MergeNextQueued is RunMergeQueue for what is first in the queue; nothing where nothing is.
func (f *Forge) MergeNextQueued(r forge.Repo, login string) error {
	return f.act("merge what is next in the merge queue of "+r.String()+" as "+login, login, r, forge.PermissionRead, func(c *call) error {
		if len(c.repo.queue) == 0 {
			return nil
		}
		return c.mergeNextQueued()
	})
}

// mergeNextQueued merges what is first in the queue, or drops it.
func (c *call) mergeNextQueued() error {
	next := c.repo.queue[0]
	c.leaveQueue(next.pull)
	landing := *c
	landing.by = next.by
	_, err := landing.mergePull(next.pull, forge.MergeRequest{Number: next.pull.info.Number, Head: next.request.Head,
		Method: next.request.Method})
	c.events = landing.events
	if errors.Is(err, forge.ErrNotMergeable) || errors.Is(err, forge.ErrConflict) {
		return nil
	}
	return err
}

// QueuedPulls are the numbers of the pull requests in a repository's queue, the first that
// lands first; none where it has no queue.
func (f *Forge) QueuedPulls(r forge.Repo) (numbers []int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo, err := f.findRepository("list the merge queue", r)
	if err != nil {
		return nil, err
	}
	for _, q := range repo.queue {
		numbers = append(numbers, q.pull.info.Number)
	}
	return numbers, nil
}

// LeaveQueue takes a pull request out of the repository's merge queue.
func (v *view) LeaveQueue(ctx context.Context, r forge.Repo, number int) error {
	return v.withPull(ctx, "take "+r.Number(number)+" out of the merge queue", r, number, forge.PermissionWrite,
		func(c *call, p *pull) error {
			switch {
			case !c.repo.queueMerges:
				return c.failure(forge.ErrUnsupported, "it merges by no queue")
			case p.info.State == forge.Merged:
				return c.failure(forge.ErrConflict, "it is merged")
			}
			c.leaveQueue(p)
			return nil
		})
}
