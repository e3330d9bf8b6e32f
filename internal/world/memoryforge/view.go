package memoryforge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// view is the forge as a driver with an account's credentials sees it.
type view struct {
	forge *Forge
	login string
}

// As is the driver's view with an account's credentials: Me, and what it may do. An
// account that doesn't exist has wrong credentials.
func (f *Forge) As(login string) forge.Forge { return &view{forge: f, login: login} }

// read runs do as somebody who may read.
func (v *view) read(ctx context.Context, op string, r forge.Repo, do func(c *call) error) error {
	return v.forge.withRepository(ctx, op, v.login, r, forge.PermissionRead, do)
}

// withPull runs do on a pull request as somebody who may do what it needs.
func (v *view) withPull(ctx context.Context, op string, r forge.Repo, number int, need forge.Permission,
	do func(c *call, p *pull) error) error {
	return v.forge.withRepository(ctx, op, v.login, r, need, func(c *call) error {
		p, err := c.findPull(number)
		if err != nil {
			return err
		}
		return do(c, p)
	})
}

// Me is the account.
func (v *view) Me(ctx context.Context) (forge.User, error) {
	c := &call{Forge: v.forge, ctx: ctx, op: "read who the credentials belong to"}
	if err := c.beforeCall(v.login); err != nil {
		return forge.User{}, err
	}
	v.forge.mu.Lock()
	defer v.forge.mu.Unlock()
	if err := c.signIn(v.login); err != nil {
		return forge.User{}, err
	}
	return c.by.user, nil
}

// CloneURL is an address that nobody answers at: a mirror in memory needs none.
func (v *view) CloneURL(_ context.Context, r forge.Repo) (string, error) {
	return "https://" + host + "/" + r.String() + ".git", nil
}

// CommitURL is where a commit's page would be.
func (v *view) CommitURL(r forge.Repo, commit string) string {
	return "https://" + host + "/" + r.String() + "/commit/" + commit
}

// CompareURL is where the page of what head has and base hasn't would be.
func (v *view) CompareURL(r forge.Repo, base, head string) string {
	return "https://" + host + "/" + r.String() + "/compare/" + base + "..." + head
}

// GitAuth gives the login alone.
func (v *view) GitAuth(context.Context, forge.Repo) (username, password string, err error) {
	return v.login, "", nil
}

// IsTeamMember looks into what SetTeam said.
func (v *view) IsTeamMember(ctx context.Context, t forge.Team, login string) (is bool, err error) {
	err = v.readTeam(ctx, t, "read whether "+login+" is in "+t.String(), func(found *team) { is = found.contains(login) })
	return is, err
}

// TeamNumber counts the teams as they were made.
func (v *view) TeamNumber(ctx context.Context, t forge.Team) (number int64, err error) {
	err = v.readTeam(ctx, t, "read the number of the team "+t.String(), func(found *team) { number = found.number })
	return number, err
}

// readTeam calls read with a team that is there.
func (v *view) readTeam(ctx context.Context, t forge.Team, op string, read func(*team)) error {
	c := &call{Forge: v.forge, ctx: ctx, op: op}
	if err := c.beforeCall(v.login); err != nil {
		return err
	}
	v.forge.mu.Lock()
	defer v.forge.mu.Unlock()
	if err := c.signIn(v.login); err != nil {
		return err
	}
	found := v.forge.teams[strings.ToLower(t.String())]
	if found == nil {
		return forge.MissingTeam(t, op)
	}
	read(found)
	return nil
}

// PullRequests lists without Mergeable and MergedBy, as GitHub does. A pull request that was last
// updated before since costs nothing.
func (v *view) PullRequests(ctx context.Context, r forge.Repo, since time.Time) (found []forge.PullRequest, err error) {
	err = v.read(ctx, "list the pull requests of "+r.String(), r, func(c *call) error {
		listed := 0
		for p := c.repo.newest; p != nil && !p.info.UpdatedAt.Before(since); p = p.older {
			listed++
		}
		found = make([]forge.PullRequest, 0, listed)
		for p := c.repo.newest; len(found) < listed; p = p.older {
			found = append(found, p.showListed())
		}
		return nil
	})
	return found, err
}

// PullRequest reads one with everything.
func (v *view) PullRequest(ctx context.Context, r forge.Repo, number int) (pr *forge.PullRequest, err error) {
	err = v.withPull(ctx, "read "+r.Number(number), r, number, forge.PermissionRead, func(c *call, p *pull) error {
		info, err := c.showWhole(p)
		pr = &info
		return err
	})
	if err != nil {
		return nil, err
	}
	return pr, nil
}

// ReviewedPullRequests reads several with their reviews.
func (v *view) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) (found []forge.ReviewedPullRequest, err error) {
	op := fmt.Sprintf("read %d pull requests of %s together", len(numbers), r)
	switch {
	case len(numbers) == 0:
		return nil, nil
	case len(numbers) > forge.MaxBulk:
		return nil, &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: fmt.Sprintf("one call reads %d", forge.MaxBulk)}
	}
	err = v.read(ctx, op, r, func(c *call) error {
		for _, n := range numbers {
			p, err := c.findPull(n)
			if errors.Is(err, forge.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			one := forge.ReviewedPullRequest{Reviews: p.listReviews()}
			if one.PullRequest, err = c.showWhole(p); err != nil {
				return err
			}
			for i := range one.Reviews {
				who := c.findAccount(one.Reviews[i].User)
				may := who != nil && c.repo.permissionOf(who) >= forge.PermissionWrite
				one.Reviews[i].MayWrite = &may
			}
			found = append(found, one)
		}
		return nil
	})
	return found, err
}

// PullRequestsByBranch lists those of the repository's own branch.
func (v *view) PullRequestsByBranch(ctx context.Context, r forge.Repo, branch string) (found []forge.PullRequest, err error) {
	err = v.read(ctx, "list the pull requests of "+r.String()+" from "+branch, r, func(c *call) error {
		for _, p := range slices.Backward(c.repo.byBranch[branch]) {
			found = append(found, p.showListed())
		}
		return nil
	})
	return found, err
}

// MayOpen is always so: there are no limits.
func (v *view) MayOpen(context.Context, forge.Repo) error { return nil }

// CreatePullRequest opens one, or finds the open one.
func (v *view) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (pr *forge.PullRequest, created bool,
	err error) {
	err = v.read(ctx, "open a pull request in "+r.String()+" from "+n.Branch, r, func(c *call) error {
		wanted := newPull{title: n.Title, body: n.Body, branch: n.Branch, base: n.Base}
		p := c.findOpen(wanted)
		if created = p == nil; created {
			if p, err = c.openPull(wanted); err != nil {
				return err
			}
		}
		info := p.showPull()
		if created {
			// GitHub answers with everything, and so begins to try the merge.
			if info, err = c.showWhole(p); err != nil {
				return err
			}
		}
		if err := c.addLabels(p, n.Labels); err != nil {
			return err
		}
		info.Labels, info.UpdatedAt = slices.Clone(p.info.Labels), p.info.UpdatedAt
		pr = &info
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return pr, created, nil
}

// UpdatePullRequest sets what u names.
func (v *view) UpdatePullRequest(ctx context.Context, r forge.Repo, number int, u forge.PullRequestUpdate) error {
	if u == (forge.PullRequestUpdate{}) {
		return nil
	}
	return v.withPull(ctx, "update "+r.Number(number), r, number, forge.PermissionRead, func(c *call, p *pull) error {
		if err := c.editPull(p, u); err != nil {
			return err
		}
		_, err := c.showWhole(p) // as above
		return err
	})
}

// Merge merges one head.
func (v *view) Merge(ctx context.Context, r forge.Repo, m forge.MergeRequest) (landed string, err error) {
	err = v.withPull(ctx, "merge "+r.Number(m.Number), r, m.Number, forge.PermissionWrite, func(c *call, p *pull) error {
		if m.Head == "" {
			return c.failure(forge.ErrInvalid, "no head to merge was given")
		}
		if c.repo.queueMerges && !p.isMergedAt(m.Head) {
			return c.joinQueue(p, m)
		}
		landed, err = c.mergePull(p, m)
		return err
	})
	return landed, err
}

// DeleteBranch removes a branch.
func (v *view) DeleteBranch(ctx context.Context, r forge.Repo, branch string) error {
	return v.forge.withRepository(ctx, "delete the branch "+branch+" of "+r.String(), v.login, r, forge.PermissionWrite,
		func(c *call) error {
			return c.moveBranch(branch, "")
		})
}

// Reviews gives one review an account.
func (v *view) Reviews(ctx context.Context, r forge.Repo, number int) (found []forge.Review, err error) {
	err = v.withPull(ctx, "list the reviews of "+r.Number(number), r, number, forge.PermissionRead, func(_ *call, p *pull) error {
		found = p.listReviews()
		return nil
	})
	return found, err
}

// Permission is what an account may do; an unknown one has none.
func (v *view) Permission(ctx context.Context, r forge.Repo, login string) (has forge.Permission, err error) {
	err = v.read(ctx, "read the permission of "+login+" in "+r.String(), r, func(c *call) error {
		if a := c.findAccount(login); a != nil {
			has = c.repo.permissionOf(a)
		}
		return nil
	})
	return has, err
}

// AddLabels adds labels.
func (v *view) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	if len(labels) == 0 {
		return nil
	}
	return v.withPull(ctx, "label "+r.Number(number), r, number, forge.PermissionWrite,
		func(c *call, p *pull) error { return c.addLabels(p, labels) })
}

// RemoveLabel takes a label off.
func (v *view) RemoveLabel(ctx context.Context, r forge.Repo, number int, label string) error {
	return v.withPull(ctx, "take the label "+label+" off "+r.Number(number), r, number, forge.PermissionWrite,
		func(c *call, p *pull) error {
			c.removeLabel(p, label)
			return nil
		})
}

// Comments lists the conversation.
func (v *view) Comments(ctx context.Context, r forge.Repo, number int, since time.Time) (found []forge.Comment, err error) {
	err = v.withPull(ctx, "list the comments of "+r.Number(number), r, number, forge.PermissionRead, func(_ *call, p *pull) error {
		for _, made := range p.comments {
			if !made.info.UpdatedAt.Before(since) {
				found = append(found, made.info)
			}
		}
		return nil
	})
	return found, err
}

// CreateComment adds a comment to the conversation.
func (v *view) CreateComment(ctx context.Context, r forge.Repo, number int, body string) (created *forge.Comment, err error) {
	err = v.withPull(ctx, "comment on "+r.Number(number), r, number, forge.PermissionRead, func(c *call, p *pull) error {
		made, err := c.addComment(p, body)
		if err != nil {
			return err
		}
		info := made.info
		created = &info
		return nil
	})
	return created, err
}

// UpdateComment replaces a comment's body.
func (v *view) UpdateComment(ctx context.Context, r forge.Repo, number int, id int64, body string) error {
	return v.read(ctx, "update a comment on "+r.Number(number), r, func(c *call) error { return c.editComment(id, body) })
}

// React adds a reaction to a comment.
func (v *view) React(ctx context.Context, r forge.Repo, number int, id int64, content string) error {
	return v.read(ctx, "react to a comment on "+r.Number(number), r, func(c *call) error { return c.addReaction(id, content) })
}

// HasReacted looks for a reaction of the account's own.
func (v *view) HasReacted(ctx context.Context, r forge.Repo, number int, id int64) (has bool, err error) {
	err = v.read(ctx, "list the reactions to a comment on "+r.Number(number), r, func(c *call) error {
		found, err := c.findComment(id)
		if err == nil {
			has = slices.ContainsFunc(found.reactions, func(o reaction) bool { return o.by == c.by })
		}
		return err
	})
	return has, err
}

// Authorship says who edited a comment.
func (v *view) Authorship(ctx context.Context, r forge.Repo, number int, k *forge.Comment) (a forge.Authorship, editor string, err error) {
	err = v.read(ctx, "read who edited a comment on "+r.Number(number), r, func(c *call) (err error) {
		a, editor, err = c.readAuthorship(k.ID)
		return err
	})
	return a, editor, err
}

// SetStatus sets a commit status.
func (v *view) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	return v.forge.withRepository(ctx, "set the status "+s.Context+" on a commit of "+r.String(), v.login, r, forge.PermissionWrite,
		func(c *call) error {
			return c.addStatus(commit, s)
		})
}

// Statuses are the newest of each context.
func (v *view) Statuses(ctx context.Context, r forge.Repo, commit string) (found []forge.Status, err error) {
	err = v.read(ctx, "list the statuses of a commit of "+r.String(), r, func(c *call) error {
		if err := c.requireCommit(commit); err != nil {
			return err
		}
		for _, s := range c.repo.statuses[commit] {
			found = append(found, s.info)
		}
		return nil
	})
	return found, err
}

// Checks are the newest statuses of each context and account: there are no check runs.
func (v *view) Checks(ctx context.Context, r forge.Repo, commit string) (found []forge.Check, err error) {
	err = v.read(ctx, "list the statuses of a commit of "+r.String(), r, func(c *call) error {
		if err := c.requireCommit(commit); err != nil {
			return err
		}
		found = slices.Clone(c.repo.checks[commit])
		return nil
	})
	return found, err
}

// EnsureHook records a hook. Nothing is delivered: Options.OnEvent is told.
func (v *view) EnsureHook(ctx context.Context, r forge.Repo, h forge.Hook) (changed bool, err error) {
	err = v.forge.withRepository(ctx, "create the webhook of "+r.String(), v.login, r, forge.PermissionAdmin, func(c *call) error {
		secret, has := c.repo.hooks[h.URL]
		changed = !has || secret != h.Secret
		c.repo.hooks[h.URL] = h.Secret
		return nil
	})
	return changed, err
}
