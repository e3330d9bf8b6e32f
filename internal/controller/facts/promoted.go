package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// maxCommitMessage bounds what expressions are given of a commit; whoever may push writes it.
const maxCommitMessage = 64 << 10

// releaseFacts fills in what a pull request moves, where a gate of the environment asks
// for it. What else there is to know of the promotion the decision knows by itself.
func (ga *Gatherer) releaseFacts(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, open *OpenPull, p *promotion.Pull) error {
	if !slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Expression != nil || g.Metric != nil || g.HTTP != nil }) {
		return nil
	}
	known := &policies.Promotion{Pipeline: c.Facts.Unit.Pipeline, Environment: env.Name, Component: c.Facts.Unit.Component,
		Pull: policies.PullRequest{Number: int64(p.Number), Labels: open.PR.Labels, Draft: open.PR.Draft}}
	p.Review.Promotion = known
	if known.ReleaseErr = c.whyUnknown(p.Release); known.ReleaseErr != "" {
		return nil
	}
	known.Release = c.describeRelease(env, p)
	if slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.RequiresCommit() }) {
		commit, err := ga.findReleaseCommit(ctx, c, env.Name, p.Release)
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
	carried := c.contents[p.Release]
	out := &policies.Release{ID: p.Release, Short: wording.Short(p.Release), Name: p.Name}
	for _, i := range carried.Images() {
		out.Images = append(out.Images, policies.Image{Name: cmp.Or(i.NewName, i.Name), Tag: i.Tag, Digest: i.Digest, File: i.File})
	}
	old := map[string]string{}
	if env.Release.OK {
		old = valuesOf(c.contents[env.Release.Value.ID])
	}
	for _, f := range carried.Fields {
		out.Fields = append(out.Fields, policies.Field{File: f.File, Field: f.Path, Old: old[f.Key()], New: f.Value})
	}
	return out
}

// findReleaseCommit is the commit that brought a release to a source environment before
// env: the newest, where it came to several or several times.
func (ag *authorGatherer) findReleaseCommit(ctx context.Context, c *ComponentEvaluation, env, release string) (*policies.Commit, error) {
	var newest *git.CommitInfo
	for _, source := range findUpstreamSources(c.Pipeline, env) {
		at := c.Unit.Envs[source]
		if at == nil {
			continue
		}
		head, err := ag.findHead(ctx, c, at, release)
		if err != nil {
			return nil, fmt.Errorf("which commit brought the release to %s can't be told: %w", source, err)
		}
		if head == "" {
			continue
		}
		info, err := c.Snapshot.Repo.Mirror.Commit(ctx, head)
		if err != nil {
			return nil, fmt.Errorf("the commit that brought the release to %s can't be read: %w", source, err)
		}
		if newest == nil || info.CommitTime.After(newest.CommitTime) {
			newest = info
		}
	}
	switch {
	case newest == nil:
		return nil, errors.New("no history tells which commit brought the release")
	case len(newest.Message) > maxCommitMessage:
		return nil, fmt.Errorf("the message of %s, which brought the release, is longer than %d KiB", wording.Short(newest.SHA),
			maxCommitMessage>>10)
	}
	return &policies.Commit{SHA: newest.SHA, Message: newest.Message, Trailers: newest.Trailers, Time: newest.CommitTime.UTC()}, nil
}

// findChangedKinds says of which kinds the objects are that merging a pull request now
// adds, changes and removes in the manifests of a component's targets.
func (eg *effectGatherer) findChangedKinds(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	open *OpenPull) (*policies.Diff, error) {
	switch {
	case open.HeadState == promotion.HeadModified:
		return nil, errors.New("what the rendered manifests gain and lose isn't known: the head is not what Liftlock composed")
	case open.Stale:
		return nil, errors.New("what the rendered manifests gain and lose isn't known: the pull request is to be composed anew")
	}
	effects, err := eg.Effects(ctx, c.Evaluation, componentNames(open.Members), env.Name, env.Tip, open.Edits)
	if err != nil {
		return nil, fmt.Errorf("what the rendered manifests gain and lose isn't known: %w", err)
	}
	return listChangedKinds(c.Facts.Unit.Component, effects)
}

// listChangedKinds lists the kinds of what effects do to the targets of a component. The
// error names the first target of which that isn't known.
func listChangedKinds(component string, effects []isolation.Effect) (*policies.Diff, error) {
	out := &policies.Diff{}
	for i := range effects {
		e := &effects[i]
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
