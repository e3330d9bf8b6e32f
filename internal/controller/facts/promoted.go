package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// releaseFacts fills in what a pull request moves, where a gate of the environment asks for it. The
// decision has all other facts about the promotion.
func (ga *Gatherer) releaseFacts(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, open *OpenPull, p *promotion.Pull) error {
	if !slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Expression != nil || g.Metric != nil || g.HTTP != nil }) {
		return nil
	}
	known := &policies.Promotion{Pipeline: c.Facts.Unit.Pipeline, Environment: env.Name, Component: c.Facts.Unit.Component,
		Pull: policies.PullRequest{Number: int64(p.Number), Labels: open.PR.Labels, Draft: open.PR.Draft}}
	p.Review.Promotion = known
	if known.ReleaseErr = c.WhyUnknown(p.Release); known.ReleaseErr != "" {
		return nil
	}
	known.Release = c.describeRelease(env, p)
	if slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.RequiresCommit() }) {
		commit, err := ga.Authors.FindReleaseCommit(ctx, &c.ComponentBasis, env.Name, p.Release)
		if ctx.Err() != nil {
			return err
		}
		if known.Commit = commit; err != nil {
			known.CommitErr = err.Error()
		}
	}
	if slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.RequiresDiff() }) {
		diff, err := ga.findChangedKinds(ctx, c, env, open)
		if ctx.Err() != nil {
			return err
		}
		if known.Diff = diff; err != nil {
			known.DiffErr = err.Error()
		}
	}
	return nil
}

// describeRelease is what gates know of a release whose contents are known.
func (c *ComponentEvaluation) describeRelease(env *promotion.Env, p *promotion.Pull) *policies.Release {
	carried := c.Contents[p.Release]
	out := &policies.Release{ID: p.Release, Short: wording.Short(p.Release), Name: p.Name}
	for _, i := range carried.Images() {
		out.Images = append(out.Images, policies.Image{Name: cmp.Or(i.NewName, i.Name), Tag: i.Tag, Digest: i.Digest, File: i.File})
	}
	old := map[string]string{}
	if env.Release.OK {
		old = people.ValuesOf(c.Contents[env.Release.Value.ID])
	}
	for _, f := range carried.Fields {
		out.Fields = append(out.Fields, policies.Field{File: f.File, Field: f.Path, Old: old[f.Key()], New: f.Value})
	}
	return out
}

// findChangedKinds says of which kinds the objects are that merging a pull request now
// adds, changes and removes in the manifests of a component's targets.
func (ga *Gatherer) findChangedKinds(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	open *OpenPull) (*policies.Diff, error) {
	switch {
	case open.HeadState == promotion.HeadModified:
		return nil, errors.New("what the rendered manifests gain and lose isn't known: the head is not what Liftlock composed")
	case open.Stale:
		return nil, errors.New("what the rendered manifests gain and lose isn't known: the pull request is to be composed anew")
	}
	changed, err := ga.Effects.ListEffects(ctx, c.Basis, effects.ComponentNames(open.Members), env.Name, env.Tip, open.Edits)
	if err != nil {
		return nil, fmt.Errorf("what the rendered manifests gain and lose isn't known: %w", err)
	}
	return listChangedKinds(c.Facts.Unit.Component, changed)
}

// listChangedKinds lists the kinds of what effects do to the targets of a component. The
// error names the first target of which that isn't known.
func listChangedKinds(component string, changed []isolation.Effect) (*policies.Diff, error) {
	out := &policies.Diff{}
	for i := range changed {
		e := &changed[i]
		switch {
		case e.Target.Component != component:
			continue
		case e.Why != "":
			return nil, fmt.Errorf("what the rendered manifests gain and lose isn't known: %s: %s", e.Target.Name, e.Why)
		case e.Changes == nil:
			continue
		}
		for _, ch := range e.Changes.Objects {
			switch ch.Op {
			case render.Added:
				out.Added = append(out.Added, ch.Kind)
			case render.Removed:
				out.Removed = append(out.Removed, ch.Kind)
			default:
				out.Changed = append(out.Changed, ch.Kind)
			}
		}
	}
	for _, kinds := range []*[]string{&out.Added, &out.Changed, &out.Removed} {
		slices.Sort(*kinds)
		*kinds = slices.Compact(*kinds)
	}
	return out, nil
}

// findIneffective says what of an open promotion doesn't show in the rendered manifests of a component's
// targets, and of which that isn't known.
func (ga *Gatherer) findIneffective(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, open *OpenPull,
	v *promotion.Pull) error {
	if !env.Spec.RequiresEffect() || open.HeadState == promotion.HeadModified || open.Stale || len(open.Edits) == 0 {
		return nil
	}
	var err error
	component := c.Facts.Unit.Component
	if v.EffectFacts, err = ga.Effects.ListIneffective(ctx, c.Basis, env.Name, env.Tip, open.Members, open.Edits, component); err != nil {
		return err
	}
	changed, err := ga.Effects.ListEffects(ctx, c.Basis, effects.ComponentNames(open.Members), env.Name, env.Tip, open.Edits)
	if err != nil {
		return ctx.Err() // it is among what isn't rendered
	}
	own := slices.DeleteFunc(slices.Clone(changed), func(e isolation.Effect) bool { return e.Target.Component != component })
	v.Disagreements = ga.Effects.Disagreements(ctx, c.Basis, own, effects.Commits{Base: open.Base, Head: open.Head})
	return ctx.Err()
}
