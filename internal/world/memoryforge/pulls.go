package memoryforge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

const (
	// maxBody is GitHub's limit for the body of a comment or pull request.
	maxBody = 65536
	// maxLabel is its limit for a label's name.
	maxLabel = 50
)

// pull is a pull request with what belongs to it.
type pull struct {
	info     forge.PullRequest // but for Mergeable
	author   *account
	commits  []string // what the head brings, oldest first; at most forge.MaxCommits
	reviews  []*review
	comments []*comment // oldest first

	requested map[string]bool // logins and teams from whom a review is requested

	newer, older *pull // by the last update

	// The merge of head and base as it was last tried, of which pair.
	tested string
	tree   string // empty: it conflicts
}

// showPull gives a copy.
func (p *pull) showPull() forge.PullRequest {
	info := p.info
	info.Labels = slices.Clone(info.Labels)
	info.Mergeable = forge.MergeableUnknown
	return info
}

// showListed gives a copy as GitHub lists it: only of a single one it says who merged it.
func (p *pull) showListed() forge.PullRequest {
	info := p.showPull()
	info.MergedBy, info.MergedByID = "", 0
	return info
}

// markUpdated puts a pull request before all others.
func (c *call) markUpdated(p *pull) {
	p.info.UpdatedAt = c.now()
	if c.repo.newest == p {
		return
	}
	if p.newer != nil {
		p.newer.older = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	}
	p.newer, p.older = nil, c.repo.newest
	if p.older != nil {
		p.older.newer = p
	}
	c.repo.newest = p
}

func (c *call) findPull(number int) (*pull, error) {
	if number < 1 || number > len(c.repo.pulls) {
		return nil, c.failure(forge.ErrNotFound, "Not Found")
	}
	return c.repo.pulls[number-1], nil
}

// listOpen lists the open pull requests, by number.
func (r *repository) listOpen() []*pull {
	numbers := slices.Sorted(maps.Keys(r.open))
	open := make([]*pull, len(numbers))
	for i, n := range numbers {
		open[i] = r.open[n]
	}
	return open
}

// newPull is what a pull request is opened with.
type newPull struct {
	title, body, branch, base string
	forkHead                  string // the commit of the branch in the author's fork; empty: it is in this repository
}

// findOpen finds the open pull request from a branch onto another.
func (c *call) findOpen(n newPull) *pull {
	for _, p := range c.repo.listOpen() {
		sameOwner := p.info.Fork == (n.forkHead != "") && (!p.info.Fork || p.author == c.by)
		if p.info.Branch == n.branch && p.info.Base == n.base && sameOwner {
			return p
		}
	}
	return nil
}

// openPull opens a pull request, or says in GitHub's words why it can't.
func (c *call) openPull(n newPull) (*pull, error) {
	head := cmp.Or(n.forkHead, c.repo.heads[n.branch])
	switch {
	case n.title == "":
		return nil, c.failure(forge.ErrInvalid, "Validation Failed: title is missing")
	case len(n.body) > maxBody:
		return nil, c.failure(forge.ErrInvalid, "Validation Failed: body is too long (maximum is 65536 characters)")
	case c.repo.heads[n.base] == "":
		return nil, c.failure(forge.ErrConflict, "Validation Failed: base is invalid")
	case head == "":
		return nil, c.failure(forge.ErrInvalid, "Validation Failed: head is invalid")
	case n.forkHead == "" && c.repo.permissionOf(c.by) < forge.PermissionWrite:
		return nil, c.failure(forge.ErrForbidden, "must be a collaborator")
	case c.findOpen(n) != nil:
		return nil, c.failure(forge.ErrInvalid, "Validation Failed: A pull request already exists for "+n.branch+".")
	}
	number := len(c.repo.pulls) + 1
	p := &pull{author: c.by, info: forge.PullRequest{
		Number: number, URL: fmt.Sprintf("https://%s/%s/pull/%d", host, c.repo.name, number), Ref: fmt.Sprintf("refs/pull/%d/head", number),
		Title: n.title, Body: n.body, Author: c.by.user.Login, AuthorID: c.by.user.ID,
		Branch: n.branch, Fork: n.forkHead != "", Base: n.base, State: forge.Open, CreatedAt: c.now(),
	}}
	if err := c.setHead(p, head); err != nil {
		return nil, err
	}
	if len(p.commits) == 0 {
		return nil, c.failure(forge.ErrConflict, fmt.Sprintf("Validation Failed: No commits between %s and %s", n.base, n.branch))
	}
	c.repo.pulls = append(c.repo.pulls, p)
	c.repo.open[number] = p
	if !p.info.Fork {
		c.repo.byBranch[n.branch] = append(c.repo.byBranch[n.branch], p)
	}
	c.markUpdated(p)
	c.emitPullEvent(PullRequestEvent, p, c.by, "opened")
	return p, nil
}

// setHead makes a commit the pull request's head, and keeps it whatever happens to
// its branch.
func (c *call) setHead(p *pull, head string) error {
	commits, err := c.listCommits(c.repo.heads[p.info.Base], head)
	if err != nil {
		return err
	}
	if len(commits) > 0 {
		c.repo.remote.SetRef(p.info.Ref, head)
	}
	p.info.Head, p.commits = head, nil
	for _, found := range commits {
		p.commits = append(p.commits, found.SHA)
	}
	return nil
}

// listCommits is what head has and base hasn't, oldest first, as much as is shown of it.
func (c *call) listCommits(base, head string) ([]git.CommitInfo, error) {
	commits, err := c.repo.remote.Log(c.ctx, git.LogQuery{From: head, Until: base, Limit: forge.MaxCommits})
	slices.Reverse(commits)
	return commits, err
}

// closePull closes a pull request without merging it.
func (c *call) closePull(p *pull, by *account) {
	c.leaveQueue(p)
	p.info.State, p.info.ClosedAt = forge.Closed, c.now()
	delete(c.repo.open, p.info.Number)
	c.markUpdated(p)
	c.emitPullEvent(PullRequestEvent, p, by, "closed")
}

// reopenPull opens a closed one again, unless its branch is no longer what it was.
func (c *call) reopenPull(p *pull) error {
	refused := func(why string) error {
		return c.failure(forge.ErrInvalid, "Validation Failed: state cannot be changed. "+why)
	}
	head := c.repo.heads[p.info.Branch]
	if p.info.Fork {
		head = p.info.Head
	}
	switch {
	case p.info.State == forge.Merged:
		return refused("The pull request is already merged.")
	case head == "" || c.repo.heads[p.info.Base] == "":
		return refused("The " + p.info.Branch + " branch has been deleted.")
	case !p.info.Fork && c.findOpen(newPull{branch: p.info.Branch, base: p.info.Base}) != nil:
		return refused("There is already an open pull request from " + p.info.Branch + " to " + p.info.Base + ".")
	}
	// GitHub compares with the head that it closed with.
	if grown, err := c.repo.remote.IsAncestor(c.ctx, p.info.Head, head); err != nil {
		return err
	} else if !grown {
		return refused("The " + p.info.Branch + " branch was force-pushed or recreated.")
	}
	if err := c.setHead(p, head); err != nil {
		return err
	}
	if len(p.commits) == 0 {
		return refused("There are no new commits on the " + p.info.Branch + " branch.")
	}
	p.info.State, p.info.ClosedAt = forge.Open, time.Time{}
	c.repo.open[p.info.Number] = p
	c.markUpdated(p)
	c.emitPullEvent(PullRequestEvent, p, c.by, "reopened")
	return nil
}

// requireRights says that the caller may change what an account made.
func (c *call) requireRights(owner *account) error {
	if c.by != owner && c.repo.permissionOf(c.by) < forge.PermissionWrite {
		return c.failure(forge.ErrForbidden, "Must have write access to Repository.")
	}
	return nil
}

// editPull changes what u names, if that is another.
func (c *call) editPull(p *pull, u forge.PullRequestUpdate) error {
	if err := c.requireRights(p.author); err != nil {
		return err
	}
	title, body := p.info.Title, p.info.Body
	if u.Title != nil {
		title = *u.Title
	}
	if u.Body != nil {
		body = *u.Body
	}
	if title == "" || len(body) > maxBody {
		return c.failure(forge.ErrInvalid, "Validation Failed: the title is missing or the body is too long (maximum is 65536 characters)")
	}
	base := p.info.Base
	if u.Base != nil && p.info.State == forge.Open && *u.Base != base {
		if base = *u.Base; c.repo.heads[base] == "" {
			return c.failure(forge.ErrInvalid, "Validation Failed: base is invalid")
		}
	}
	if title != p.info.Title || body != p.info.Body || base != p.info.Base {
		p.info.Title, p.info.Body = title, body
		if base != p.info.Base {
			p.info.Base = base
			if err := c.setHead(p, p.info.Head); err != nil {
				return err
			}
		}
		c.markUpdated(p)
		c.emitPullEvent(PullRequestEvent, p, c.by, "edited")
	}
	switch {
	case u.State == nil:
	case *u.State == forge.Closed && p.info.State == forge.Open:
		c.closePull(p, c.by)
	case *u.State == forge.Open && p.info.State != forge.Open:
		return c.reopenPull(p)
	case *u.State != forge.Open && *u.State != forge.Closed:
		return c.failure(forge.ErrInvalid, "Validation Failed: state is invalid")
	}
	return nil
}

// addLabels adds labels; there is no list of a repository's labels that they would
// have to be on first.
func (c *call) addLabels(p *pull, labels []string) error {
	for _, l := range labels {
		if l == "" || len(l) > maxLabel || strings.Contains(l, "\n") {
			return c.failure(forge.ErrInvalid, "Validation Failed: name is invalid")
		}
	}
	for _, l := range labels {
		if p.info.HasLabel(l) {
			continue
		}
		p.info.Labels = append(p.info.Labels, l)
		slices.Sort(p.info.Labels)
		c.markUpdated(p)
		c.emitPullEvent(PullRequestEvent, p, c.by, "labeled")
	}
	return nil
}

// removeLabel takes a label off; one that isn't there is success.
func (c *call) removeLabel(p *pull, label string) {
	i := slices.Index(p.info.Labels, label)
	if i < 0 {
		return
	}
	p.info.Labels = slices.Delete(p.info.Labels, i, i+1)
	c.markUpdated(p)
	c.emitPullEvent(PullRequestEvent, p, c.by, "unlabeled")
}
