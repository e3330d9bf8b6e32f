package memoryforge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// pusherPage is how many moves of a branch are looked through at least for who pushed a pull
// request's commits: one page, as the drivers do.
const pusherPage = 100

// toAuthors says who made commits, or that they are too many.
func (c *call) toAuthors(commits []git.CommitInfo) ([]forge.CommitAuthors, error) {
	if err := forge.RequireFewCommits(c.op, len(commits)); err != nil {
		return nil, err
	}
	all := make([]forge.CommitAuthors, len(commits))
	for i, found := range commits {
		all[i].Commit = found.SHA
		coAuthors, tooMany := forge.CoAuthors(found.Message)
		if tooMany {
			return nil, c.failure(forge.ErrTooMany, "the commit "+found.SHA+" names too many co-authors")
		}
		named := []forge.Contributor{{Name: found.Author.Name, Email: found.Author.Email},
			{Name: found.Committer.Name, Email: found.Committer.Email}}
		for _, p := range append(named, coAuthors...) {
			if strings.EqualFold(p.Email, webFlow.Email) {
				continue
			}
			p.User = c.findContributor(p.Email)
			all[i].AddContributor(p)
		}
	}
	return all, nil
}

// MergedPullRequests lists those that landed as the commit or had it.
func (v *view) MergedPullRequests(ctx context.Context, r forge.Repo, commit string) (merged []forge.PullRequest, err error) {
	err = v.read(ctx, "list the pull requests that brought a commit of "+r.String(), r, func(c *call) error {
		if err := c.requireCommit(commit); err != nil {
			return err
		}
		for _, p := range c.repo.byCommit[commit] {
			pr, err := c.showWhole(p)
			if err != nil {
				return err
			}
			merged = append(merged, pr)
		}
		return nil
	})
	return merged, err
}

// PullRequestAuthors says who made a pull request's commits, and who pushed them.
func (v *view) PullRequestAuthors(ctx context.Context, r forge.Repo, pr *forge.PullRequest) (all []forge.CommitAuthors, err error) {
	err = v.read(ctx, "list the commits of "+r.Number(pr.Number), r, func(c *call) error {
		p, err := c.findPull(pr.Number)
		if err != nil {
			return err
		}
		commits := make([]git.CommitInfo, len(p.commits))
		for i, sha := range p.commits {
			found, err := c.repo.remote.Commit(c.ctx, sha)
			if err != nil {
				return err
			}
			commits[i] = *found
		}
		if all, err = c.toAuthors(commits); err != nil || p.info.Fork {
			return err
		}
		read, pushers := 0, forge.NewPusherSearch(p.info.Head, all)
		return eachPush("read who pushed to "+p.info.Branch+" of "+r.String(), c.repo.pushes[p.info.Branch], func(push forge.Push) bool {
			pushers.Add(push)
			read++
			return read >= pusherPage && pushers.IsComplete()
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// CommitAuthors says who made what head has and base hasn't.
func (v *view) CommitAuthors(ctx context.Context, r forge.Repo, base, head string) (all []forge.CommitAuthors, err error) {
	err = v.read(ctx, "compare two commits of "+r.String(), r, func(c *call) error {
		var commits []git.CommitInfo
		if err := c.requireCommit(head); err != nil {
			return err
		}
		if base == "" {
			found, err := c.repo.remote.Commit(c.ctx, head)
			if err != nil {
				return err
			}
			commits = append(commits, *found)
		} else if commits, err = c.listCommits(base, head); err != nil {
			return err
		}
		all, err = c.toAuthors(commits)
		return err
	})
	return all, err
}

// Commits are those that head has and base hasn't, oldest first; both are commits.
func (v *view) Commits(ctx context.Context, r forge.Repo, base, head string) (all []forge.Commit, err error) {
	err = v.read(ctx, "compare two commits of "+r.String(), r, func(c *call) error {
		for _, sha := range []string{base, head} {
			if err := c.requireCommit(sha); err != nil {
				return err
			}
		}
		commits, err := c.listCommits(base, head)
		if err != nil {
			return err
		}
		if err := forge.RequireFewCommits(c.op, len(commits)); err != nil {
			return err
		}
		for _, found := range commits {
			all = append(all, forge.Commit{SHA: found.SHA, Author: found.Author.Name, Message: found.Message, At: found.CommitTime})
		}
		return nil
	})
	return all, err
}

// Pushes gives the moves of a branch, newest first. enough is called without a lock.
func (v *view) Pushes(ctx context.Context, r forge.Repo, branch string, enough func(forge.Push) bool) error {
	op := "read who pushed to " + branch + " of " + r.String()
	var pushes []forge.Push
	err := v.read(ctx, op, r, func(c *call) error {
		pushes = c.repo.pushes[branch] // never changed, only appended to
		return nil
	})
	if err != nil {
		return err
	}
	return eachPush(op, pushes, enough)
}

// eachPush gives moves of a branch, newest first, as far back as a driver goes.
func eachPush(op string, pushes []forge.Push, enough func(forge.Push) bool) error {
	looked := 0
	for _, p := range slices.Backward(pushes) {
		if looked == forge.MaxPushes {
			return &forge.Error{Op: op, Kind: forge.ErrTooMany, Message: fmt.Sprintf("it isn't among the last %d pushes", forge.MaxPushes)}
		}
		if looked++; enough(p) {
			return nil
		}
	}
	return nil
}
