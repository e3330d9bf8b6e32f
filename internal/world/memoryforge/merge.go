package memoryforge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

var mergeMethods = []string{"merge", "squash", "rebase"}

// Protection is what a branch asks for before a pull request into it merges.
type Protection struct {
	Approvals    int      // approving reviews by accounts that may write
	Contexts     []string // commit statuses that must be success on the head
	DismissStale bool     // a push dismisses approvals
	Strict       bool     // the head must contain the base branch's tip
}

// Protect says what merging into a branch needs; the zero Protection: nothing.
func (f *Forge) Protect(r forge.Repo, branch string, p Protection) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo, err := f.findRepository("protect "+branch, r)
	if err != nil {
		return err
	}
	repo.protections[branch] = p
	return nil
}

// Rules are the branch's protection.
func (v *view) Rules(ctx context.Context, r forge.Repo, branch string) (found *forge.BranchRules, err error) {
	err = v.read(ctx, "read the rules of the branch "+branch+" of "+r.String(), r, func(c *call) error {
		found = &forge.BranchRules{Sets: []forge.RuleSet{{Name: "the repository's settings", Methods: slices.Clone(mergeMethods)}}}
		if c.repo.queueMerges {
			found.Sets[0].Queue = &forge.QueueRule{}
		}
		if p, ok := c.repo.protections[branch]; ok {
			found.Sets = append(found.Sets, forge.RuleSet{Name: "branch protection", Approvals: p.Approvals,
				Checks: slices.Clone(p.Contexts), DropsApprovals: p.DismissStale, UpToDate: p.Strict})
		}
		return nil
	})
	return found, err
}

// DeleteMergedBranches has a pull request's branch removed after its merge.
func (f *Forge) DeleteMergedBranches(r forge.Repo) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo, err := f.findRepository("delete merged branches", r)
	if err != nil {
		return err
	}
	repo.deleteMerged = true
	return nil
}

// testMerge tries the merge of a pull request as it is now. known says that GitHub
// would know the outcome already: it tries when it is asked for the first time.
func (c *call) testMerge(p *pull) (known bool, err error) {
	base := c.repo.heads[p.info.Base]
	pair := p.info.Head + " " + base
	if p.tested == pair {
		return true, nil
	}
	tree, conflicts, err := c.repo.remote.Merge(c.ctx, base, p.info.Head)
	if err != nil {
		return false, err
	}
	if len(conflicts) > 0 {
		tree = ""
	}
	p.tested, p.tree = pair, tree
	return !c.options.SlowMergeable, nil
}

// showWhole gives a copy with Mergeable and CommentCount.
func (c *call) showWhole(p *pull) (forge.PullRequest, error) {
	info := p.showPull()
	comments := len(p.comments)
	info.CommentCount = &comments
	if info.State != forge.Open {
		return info, nil
	}
	info.MergeReason = "unknown"
	known, err := c.testMerge(p)
	if err != nil || !known {
		return info, err
	}
	why, behind, err := c.findMergeBlocker(p)
	switch {
	case err != nil:
		return info, err
	case p.tree == "":
		info.Mergeable, info.MergeReason = forge.MergeableDirty, "dirty"
	case info.Draft:
		info.Mergeable, info.MergeReason = forge.MergeableBlocked, "draft"
	case behind:
		info.Mergeable, info.MergeReason = forge.MergeableBehind, "behind"
	case why != "":
		info.Mergeable, info.MergeReason = forge.MergeableBlocked, "blocked"
	default:
		info.Mergeable, info.MergeReason = forge.MergeableYes, ""
	}
	return info, nil
}

// findMergeBlocker says in GitHub's words what protection keeps a pull request from
// merging; empty when nothing does.
func (c *call) findMergeBlocker(p *pull) (why string, behind bool, err error) {
	need := c.repo.protections[p.info.Base]
	if need.Strict {
		upToDate, err := c.repo.remote.IsAncestor(c.ctx, c.repo.heads[p.info.Base], p.info.Head)
		if err != nil {
			return "", false, err
		}
		if !upToDate {
			return "The head branch is not up to date with the base branch.", true, nil
		}
	}
	for _, context := range need.Contexts {
		s := c.repo.findStatus(p.info.Head, context)
		switch {
		case s == nil:
			return fmt.Sprintf("Required status check %q is expected.", context), false, nil
		case s.info.State == forge.StatusPending:
			return fmt.Sprintf("Required status check %q is pending.", context), false, nil
		case s.info.State != forge.StatusSuccess:
			return fmt.Sprintf("Required status check %q is failing.", context), false, nil
		}
	}
	if need.Approvals == 0 {
		return "", false, nil
	}
	given := 0
	for who, state := range p.reviewStates() {
		if c.repo.permissionOf(who) < forge.PermissionWrite {
			continue
		}
		if state == changesRequested {
			return "Changes have been requested by a reviewer with write access.", false, nil
		}
		if state == approved {
			given++
		}
	}
	if given < need.Approvals {
		return fmt.Sprintf("At least %d approving reviews are required by reviewers with write access.", need.Approvals), false, nil
	}
	return "", false, nil
}

// mergePull merges one head, and gives the commit that landed.
func (c *call) mergePull(p *pull, m forge.MergeRequest) (string, error) {
	if p.isMergedAt(m.Head) {
		return p.info.MergeCommit, nil
	}
	if err := c.checkMerge(p, m); err != nil {
		return "", err
	}
	return c.landPull(p, m)
}

func (p *pull) isMergedAt(head string) bool {
	return p.info.State == forge.Merged && p.info.Head == head
}

// checkMerge says why one head can't be merged now; nil: it can.
func (c *call) checkMerge(p *pull, m forge.MergeRequest) error {
	switch {
	case p.info.Head != m.Head:
		return c.failure(forge.ErrConflict, "its head is "+p.info.Head+", not "+m.Head)
	case p.info.State == forge.Closed:
		return c.failure(forge.ErrNotMergeable, "it is closed")
	case !slices.Contains(mergeMethods, m.Method):
		return c.failure(forge.ErrInvalid, "Validation Failed: merge_method is invalid")
	case p.info.Draft:
		return c.failure(forge.ErrNotMergeable, "Pull Request is still a draft (draft)")
	}
	known, err := c.testMerge(p)
	if err != nil {
		return err
	}
	switch why, _, err := c.findMergeBlocker(p); {
	case err != nil:
		return err
	case why != "":
		return c.failure(forge.ErrNotMergeable, why)
	case p.tree == "" && !known: // what GitHub says while it computes
		return c.failure(forge.ErrConflict, "Pull Request is not mergeable")
	case p.tree == "":
		return c.failure(forge.ErrNotMergeable, "Pull Request is not mergeable (dirty)")
	}
	return nil
}

// UpdateBranch merges the base into a pull request's branch.
func (v *view) UpdateBranch(ctx context.Context, r forge.Repo, number int, head string) error {
	return v.withPull(ctx, "bring "+r.Number(number)+" up to date", r, number, forge.PermissionWrite, func(c *call, p *pull) error {
		if p.info.State != forge.Open || p.info.Head != head {
			return c.failure(forge.ErrConflict, "expected head sha didn't match current head ref.")
		}
		if _, err := c.testMerge(p); err != nil {
			return err
		}
		if p.tree == "" {
			return c.failure(forge.ErrConflict, "merge conflict between base and head")
		}
		author := c.by.ident()
		merge, err := c.repo.remote.Write(c.ctx, git.CommitSpec{
			Parents: []string{head, c.repo.heads[p.info.Base]}, Base: p.tree, Message: "Merge branch '" + p.info.Base + "' into " +
				p.info.Branch, Author: &author, Committer: &webFlow, When: c.now(),
		})
		if err != nil {
			return err
		}
		if c.repo.remote.Update(p.info.Branch, merge, head) != nil {
			return c.failure(forge.ErrConflict, "expected head sha didn't match current head ref.")
		}
		return c.noticeRefs(c.by)
	})
}

// landPull puts what a pull request brings onto its base.
func (c *call) landPull(p *pull, m forge.MergeRequest) (string, error) {
	base := c.repo.heads[p.info.Base]
	write := c.writeMergeCommit
	if m.Method == "rebase" {
		write = c.rebaseCommits
	}
	landed, err := write(p, base, m)
	if err != nil {
		return "", err
	}
	if c.repo.remote.Update(p.info.Base, landed, base) != nil {
		return "", c.failure(forge.ErrConflict, "Base branch was modified. Review and try the merge again.")
	}
	brought, err := c.listCommits(base, landed)
	if err != nil {
		return "", err
	}
	c.markMerged(p, c.by, landed, brought)
	if c.repo.deleteMerged && !p.info.Fork {
		// An account that pushed to it in the same moment keeps it.
		_ = c.repo.remote.Update(p.info.Branch, "", p.info.Head)
	}
	return landed, c.noticeRefs(c.by)
}

// writeMergeCommit makes the commit of a merge or squash.
func (c *call) writeMergeCommit(p *pull, base string, m forge.MergeRequest) (string, error) {
	parents, author, title, message := []string{base, p.info.Head}, c.by.ident(), m.Title, m.Message
	if m.Method == "squash" {
		parents, author = []string{base}, p.author.ident()
		title = cmp.Or(title, fmt.Sprintf("%s (#%d)", p.info.Title, p.info.Number))
	} else {
		owner := c.repo.name.Owner
		if p.info.Fork {
			owner = p.info.Author
		}
		title = cmp.Or(title, fmt.Sprintf("Merge pull request #%d from %s/%s", p.info.Number, owner, p.info.Branch))
		message = cmp.Or(message, p.info.Title)
	}
	return c.repo.remote.Write(c.ctx, git.CommitSpec{
		Parents: parents, Base: p.tree, Message: title + "\n\n" + message, Author: &author, Committer: &webFlow, When: c.now(),
	})
}

// rebaseCommits replays a pull request's commits onto its base, all but merges.
func (c *call) rebaseCommits(p *pull, base string, _ forge.MergeRequest) (string, error) {
	cannot := c.failure(forge.ErrNotMergeable, "This branch can't be rebased")
	if len(p.commits) >= forge.MaxCommits {
		return "", cannot
	}
	remote, committer, tip := c.repo.remote, c.by.ident(), base
	for _, sha := range p.commits {
		found, err := remote.Commit(c.ctx, sha)
		if err != nil {
			return "", err
		}
		if len(found.Parents) != 1 {
			continue
		}
		// The new tip's files as a child of the old parent: merging the commit with
		// that is to apply what it changed.
		grafted, err := remote.Write(c.ctx, git.CommitSpec{
			Parents: found.Parents, Base: tip, Message: "graft", Author: &committer, Committer: &committer, When: c.now(),
		})
		if err != nil {
			return "", err
		}
		tree, conflicts, err := remote.Merge(c.ctx, grafted, sha)
		if err != nil {
			return "", err
		}
		if len(conflicts) > 0 {
			return "", cannot
		}
		tip, err = remote.Write(c.ctx, git.CommitSpec{
			Parents: []string{tip}, Base: tree, Message: found.Message, Author: &found.Author, AuthorTime: found.AuthorTime,
			Committer: &committer, When: c.now(),
		})
		if err != nil {
			return "", err
		}
	}
	if tip == base {
		return "", cannot
	}
	return tip, nil
}

// markMerged says that a pull request has landed as a commit; brought are the commits
// that came onto the base with it.
func (c *call) markMerged(p *pull, by *account, landed string, brought []git.CommitInfo) {
	at := c.now()
	c.leaveQueue(p)
	p.info.State, p.info.MergeCommit, p.info.MergedBy, p.info.MergedByID = forge.Merged, landed, by.user.Login, by.user.ID
	p.info.MergedAt, p.info.ClosedAt = at, at
	delete(c.repo.open, p.info.Number)
	commits := append(slices.Clone(p.commits), landed)
	for _, found := range brought {
		commits = append(commits, found.SHA)
	}
	for _, sha := range commits {
		if !slices.Contains(c.repo.byCommit[sha], p) {
			list := append(c.repo.byCommit[sha], p)
			slices.SortFunc(list, func(a, b *pull) int { return cmp.Compare(a.info.Number, b.info.Number) })
			c.repo.byCommit[sha] = list
		}
	}
	c.markUpdated(p)
	c.emitPullEvent(PullRequestEvent, p, by, "closed")
}
