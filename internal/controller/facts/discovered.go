package facts

import (
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxDiscoveredPast bounds the releases of an environment's past that are looked at for versions that were taken back.
const maxDiscoveredPast = 50

// Discover says what would come into a source environment of a component by itself, with the edits that bring it. The
// edits are proven to change no other environment. nil: the environment has no discover, or the component isn't in it.
// The error is of a repository or store that can't be read, or the context's.
func (ga *Gatherer) Discover(ctx context.Context, ev *Evaluation, component, environment string,
	source discovery.Source) (*discovery.Found, error) {
	spec := ev.Pipeline.Spec.EnvironmentByName(environment)
	c, _ := ev.Component(component)
	if spec == nil || c == nil || len(spec.Discover) == 0 || c.Unit.Envs[environment] == nil {
		return nil, nil
	}
	env := c.Env(environment)
	out := &discovery.Found{Component: component, Environment: environment, Branch: env.Branch, Tip: env.Tip, Refused: env.Release.Err,
		DryRun: ev.Pipeline.Spec.Mode == pipeline.ModeDryRun, ByPullRequest: spec.Deliver == pipeline.DeliverPullRequest}
	if !env.Release.OK {
		return out, nil
	}
	q := discovery.Query{Pipeline: ev.Pipeline.Pipeline, Environment: spec, At: c.Unit.Envs[environment],
		Tree: c.Snapshot.Repo.Mirror.Tree(env.Tip), Rules: c.Snapshot.Repo.Mirror.Tree(c.Snapshot.PipelineCommit),
		Current: c.Contents[env.Release.Value.ID]}
	q.Past = func() (past []fieldedit.Release, err error) {
		found, err := ga.History.FindPast(ctx, &c.ComponentBasis, env, maxDiscoveredPast)
		for _, p := range slices.Backward(found) {
			past = append(past, c.Contents[p.Release.ID])
		}
		return past, err
	}
	if err := out.Find(ctx, &q, source); err != nil || out.Refused != "" {
		return out, err
	}
	return out, ga.composeDiscovered(ctx, c, env, out)
}

// composeDiscovered composes the edits, and says why they may not be made. What closed pull requests did for the release
// is read for that: no other fact names it.
func (ga *Gatherer) composeDiscovered(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, out *discovery.Found) error {
	release, component := c.RememberRelease(out.Want), c.Facts.Unit.Component
	if release.ID == env.Release.Value.ID {
		return nil
	}
	restraints, err := ga.opts.Store.RestrainingPulls(ctx, c.pastLocation(), wording.Short(release.ID))
	if err != nil {
		return err
	}
	for i := range c.Facts.Envs {
		addPastPulls(&c.Facts.Envs[i], component, restraints)
	}
	if out.Refused = promotion.WhyKeptOut(&c.Facts, env.Name, release.ID); out.Refused != "" {
		out.KeptOut = true
		return nil
	}
	if out.Edits, out.Refused, err = ga.Effects.ComposeProven(ctx, c.Basis, component, env.Name, env.Tip, release.ID); len(out.Edits) > 0 {
		out.Release = release
	}
	return err
}
