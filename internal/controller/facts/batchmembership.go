package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// errRereadPulls says that the pull requests of several components must be read
// from the forge before anything is judged: one may have been merged.
var errRereadPulls = errors.New("a pull request of several components may have been merged")

// anyOpen says that a ride into an environment is open as far as is known.
func (rs batchPulls) anyOpen(env string) bool {
	return slices.ContainsFunc(rs[env], func(ri *batchPull) bool { return ri.PR.State == forge.Open })
}

// fillBatchPulls fills in what an environment of a component has of pull requests of
// several.
func (o *Gatherer) fillBatchPulls(ctx context.Context, c *Evaluation, env *promotion.Env) error {
	component, batch := c.Facts.Unit.Component, c.Pipeline.Spec.BatchesByEnvironment()
	kept := 0
	for _, ri := range c.batchPulls[env.Name] {
		switch {
		case ri.PR.Author != c.Snapshot.Repo.BotLogin:
			if ri.PR.State == forge.Open && !ri.ref.Revert && batch {
				env.MarkUnmanaged(fmt.Sprintf("#%d by %s uses the branch %s, which Liftlock would use; close it and delete the branch", ri.PR.Number, ri.PR.Author, ri.PR.Branch))
			}
		case ri.PR.State == forge.Open:
			if err := o.fillOpenBatchPull(ctx, c, env, ri); err != nil {
				return err
			}
		case kept < maxPastPulls:
			members, err := o.findMembers(ctx, c, c.batchPulls[env.Name], ri)
			if err != nil {
				return err
			}
			if p, ok := promotion.FindMember(members, component); ok {
				kept++
				env.PastPulls = append(env.PastPulls, c.pastBatchPull(ri, p))
			}
		}
	}
	slices.SortStableFunc(env.PastPulls, func(a, b promotion.PastPull) int { return b.At.Compare(a.At) })
	return nil
}

// fillOpenBatchPull fills in an open ride of ours: with the component, or without it.
func (o *Gatherer) fillOpenBatchPull(ctx context.Context, c *Evaluation, env *promotion.Env, ri *batchPull) error {
	batch := c.Pipeline.Spec.BatchesByEnvironment()
	p := ri.viewFor(c.Facts.Unit.Component)
	switch {
	case p == nil && !ri.ref.Revert && batch:
		env.BatchPull = ri.pull
	case p == nil:
	case ri.ref.Revert:
		if !batch {
			p.Batch, p.Members = false, nil
			p.MarkModified(fmt.Sprintf("#%d takes several components back at once, and spec.batch is component by now; merge it or close it by hand", p.Number))
		}
		env.Revert = p
	default:
		if p.HeadState != promotion.HeadModified && p.DeclaredRelease.Value != p.Release && !promotion.VerifiedInAll(c.Facts.Envs, env.Spec.After, p.Release) {
			p.MarkModified(fmt.Sprintf("#%d is not what Liftlock composed: it carries another release of %s than the one that Liftlock put there; nothing is done with it until /liftlock retry", p.Number, c.Facts.Unit.Component))
		}
		if err := o.authorFacts(ctx, c, env, p.Release, &p.Review); err != nil {
			return err
		}
		if batch {
			env.Open = p
		} else {
			p.Batch, p.Members = false, nil
			env.WrongKind = p
			c.OpenPulls[p.Number] = &ri.PR
		}
	}
	return nil
}

func (c *Evaluation) pastBatchPull(ri *batchPull, of promotion.Member) promotion.PastPull {
	p := promotion.PastPull{Number: ri.PR.Number, Revert: ri.ref.Revert, Release: of.Release, Merged: ri.PR.State == forge.Merged,
		Superseded: ri.PR.HasLabel(promotion.LabelSuperseded), At: ri.PR.ClosedAt, Commit: ri.PR.MergeCommit, By: ri.PR.MergedBy}
	if p.Merged {
		p.At = ri.PR.MergedAt
	}
	return p
}

// memberBatchPulls are the pull requests of several that a component is or was in, as far
// as its facts have them.
func (c *Evaluation) memberBatchPulls(env *promotion.Env) []cachedPull {
	in := map[int]bool{}
	for _, p := range []*promotion.Pull{env.Open, env.Revert, env.WrongKind} {
		if p != nil {
			in[p.Number] = true
		}
	}
	for i := range env.PastPulls {
		in[env.PastPulls[i].Number] = true
	}
	return slices.DeleteFunc(c.batchPulls.cachedPulls(env.Name), func(e cachedPull) bool { return !in[e.PR.Number] })
}

// landedMembers are the passengers of the pull request of several by which an
// environment came to what it carries; none when it was no such.
func (o *Gatherer) landedMembers(ctx context.Context, c *Evaluation, env string, number int) ([]promotion.Member, error) {
	for _, ri := range c.batchPulls[env] {
		if number != 0 && ri.PR.Number == number {
			return o.findMembers(ctx, c, c.batchPulls[env], ri)
		}
	}
	return nil, nil
}

// fillUnmanagedRevert fills in what of somebody else's stands on the branch that a
// revert of what came together would use.
func (o *Gatherer) fillUnmanagedRevert(c *Evaluation, env *promotion.Env) {
	short := wording.Short(promotion.BatchID(env.Landed.Value.Members))
	for _, ri := range c.batchPulls[env.Name] {
		if ri.PR.Author != c.Snapshot.Repo.BotLogin && ri.PR.State == forge.Open && ri.ref.Revert && short != "" && strings.EqualFold(ri.ref.Short, short) {
			env.MarkRevertUnmanaged(fmt.Sprintf("#%d by %s uses the branch %s, which Liftlock would use; close it and delete the branch", ri.PR.Number, ri.PR.Author, ri.PR.Branch))
		}
	}
}
