package facts

import (
	"context"
	"errors"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Leftover is a branch of ours that nobody needs any more.
type Leftover struct{ Branch, Head string }

// Leftovers finds the component's branches that outlived their pull requests: a
// process may have died between a merge or a close and the branch's deletion, or
// between a push and its pull request. One that somebody else committed to, and
// one whose pull request a person closed, who may open it again, is left alone.
func (o *Gatherer) Leftovers(ctx context.Context, c *Evaluation) ([]Leftover, error) {
	r, u := c.Snapshot.Repo, c.Facts.Unit
	entries, err := o.unitPulls(ctx, r, u)
	if err != nil {
		return nil, err
	}
	var out []Leftover
	for i := range c.Facts.Envs {
		env := c.Facts.Envs[i].Name
		own := promotion.Branch(u.Pipeline, env, u.Component)
		heads, err := r.Mirror.Heads(ctx, promotion.RevertPrefix+u.Pipeline+"/"+env+"/"+u.Component+"/")
		if err != nil {
			return nil, err
		}
		if head, ok, err := r.Mirror.Head(ctx, own); err != nil {
			return nil, err
		} else if ok {
			heads[own] = head
		}
		for branch, head := range heads {
			spare, err := o.isLeftover(ctx, r, entries[env], branch, head)
			if err != nil {
				return nil, err
			}
			if spare {
				out = append(out, Leftover{Branch: branch, Head: head})
			}
		}
	}
	return out, nil
}

// isLeftover says whether a branch at a head is ours and of no use: no pull request
// is open from it, and the last one with that head was merged or closed by us; or
// no pull request had it and we committed it.
func (o *Gatherer) isLeftover(ctx context.Context, r *Repository, entries []cachedPull, branch, head string) (bool, error) {
	var last *forge.PullRequest
	for i := range entries {
		pr := &entries[i].PR
		switch {
		case pr.Branch != branch:
		case pr.State == forge.Open:
			return false, nil
		case last == nil && pr.Head == head && pr.Author == r.BotLogin: // newest first
			last = pr
		}
	}
	if last != nil {
		return last.State == forge.Merged || last.HasLabel(promotion.LabelSuperseded), nil
	}
	info, err := r.Mirror.Commit(ctx, head)
	if errors.Is(err, git.ErrUnknownCommit) {
		return false, nil // moved meanwhile
	}
	return err == nil && info.Committer == r.Mirror.Committer(), err
}
