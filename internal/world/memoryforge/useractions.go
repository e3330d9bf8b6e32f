package memoryforge

import (
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
)

// The methods in this file act as people do in the forge's pages and with git: with an account, at
// once, and with every consequence. An action that the account may not do, or that the forge
// refuses, is an error with the forge's words.

// act runs do as somebody.
func (f *Forge) act(op, login string, r forge.Repo, need forge.Permission, do func(c *call) error) error {
	return f.withRepository(context.Background(), op, login, r, need, do)
}

// actOnPull runs do on a pull request as somebody.
func (f *Forge) actOnPull(op, login string, r forge.Repo, number int, need forge.Permission, do func(c *call, p *pull) error) error {
	return f.act(op+" "+r.Number(number)+" as "+login, login, r, need, func(c *call) error {
		p, err := c.findPull(number)
		if err != nil {
			return err
		}
		return do(c, p)
	})
}

// Push brings a branch of the repository to a commit that the remote has; an empty
// one deletes it. Without force what doesn't follow the branch's tip is refused.
func (f *Forge) Push(r forge.Repo, login, branch, commit string, force bool) error {
	return f.act("push "+branch+" of "+r.String()+" as "+login, login, r, forge.PermissionWrite, func(c *call) error {
		if before := c.repo.heads[branch]; before != "" && commit != "" && !force {
			follows, err := c.repo.remote.IsAncestor(c.ctx, before, commit)
			if err != nil {
				return err
			}
			if !follows {
				return c.failure(forge.ErrConflict, "rejected (non-fast-forward)")
			}
		}
		return c.moveBranch(branch, commit)
	})
}

// moveBranch brings a branch to a commit, or deletes it.
func (c *call) moveBranch(branch, commit string) error {
	if c.repo.heads[branch] == commit {
		return nil
	}
	if branch == c.repo.defaultBranch && commit == "" {
		return c.failure(forge.ErrInvalid, "Cannot delete the default branch")
	}
	if err := c.repo.remote.Update(branch, commit, c.repo.heads[branch]); err != nil {
		return err
	}
	return c.noticeRefs(c.by)
}

// NoticePush takes notice of branches that somebody moved over a mirror. Without it
// they are noticed at the next call, as moved by Options.Bot.
func (f *Forge) NoticePush(r forge.Repo, login string) error {
	c := &call{Forge: f, ctx: context.Background(), op: "notice a push to " + r.String() + " by " + login, mover: login}
	return c.runAs(login, r, forge.PermissionWrite, func(*call) error { return nil })
}

// OpenPull opens a pull request from a branch of the repository.
func (f *Forge) OpenPull(r forge.Repo, login, branch, base, title, body string) (number int, err error) {
	return f.openPullAs(r, login, newPull{title: title, body: body, branch: branch, base: base})
}

// OpenForkPull opens one from a branch in the account's fork, whose tip is a commit
// that the remote has.
func (f *Forge) OpenForkPull(r forge.Repo, login, branch, commit, base, title, body string) (number int, err error) {
	return f.openPullAs(r, login, newPull{title: title, body: body, branch: branch, base: base, forkHead: commit})
}

func (f *Forge) openPullAs(r forge.Repo, login string, n newPull) (number int, err error) {
	err = f.act("open a pull request in "+r.String()+" from "+n.branch+" as "+login, login, r, forge.PermissionRead, func(c *call) error {
		p, err := c.openPull(n)
		if err == nil {
			number = p.info.Number
		}
		return err
	})
	return number, err
}

// PushFork brings the branch of a fork's pull request to another commit.
func (f *Forge) PushFork(r forge.Repo, number int, login, commit string) error {
	return f.actOnPull("push to the branch of", login, r, number, forge.PermissionRead, func(c *call, p *pull) error {
		switch {
		case !p.info.Fork || p.author != c.by:
			return c.failure(forge.ErrForbidden, "it is not from a fork of "+login+"'s")
		case p.info.State != forge.Open || p.info.Head == commit:
			return nil
		}
		return c.moveHead(p, c.by, commit)
	})
}

// EditTitle and EditBody change what a pull request says of itself.
func (f *Forge) EditTitle(r forge.Repo, number int, login, title string) error {
	return f.editAs(r, number, login, forge.PullRequestUpdate{Title: &title})
}

// EditBody changes a pull request's text.
func (f *Forge) EditBody(r forge.Repo, number int, login, body string) error {
	return f.editAs(r, number, login, forge.PullRequestUpdate{Body: &body})
}

// Close closes a pull request without merging it.
func (f *Forge) Close(r forge.Repo, number int, login string) error {
	state := forge.Closed
	return f.editAs(r, number, login, forge.PullRequestUpdate{State: &state})
}

// Reopen opens a closed pull request again.
func (f *Forge) Reopen(r forge.Repo, number int, login string) error {
	state := forge.Open
	return f.editAs(r, number, login, forge.PullRequestUpdate{State: &state})
}

func (f *Forge) editAs(r forge.Repo, number int, login string, u forge.PullRequestUpdate) error {
	return f.actOnPull("edit", login, r, number, forge.PermissionRead, func(c *call, p *pull) error { return c.editPull(p, u) })
}

// Retarget has a pull request merge into another branch.
func (f *Forge) Retarget(r forge.Repo, number int, login, base string) error {
	return f.actOnPull("retarget", login, r, number, forge.PermissionRead, func(c *call, p *pull) error {
		switch err := c.requireRights(p.author); {
		case err != nil, p.info.Base == base:
			return err
		case p.info.State != forge.Open:
			return c.failure(forge.ErrInvalid, "Validation Failed: Cannot change the base branch of a closed pull request.")
		case c.repo.heads[base] == "":
			return c.failure(forge.ErrInvalid, "Validation Failed: Proposed base branch '"+base+"' was not found")
		case !p.info.Fork && c.findOpen(newPull{branch: p.info.Branch, base: base}) != nil:
			return c.failure(forge.ErrInvalid, "Validation Failed: A pull request already exists for base branch '"+base+
				"' and head branch '"+p.info.Branch+"'")
		}
		c.leaveQueue(p)
		p.info.Base = base
		if err := c.setHead(p, p.info.Head); err != nil {
			return err
		}
		c.markUpdated(p)
		c.emitPullEvent(PullRequestEvent, p, c.by, "edited")
		return nil
	})
}

// SetDraft makes a pull request a draft, which can't be merged, or ready.
func (f *Forge) SetDraft(r forge.Repo, number int, login string, draft bool) error {
	return f.actOnPull("draft", login, r, number, forge.PermissionRead, func(c *call, p *pull) error {
		if err := c.requireRights(p.author); err != nil || p.info.Draft == draft {
			return err
		}
		p.info.Draft = draft
		c.markUpdated(p)
		c.emitPullEvent(PullRequestEvent, p, c.by, map[bool]string{true: "converted_to_draft", false: "ready_for_review"}[draft])
		return nil
	})
}

// SetLabels gives a pull request these labels and no others.
func (f *Forge) SetLabels(r forge.Repo, number int, login string, labels ...string) error {
	return f.actOnPull("label", login, r, number, forge.PermissionWrite, func(c *call, p *pull) error {
		for _, l := range slices.Clone(p.info.Labels) {
			if !slices.Contains(labels, l) {
				c.removeLabel(p, l)
			}
		}
		return c.addLabels(p, labels)
	})
}

// MergeByHand merges a pull request as it is, by merge, squash or rebase, and gives
// the commit that landed.
func (f *Forge) MergeByHand(r forge.Repo, number int, login, method string) (landed string, err error) {
	err = f.actOnPull("merge", login, r, number, forge.PermissionWrite, func(c *call, p *pull) error {
		landed, err = c.mergePull(p, forge.MergeRequest{Number: number, Head: p.info.Head, Method: method})
		return err
	})
	return landed, err
}

// Review says something about a commit of a pull request; empty: about its head.
func (f *Forge) Review(r forge.Repo, number int, login string, v Verdict, commit string) error {
	return f.actOnPull("review", login, r, number, forge.PermissionRead, func(c *call, p *pull) error { return c.addReview(p, v, commit) })
}

// DismissReviews takes back what an account said in reviews.
func (f *Forge) DismissReviews(r forge.Repo, number int, login, of string) error {
	return f.actOnPull("dismiss reviews of", login, r, number, forge.PermissionWrite, func(c *call, p *pull) error {
		for _, v := range p.reviews {
			if v.by == c.findAccount(of) && (v.state == approved || v.state == changesRequested) {
				c.dismissReview(p, v, c.by)
			}
		}
		return nil
	})
}

// Comment adds a comment to a pull request's conversation.
func (f *Forge) Comment(r forge.Repo, number int, login, body string) (id int64, err error) {
	err = f.actOnPull("comment on", login, r, number, forge.PermissionRead, func(c *call, p *pull) error {
		made, err := c.addComment(p, body)
		if err == nil {
			id = made.info.ID
		}
		return err
	})
	return id, err
}

// EditComment changes a comment: one's own, or anybody's for who may write.
func (f *Forge) EditComment(r forge.Repo, id int64, login, body string) error {
	return f.act("edit a comment in "+r.String()+" as "+login, login, r, forge.PermissionRead,
		func(c *call) error { return c.editComment(id, body) })
}

// DeleteComment removes a comment: one's own, or anybody's for who may write.
func (f *Forge) DeleteComment(r forge.Repo, id int64, login string) error {
	return f.act("delete a comment in "+r.String()+" as "+login, login, r, forge.PermissionRead,
		func(c *call) error { return c.deleteComment(id) })
}
