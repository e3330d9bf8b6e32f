package facts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// ensureCommit makes sure that a commit is in the mirror, fetching once if need be.
func (o *Gatherer) ensureCommit(ctx context.Context, r *Repository, commit string) error {
	ok, err := r.Mirror.Has(ctx, commit)
	if err != nil || ok {
		return err
	}
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return err
	}
	if ok, err = r.Mirror.Has(ctx, commit); err != nil || ok {
		return err
	}
	return fmt.Errorf("%w: commit %s is not among the branches of %s", forge.ErrRetryable, commit, r.ID)
}

// findBase is the commit of the environment's branch that a head was made on: its parent,
// or, where somebody brought the branch up to date with a merge, that merge's
// other parent. why is set when the head doesn't descend from the branch so.
func (o *Gatherer) findBase(ctx context.Context, c *Evaluation, env *promotion.Env, head string) (base, why string, err error) {
	m := c.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, head)
	if err != nil {
		return "", "", err
	}
	for _, parent := range slices.Backward(info.Parents) {
		ok, err := m.IsAncestor(ctx, parent, env.Tip)
		if err != nil {
			return "", "", err
		}
		if ok {
			return parent, "", nil
		}
	}
	return "", fmt.Sprintf("its head %s is not one commit on top of %s", wording.Short(head), env.Branch), nil
}

// inspectPromotion compares a head with what composing its release on its base gives.
func (o *Gatherer) inspectPromotion(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, p *promotion.Pull, base string) (string, error) {
	r := c.Snapshot.Repo
	rel, err := o.readRelease(r, p.Head, c.Pipeline, at)
	if err != nil {
		return "its release can't be read: " + err.Error(), nil
	}
	p.Release, p.Name = rel.ID(), c.rememberRelease(rel).Name
	edits, err := fieldedit.Compose(r.Mirror.Tree(base), at.Overlay(c.Pipeline.Pipeline), rel, wholeFileReader(ctx, r.Mirror, p.Head))
	if err != nil {
		return "its release can't be composed: " + err.Error(), nil
	}
	return o.compareHead(ctx, c, env, p, base, edits)
}

// inspectRevert compares a revert's head with what restoring its promotion on its base gives.
func (o *Gatherer) inspectRevert(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, p *promotion.Pull, base string, ref promotion.BranchRef, entries []cachedPull) (string, error) {
	r := c.Snapshot.Repo
	var of *forge.PullRequest
	for i := range entries {
		e := &entries[i].PR
		er, _ := promotion.ParseBranch(e.Branch)
		if er.Revert || e.State != forge.Merged || e.Author != r.BotLogin || e.Number > p.Number || e.MergeCommit == "" {
			continue
		}
		if id := o.releaseIDAt(r, e.MergeCommit, c.Pipeline, at); strings.HasPrefix(id, ref.Short) {
			of = e
			p.Release = id
			break
		}
	}
	if of == nil {
		return "the promotion that it takes back is not known", nil
	}
	c.RevertedPulls[p.Number] = of
	edits, err := o.composeRevert(ctx, c, c.unitOverlays(at), of.MergeCommit, base)
	if err != nil {
		p.Diverged = true
		return "", nil //nolint:nilerr // said through Diverged: a person decides
	}
	rel, err := o.readRelease(r, of.MergeCommit, c.Pipeline, at)
	if err != nil {
		return "its release can't be read: " + err.Error(), nil
	}
	p.Name = c.rememberRelease(rel).Name
	return o.compareHead(ctx, c, env, p, base, edits)
}

// compareHead says how a head differs from base plus edits, and notes whether the
// edited files moved on since.
func (o *Gatherer) compareHead(ctx context.Context, c *Evaluation, env *promotion.Env, p *promotion.Pull, base string, edits []fieldedit.Edit) (string, error) {
	m := c.Snapshot.Repo.Mirror
	paths, err := changedPaths(ctx, m, base, p.Head)
	if err != nil {
		return "", err
	}
	if err := fieldedit.VerifyCommit(m.Tree(p.Head), paths, edits); err != nil {
		return err.Error(), nil
	}
	files := make([]string, 0, len(edits))
	for _, e := range edits {
		files = append(files, e.File)
	}
	same, err := o.isUnchanged(ctx, c.Snapshot.Repo, base, env.Tip, func(file string) bool { return slices.Contains(files, file) })
	if err != nil {
		return "", err
	}
	p.Stale = !same
	c.HeadEdits[p.Number] = edits
	return "", nil
}

// composeRevert composes the way back of what landed with commit onto a base.
func (o *Gatherer) composeRevert(ctx context.Context, c *Evaluation, overlays []fieldedit.Overlay, commit, base string) ([]fieldedit.Edit, error) {
	m := c.Snapshot.Repo.Mirror
	info, err := m.Commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	if len(info.Parents) == 0 {
		return nil, fmt.Errorf("%s has no parent to go back to", wording.Short(commit))
	}
	files, err := changedPaths(ctx, m, info.Parents[0], commit)
	if err != nil {
		return nil, err
	}
	return fieldedit.Restore(m.Tree(info.Parents[0]), m.Tree(commit), m.Tree(base), files, overlays...)
}

// inspectUnitLeftover looks at a branch of ours that has no open pull request: what an
// interrupted run pushed may be built upon, anything else is somebody's.
func (o *Gatherer) inspectUnitLeftover(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, entries []cachedPull) error {
	r := c.Snapshot.Repo
	branch := promotion.Branch(c.Facts.Unit.Pipeline, env.Name, c.Facts.Unit.Component)
	head, ok, err := r.Mirror.Head(ctx, branch)
	if err != nil || !ok || at == nil {
		return err
	}
	for i := range entries {
		if entries[i].PR.Branch == branch && entries[i].PR.Head == head && entries[i].PR.Author == r.BotLogin {
			return nil
		}
	}
	info, err := r.Mirror.Commit(ctx, head)
	if err != nil {
		return err
	}
	base, why, err := o.findBase(ctx, c, env, head)
	if err != nil {
		return err
	}
	if why == "" && info.Committer != r.Mirror.Committer() {
		// Well made or not: what isn't ours is not overwritten.
		why = "Liftlock did not commit it"
	}
	if why == "" {
		p := promotion.Pull{Head: head}
		if why, err = o.inspectPromotion(ctx, c, env, at, &p, base); err != nil {
			return err
		}
		delete(c.HeadEdits, 0)
	}
	if why == "" {
		return nil
	}
	env.MarkUnmanaged(fmt.Sprintf("the branch %s exists with a commit by %s that is not Liftlock's (%s); delete or rename it", branch, info.Author.Name, why))
	return nil
}
