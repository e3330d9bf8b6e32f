package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// Leftover is a branch of ours of no further use.
type Leftover struct{ Branch, Head string }

// Leftovers finds the unit's branches that outlived their pull requests. A process may have died
// between a merge or a close and the branch's deletion, or between a push and its pull request. A
// branch with another account's commit is left alone, and so is one whose pull request a person
// closed, who may open it again.
func (ga *Gatherer) Leftovers(ctx context.Context, ev *Evaluation) ([]Leftover, error) {
	owners := componentsOf(ev)
	if ev.IsBatch() {
		owners = append(owners, ev.Unit.Component)
	}
	var out []Leftover
	for _, component := range owners {
		for i := range ev.envs {
			heads, err := ga.branchesOf(ctx, ev, ev.envs[i].Name, component)
			if err != nil {
				return nil, err
			}
			for branch, head := range heads {
				spare, err := ga.isLeftover(ctx, ev.Snapshot.Repo, branch, head)
				if err != nil {
					return nil, err
				}
				if spare {
					out = append(out, Leftover{Branch: branch, Head: head})
				}
			}
		}
	}
	return out, nil
}

func componentsOf(ev *Evaluation) []string {
	out := make([]string, 0, len(ev.Components)+1)
	for _, c := range ev.Components {
		out = append(out, c.Facts.Unit.Component)
	}
	return out
}

// branchesOf are our branches about a component in an environment, with their heads.
func (ga *Gatherer) branchesOf(ctx context.Context, ev *Evaluation, env, component string) (map[string]string, error) {
	m := ev.Snapshot.Repo.Mirror
	heads, err := m.Heads(ctx, promotion.RevertPrefix+ev.Unit.Pipeline+"/"+env+"/"+component+"/")
	if err != nil {
		return nil, err
	}
	own := promotion.Branch(ev.Unit.Pipeline, env, component)
	head, ok, err := m.Head(ctx, own)
	if ok {
		heads[own] = head
	}
	return heads, err
}

// isLeftover says whether a branch at a head is ours and of no use. No pull request is open from
// it, and the last one with that head was merged or closed by us. Or no pull request had it and we
// committed it.
func (ga *Gatherer) isLeftover(ctx context.Context, r *branch.Repository, branch, head string) (bool, error) {
	open, err := ga.PullCache.store.OpenPulls(ctx, r.ID, branch)
	if err != nil || slices.ContainsFunc(open, func(p store.Pull) bool { return p.Branch == branch }) {
		return false, err
	}
	last, err := ga.findPullAt(ctx, r, branch, head)
	if err != nil {
		return false, err
	}
	if last != nil {
		return last.State == forge.Merged || last.HasLabel(promotion.LabelSuperseded), nil
	}
	info, err := r.Mirror.Commit(ctx, head)
	if errors.Is(err, git.ErrUnknownCommit) {
		return false, nil // moved meanwhile
	}
	if err != nil || r.IsCommittedByUs(info) {
		return err == nil, err
	}
	return ga.hasPushed(ctx, r, branch, head)
}

// hasPushed says that the store knows of a head that we pushed it to a branch, as another account may have.
func (ga *Gatherer) hasPushed(ctx context.Context, r *branch.Repository, branchName, head string) (bool, error) {
	pushed, _, err := branch.PushedHeads.Get(ctx, ga.opts.Store, record.OfBranch(r.ID, branchName))
	return pushed.Find([]string{head}) != nil, err
}

// findPullAt is the newest pull request of ours from a branch at a head; nil when there
// is none.
func (ga *Gatherer) findPullAt(ctx context.Context, r *branch.Repository, branch, head string) (*forge.PullRequest, error) {
	rows, err := ga.PullCache.store.PullsAt(ctx, r.ID, head)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Branch != branch {
			continue
		}
		e, err := ga.PullCache.decodePull(row)
		if err != nil {
			return nil, err
		}
		if (&pullRecord{Pull: *e}).isOurs(r) {
			return &e.PR, nil
		}
	}
	return nil, nil
}

// inspectLeftovers looks at the unit's branches that have no open pull request: what an
// interrupted run pushed may be built upon, anything else is somebody's and is
// not overwritten.
func (ga *Gatherer) inspectLeftovers(ctx context.Context, ev *Evaluation) error {
	r := ev.Snapshot.Repo
	for i := range ev.envs {
		env := &ev.envs[i]
		branch := promotion.Branch(ev.Unit.Pipeline, env.Name, ev.Unit.Component)
		head, ok, err := r.Mirror.Head(ctx, branch)
		if err != nil {
			return err
		}
		ev.branchHeads[branch] = head
		known := slices.ContainsFunc(ev.pulls[ev.Unit.Component][env.Name],
			func(p *pullRecord) bool { return p.PR.Branch == branch && p.isOpen() })
		if ok && !known {
			pr, err := ga.findPullAt(ctx, r, branch, head)
			if err != nil {
				return err
			}
			known = pr != nil
		}
		if !ok || known || env.Source() || env.Tip == "" {
			continue
		}
		if !ev.IsBatch() && ev.EnvAt(env.Name, ev.Unit.Component) == nil {
			continue
		}
		why, author, err := ga.inspectLeftoverHead(ctx, ev, env, head)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		for _, c := range ev.Components {
			c.Facts.Envs[i].MarkUnmanaged(fmt.Sprintf("the branch %s exists with a commit by %s that is not Liftlock's (%s); delete or "+
				"rename it", branch, author, why))
		}
	}
	return nil
}

// JudgedHead is where the branch of the unit's promotions into an environment was when that was judged,
// empty where there was none; false of any other branch.
func (ev *Evaluation) JudgedHead(branch string) (head string, known bool) {
	head, known = ev.branchHeads[branch]
	return head, known
}

// inspectLeftoverHead says why a head isn't ours, and who made it.
func (ga *Gatherer) inspectLeftoverHead(ctx context.Context, ev *Evaluation, env *promotion.Env, head string) (why, author string,
	err error) {
	r := ev.Snapshot.Repo
	info, err := r.Mirror.Commit(ctx, head)
	if err != nil {
		return "", "", err
	}
	p := &OpenPull{Pull: promotion.Pull{Head: head, Batch: ev.IsBatch()}}
	if p.Base, why, err = ga.findBase(ctx, ev, env, head); err != nil {
		return "", "", err
	}
	if why == "" && !r.IsCommittedByUs(info) {
		pushed, err := ga.hasPushed(ctx, r, promotion.Branch(ev.Unit.Pipeline, env.Name, ev.Unit.Component), head)
		if err != nil {
			return "", "", err
		}
		if !pushed {
			why = "Liftlock did not commit it"
		}
	}
	if why == "" {
		why, err = ga.inspectPromotion(ctx, ev, env, ev.Unit.Component, p)
	}
	return why, info.Author.Name, err
}
