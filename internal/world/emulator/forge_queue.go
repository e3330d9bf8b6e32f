package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// MergeQueue says that a branch of GitHub's is merged into by its merge queue alone.
type MergeQueue struct {
	Method string // merge, squash or rebase; empty: merge
}

// queueEntry is a pull request in a merge queue.
type queueEntry struct {
	pull  *pull
	by    *account
	group string // the head of its merge group, while there is one
}

// queueOnly refuses a merge past the queue.
const queueOnly = "Repository rule violations found\n\nChanges must be made through the merge queue\n\n"

// mergesByQueue says whether a pull request is merged by the queue of its base.
func (p *pull) mergesByQueue() bool { return p.repo.protections[p.base].Queue != nil }

func (p *pull) findEntry() *queueEntry {
	i := slices.IndexFunc(p.repo.queue, func(e *queueEntry) bool { return e.pull == p })
	if i < 0 {
		return nil
	}
	return p.repo.queue[i]
}

// enqueue puts a pull request with this head at the end of its base's queue.
func (f *Forge) enqueue(p *pull, by *account, head string) error {
	refused := func(words string) error {
		return newAPIError(http.StatusUnprocessableEntity, "%s", words)
	}
	switch {
	case !p.mergesByQueue():
		return refused("Merge queue is not enabled on the base branch")
	case !p.open:
		return refused("Pull request is closed")
	case head != "" && head != p.head:
		return refused("Head sha was modified")
	case p.draft:
		return refused("Pull request is in draft state")
	case p.findEntry() != nil:
		return refused("Pull request is already in the queue")
	}
	why, err := f.findMergeBlocker(p)
	if err != nil {
		return err
	}
	if why == "" {
		if _, clean, err := p.repo.git.mergeTree(p.repo.branchHead(p.base), p.head); err != nil {
			return err
		} else if !clean {
			why = "Pull request has merge conflicts"
		}
	}
	if why != "" {
		return refused(why)
	}
	p.repo.queue = append(p.repo.queue, &queueEntry{pull: p, by: by})
	f.markUpdated(p)
	f.emitPull(p, by, "enqueued", nil)
	return nil
}

// dequeue takes a pull request out of its queue, if it is in one; reason is GitHub's word.
func (f *Forge) dequeue(p *pull, by *account, reason string) {
	e := p.findEntry()
	if e == nil {
		return
	}
	p.repo.queue = slices.DeleteFunc(p.repo.queue, func(o *queueEntry) bool { return o == e })
	f.markUpdated(p)
	f.emitPull(p, by, "dequeued", map[string]any{"reason": reason})
	for _, o := range p.repo.queue {
		o.group = "" // it is built anew, without whom it lost
	}
}

// dropGroups removes the branches of merge groups that nothing in the queue needs.
func (f *Forge) dropGroups(r *repository, by *account) error {
	dropped, needed := false, map[string]bool{}
	for _, e := range r.queue {
		needed[e.group] = true
	}
	for _, name := range sortedKeys(r.refs) {
		if strings.HasPrefix(name, "refs/heads/"+groupPrefix) && !needed[r.refs[name]] {
			if err := r.git.deleteRef(name, r.refs[name]); err != nil {
				return err
			}
			dropped = true
		}
	}
	if !dropped {
		return nil
	}
	return f.noticeRefs(r, by)
}

// groupPrefix begins the names of the branches that merge groups are built on.
const groupPrefix = "gh-readonly-queue/"

// BuildMergeGroups makes the merge groups of a repository's queue, one on top of the other in the
// order in which the pull requests joined. Each is a branch with the content that would land, on
// which required checks run. Pull requests that can't be merged are dropped.
func (f *Forge) BuildMergeGroups(repo, login string) error {
	return f.withRepositoryRefs(repo, login, func(r *repository, by *account) error {
		return f.buildGroups(r, by)
	})
}

func (f *Forge) buildGroups(r *repository, by *account) error {
	if err := f.dropGroups(r, by); err != nil {
		return err
	}
	tips := map[string]string{}
	for _, e := range slices.Clone(r.queue) {
		p := e.pull
		base := tips[p.base]
		if base == "" {
			base = r.branchHead(p.base)
		}
		if e.group != "" {
			tips[p.base] = e.group
			continue
		}
		head, clean, err := f.createMergeCommit(p, e.by, base, mergeRequest{Method: methodOf(r.protections[p.base].Queue)})
		if err != nil {
			return err
		}
		if !clean {
			f.dequeue(p, by, "MERGE_CONFLICT")
			return f.buildGroups(r, by)
		}
		e.group, tips[p.base] = head, head
		if err := r.git.updateRef(fmt.Sprintf("refs/heads/%s%s/pr-%d-%s", groupPrefix, p.base, p.number, base), head, ""); err != nil {
			return err
		}
	}
	return f.noticeRefs(r, by)
}

func methodOf(q *MergeQueue) string {
	if q == nil || q.Method == "" {
		return "merge"
	}
	return q.Method
}

// runQueue builds the groups and lands them in their order: each whose required checks succeeded.
// One whose check failed is dropped, and the others are built anew; one whose checks haven't ended
// waits, and all behind it.
func (f *Forge) runQueue(r *repository, by *account) error {
	if err := f.buildGroups(r, by); err != nil {
		return err
	}
	for len(r.queue) > 0 {
		e := r.queue[0]
		p := e.pull
		switch state := f.groupState(r, p.base, e.group); state {
		case "success":
		case "failure", "error":
			f.dequeue(p, by, "CI_FAILURE")
			return f.runQueue(r, by)
		default:
			return nil
		}
		before := r.branchHead(p.base)
		if err := r.git.updateRef("refs/heads/"+p.base, e.group, before); err != nil {
			return err
		}
		var err error
		if p.landed, err = r.git.revList(before, e.group); err != nil {
			return err
		}
		r.queue = r.queue[1:]
		f.markMerged(p, e.by, e.group)
		if err := f.noticeRefs(r, e.by); err != nil {
			return err
		}
	}
	return f.dropGroups(r, by)
}

// groupState is how the required checks of a base stand on a group's head.
func (f *Forge) groupState(r *repository, base, head string) string {
	latest := f.latestStatuses(r, head)
	for _, context := range r.protections[base].Contexts {
		i := slices.IndexFunc(latest, func(s *status) bool { return s.context == context })
		if i < 0 {
			return "pending"
		}
		if latest[i].state != "success" {
			return latest[i].state
		}
	}
	return "success"
}

// MergeGroup is a merge group of GitHub's.
type MergeGroup struct {
	Branch, Head string
	States       map[string]string // of the statuses on its head, by context
}

// MergeGroups are a repository's merge groups, by branch.
func (f *Forge) MergeGroups(repo string) ([]MergeGroup, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	var all []MergeGroup
	for _, name := range sortedKeys(r.refs) {
		branch, ok := strings.CutPrefix(name, "refs/heads/")
		if !ok || !strings.HasPrefix(branch, groupPrefix) {
			continue
		}
		g := MergeGroup{Branch: branch, Head: r.refs[name], States: map[string]string{}}
		for _, s := range f.latestStatuses(r, g.Head) {
			g.States[s.context] = s.state
		}
		all = append(all, g)
	}
	return all, nil
}

// Enqueue puts a pull request into its base's merge queue, as somebody by hand.
func (f *Forge) Enqueue(repo string, number int, login string) error {
	return f.withPull(repo, number, login, func(p *pull, by *account) error { return f.enqueue(p, by, p.head) })
}
