package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// errReadAgain says that the pull requests of several components must be read
// from the forge before anything is judged: one may have been merged.
var errReadAgain = errors.New("a pull request of several components may have been merged")

// anyOpen says that a ride into an environment is open as far as is known.
func (rs rides) anyOpen(env string) bool {
	return slices.ContainsFunc(rs[env], func(ri *ride) bool { return ri.PR.State == forge.Open })
}

// ridesIn fills in what an environment of a component has of pull requests of
// several.
func (o *Observer) ridesIn(ctx context.Context, c *Case, env *promotion.Env) error {
	component, together := c.Facts.Unit.Component, c.Pipeline.Spec.BatchesByEnvironment()
	kept := 0
	for _, ri := range c.rides[env.Name] {
		switch {
		case ri.PR.Author != c.Snapshot.Repo.Me:
			if ri.PR.State == forge.Open && !ri.ref.Revert && together {
				env.Unmanaged = fmt.Sprintf("#%d by %s uses the branch %s, which Liftlock would use; close it and delete the branch", ri.PR.Number, ri.PR.Author, ri.PR.Branch)
			}
		case ri.PR.State == forge.Open:
			if err := o.boarded(ctx, c, env, ri); err != nil {
				return err
			}
		case kept < pastKept:
			who, err := o.who(ctx, c, c.rides[env.Name], ri)
			if err != nil {
				return err
			}
			if p, ok := promotion.FindMember(who, component); ok {
				kept++
				env.PastPulls = append(env.PastPulls, c.pastRide(ri, p))
			}
		}
	}
	slices.SortStableFunc(env.PastPulls, func(a, b promotion.PastPull) int { return b.At.Compare(a.At) })
	return nil
}

// boarded fills in an open ride of ours: with the component, or without it.
func (o *Observer) boarded(ctx context.Context, c *Case, env *promotion.Env, ri *ride) error {
	together := c.Pipeline.Spec.BatchesByEnvironment()
	p := ri.view(c.Facts.Unit.Component)
	switch {
	case p == nil && !ri.ref.Revert && together:
		env.BatchPull = ri.pull
	case p == nil:
	case ri.ref.Revert:
		if !together {
			p.Members = nil
			p.HeadModified = firstOf(p.HeadModified, fmt.Sprintf("#%d takes several components back at once, and spec.batch is component by now; merge it or close it by hand", p.Number))
		}
		env.Revert = p
	default:
		if p.HeadModified == "" && p.DeclaredRelease != p.Release && !promotion.VerifiedInAll(c.Facts.Envs, env.Spec.After, p.Release) {
			p.HeadModified = fmt.Sprintf("#%d is not what Liftlock composed: it carries another release of %s than the one that Liftlock put there; nothing is done with it until /liftlock retry", p.Number, c.Facts.Unit.Component)
		}
		if err := o.authorFacts(ctx, c, env, p.Release, &p.Review); err != nil {
			return err
		}
		if together {
			env.Open = p
		} else {
			p.Members = nil
			env.WrongKind = p
			c.Pulls[p.Number] = &ri.PR
		}
	}
	return nil
}

func (c *Case) pastRide(ri *ride, of promotion.Member) promotion.PastPull {
	p := promotion.PastPull{Number: ri.PR.Number, Revert: ri.ref.Revert, Release: of.Release, Merged: ri.PR.State == forge.Merged,
		Superseded: ri.PR.HasLabel(promotion.LabelSuperseded), At: ri.PR.ClosedAt, Commit: ri.PR.MergeCommit, By: ri.PR.MergedBy}
	if p.Merged {
		p.At = ri.PR.MergedAt
	}
	return p
}

// ridden are the pull requests of several that a component is or was in, as far
// as its facts have them.
func (c *Case) ridden(env *promotion.Env) []entry {
	in := map[int]bool{}
	for _, p := range []*promotion.Pull{env.Open, env.Revert, env.WrongKind} {
		if p != nil {
			in[p.Number] = true
		}
	}
	for i := range env.PastPulls {
		in[env.PastPulls[i].Number] = true
	}
	return slices.DeleteFunc(c.rides.entries(env.Name), func(e entry) bool { return !in[e.PR.Number] })
}

// cameWith are the passengers of the pull request of several by which an
// environment came to what it carries; none when it was no such.
func (o *Observer) cameWith(ctx context.Context, c *Case, env string, number int) ([]promotion.Member, error) {
	for _, ri := range c.rides[env] {
		if number != 0 && ri.PR.Number == number {
			return o.who(ctx, c, c.rides[env], ri)
		}
	}
	return nil, nil
}

// foreignWayBack fills in what of somebody else's stands on the branch that a
// revert of what came together would use.
func (o *Observer) foreignWayBack(c *Case, env *promotion.Env) {
	short := promotion.Short(promotion.BatchID(env.Landed.Value.Members))
	for _, ri := range c.rides[env.Name] {
		if ri.PR.Author != c.Snapshot.Repo.Me && ri.PR.State == forge.Open && ri.ref.Revert && short != "" && strings.EqualFold(ri.ref.Short, short) {
			env.UnmanagedRevert = fmt.Sprintf("#%d by %s uses the branch %s, which Liftlock would use; close it and delete the branch", ri.PR.Number, ri.PR.Author, ri.PR.Branch)
		}
	}
}
