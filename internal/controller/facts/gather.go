package facts

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// Gather gathers everything that needs no request about the unit that a component is
// evaluated with. branch.ErrNoUnit: there is no such component, also where the others of its
// pipeline are one unit.
func (ga *Gatherer) Gather(ctx context.Context, s *branch.Snapshot, u promotion.Unit, fresh bool) (*Evaluation, error) {
	p, unit := s.Unit(u)
	if unit == nil && !s.IsBatch(u) {
		return nil, fmt.Errorf("%s: %w", wake.UnitName(u), branch.ErrNoUnit)
	}
	if err := ga.PullCache.ensurePullsCached(ctx, s.Repo); err != nil {
		return nil, err
	}
	ev := ga.newEvaluation(s, p, s.RunsAs(u), fresh)
	head, own, err := ga.History.FindHolds(ctx, s.Repo)
	if err != nil {
		return nil, err
	}
	ev.holdsCommit = head
	stored, err := ga.readStored(ctx, ev)
	if err != nil {
		return nil, err
	}
	if ev.pulls, err = ga.readPulls(ctx, ev); err != nil {
		return nil, err
	}
	for i := range ev.envs {
		env := &ev.envs[i]
		if err := ga.addMissingSignatures(ctx, ev, i); err != nil {
			return nil, err
		}
		origins, unexplained, err := ga.gatherReleases(ctx, ev, i, stored)
		if err != nil {
			return nil, err
		}
		if env.Tip != "" {
			if err := ga.gatherOpenPulls(ctx, ev, env, fresh || unexplained); err != nil {
				return nil, err
			}
		}
		for k, c := range ev.Components {
			if at := c.Unit.Envs[env.Name]; at != nil {
				if err := ga.gatherComponentEnv(ctx, c, &c.Facts.Envs[i], at, origins[k], stored[k].observations); err != nil {
					return nil, fmt.Errorf("look at %s in %s: %w", c.Facts.Unit.Component, env.Name, err)
				}
			}
		}
		ev.joinViews(i)
		ga.recordHeads(ev, env.Name)
	}
	for _, c := range ev.Components {
		if err := ga.completeHistory(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := ga.completePastPulls(ctx, ev); err != nil {
		return nil, err
	}
	children := ev.childTargets()
	for _, c := range ev.Components {
		c.Facts.Holds = ga.History.HoldsOf(s.Repo, c.Facts.Unit, head, own)
		if c.Facts.ClusterIncidents, err = ga.Live.GatherIncidents(ctx, &c.ComponentBasis, children); err != nil {
			return nil, err
		}
		if c.Facts.Limits, err = ga.Records.gatherLimits(ctx, c); err != nil {
			return nil, err
		}
	}
	if ev.deployments, err = ga.gatherDeployments(ctx, ev); err != nil {
		return nil, err
	}
	return ev, ga.inspectLeftovers(ctx, ev)
}

// componentHistory is what the store remembers of a component.
type componentHistory struct {
	arrivals     map[string][]promotion.Arrival // by environment, newest first
	observations []store.Observation
}

// readStored reads the components' histories, and their commands before: the facts that a command
// was given about were stored before it, so the history has them.
func (ga *Gatherer) readStored(ctx context.Context, ev *Evaluation) (stored []componentHistory, err error) {
	stored = make([]componentHistory, len(ev.Components))
	for k, c := range ev.Components {
		if c.Facts.PendingCommands, err = ga.readPendingCommands(ctx, c.Facts.Unit); err != nil {
			return nil, err
		}
		if stored[k].arrivals, err = ga.readArrivals(ctx, c); err != nil {
			return nil, err
		}
		if stored[k].observations, err = ga.opts.Store.Observations(ctx, wake.UnitName(c.Facts.Unit)); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// gatherReleases reads what an environment carries of each component, and where that came from.
// unexplained says that a commit came of which no pull request is known yet: those are to be read
// again.
func (ga *Gatherer) gatherReleases(ctx context.Context, ev *Evaluation, i int, stored []componentHistory) (origins []branch.OriginMemo,
	unexplained bool, err error) {
	name := ev.envs[i].Name
	origins = make([]branch.OriginMemo, len(ev.Components))
	for k, c := range ev.Components {
		env, at := &c.Facts.Envs[i], c.Unit.Envs[name]
		if at == nil {
			env.HasNoTarget = true
			env.Release = promotion.Unsure[promotion.Release]("no ApplicationSet generates a target for this component here")
			continue
		}
		env.History = stored[k].arrivals[name]
		if origins[k], err = ga.gatherRelease(ctx, c, env, at); err != nil {
			return nil, false, fmt.Errorf("look at %s in %s: %w", c.Facts.Unit.Component, name, err)
		}
		if err := ga.addMergedPull(ctx, c, name, origins[k].Origin.Commit.SHA); err != nil {
			return nil, false, err
		}
		unexplained = env.Release.OK && ga.isUnexplained(wake.UnitName(c.Facts.Unit)+"|"+name, origins[k], ev.pulls.of(c, name)) ||
			unexplained
	}
	return origins, unexplained, nil
}

// recordHeads remembers what was found out about the heads of an environment's open pull requests.
func (ga *Gatherer) recordHeads(ev *Evaluation, env string) {
	for _, p := range ev.OpenPulls {
		if p.Environment == env {
			ga.Effects.RecordHead(ev.Snapshot.Repo, &p.Pull, p.Base, len(p.Edits) > 0)
		}
	}
}
