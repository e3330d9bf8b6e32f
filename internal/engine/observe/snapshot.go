package observe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/fleet"
	"github.com/liftlock/liftlock/internal/gitrepo"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// historyDepth bounds how many versions of the pipeline files are walked to
// find the last good one and the commits that brought their parts.
const historyDepth = 500

// pipelinePaths are where pipeline files live.
var pipelinePaths = []string{".liftlock.yaml", ".liftlock"}

// Snapshot gives what the tracked branch's newest fetched commit says, from
// memory when that commit was seen before. It does not fetch.
func (o *Observer) Snapshot(ctx context.Context, r *Repository) (*Snapshot, error) {
	defer o.lock(r.ID)()
	tip, ok, err := r.Mirror.Head(ctx, r.Branch)
	if err != nil {
		return nil, fmt.Errorf("read the head of %s of %s: %w", r.Branch, r.ID, err)
	}
	if !ok {
		return nil, fmt.Errorf("%s has no branch %s: create it or correct repositories[].branch", r.ID, r.Branch)
	}
	o.mu.Lock()
	last := o.snapshots[r.ID]
	o.mu.Unlock()
	if last != nil && last.Commit == tip {
		return last, nil
	}
	s, err := o.build(ctx, r, tip, last)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.snapshots[r.ID] = s
	o.mu.Unlock()
	return s, nil
}

func (o *Observer) build(ctx context.Context, r *Repository, tip string, last *Snapshot) (*Snapshot, error) {
	s := &Snapshot{Repo: r, Commit: tip, GoodAt: tip}
	pipes, err := pipeline.Load(r.Mirror.Tree(tip))
	switch {
	case errors.Is(err, pipeline.ErrNone):
		s.None = true
	case err != nil:
		s.Broken = err.Error()
		if pipes, s.GoodAt, err = o.lastGood(ctx, r, tip); err != nil {
			return nil, err
		}
	}
	for _, p := range pipes {
		at, err := o.resolve(ctx, r, p, tip)
		if err != nil {
			return nil, err
		}
		if len(at.Problems) > 0 {
			if at.Fleet, err = o.lastTargets(ctx, r, at, tip, last); err != nil {
				return nil, err
			}
		}
		at.Baseline, err = o.baseline(ctx, r, p, s.GoodAt)
		if err != nil {
			return nil, err
		}
		at.Units = unitsOf(r.ID, p, at.Fleet)
		at.index = &lazyIndex{tree: r.Mirror.Tree(tip), targets: at.Fleet.Targets}
		s.Pipelines = append(s.Pipelines, at)
	}
	return s, nil
}

// resolve asks the ApplicationSets for a pipeline's targets. What can't be
// resolved becomes a problem of the pipeline, not an error of the run.
func (o *Observer) resolve(ctx context.Context, r *Repository, p *pipeline.Pipeline, commit string) (*PipelineAt, error) {
	fl, err := o.o.Resolver.Resolve(ctx, fleet.Input{
		Pipeline: p, Tree: r.Mirror.Tree(commit), Revision: commit, Branch: r.Branch, RepoURLs: r.URLs,
		Globbing: o.o.Globbing[o.o.MainArgoCD],
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("resolve %s at %s: %w", p.Name(), commit, err)
		}
		o.o.Log.Warn("the targets can't be resolved", zap.String("repository", r.ID), zap.String("pipeline", p.Name()), zap.Error(err))
		fl = &fleet.Fleet{Problems: []fleet.Problem{{Message: err.Error()}}}
	}
	at := &PipelineAt{Pipeline: p, Fleet: fl}
	for _, pr := range fl.Problems {
		at.Problems = append(at.Problems, problemText(pr))
	}
	return at, nil
}

// lastTargetsDepth bounds how far back targets are looked for that could still
// be resolved.
const lastTargetsDepth = 20

// lastTargets keeps the last good targets in force while some can't be resolved:
// those of the snapshot before or, after a start, of the newest commit whose
// ApplicationSets can be. Without any, what could be resolved is all there is.
func (o *Observer) lastTargets(ctx context.Context, r *Repository, at *PipelineAt, tip string, last *Snapshot) (*fleet.Fleet, error) {
	if last != nil {
		if before := last.Pipeline(at.Name()); before != nil && reflect.DeepEqual(before.Spec, at.Spec) {
			return &fleet.Fleet{Targets: before.Fleet.Targets, Problems: at.Fleet.Problems}, nil
		}
	}
	log, err := r.Mirror.Log(ctx, gitrepo.LogQuery{From: tip, FirstParent: true, Limit: lastTargetsDepth})
	if err != nil {
		return nil, fmt.Errorf("look for the last good targets of %s: %w", at.Name(), err)
	}
	for _, c := range log {
		if c.SHA == tip {
			continue
		}
		then, err := o.resolve(ctx, r, at.Pipeline, c.SHA)
		if err != nil {
			return nil, err
		}
		if len(then.Problems) == 0 {
			return &fleet.Fleet{Targets: then.Fleet.Targets, Problems: at.Fleet.Problems}, nil
		}
	}
	return at.Fleet, nil
}

func problemText(p fleet.Problem) string {
	s := p.File
	for _, part := range []string{p.ApplicationSet, p.Application} {
		if part != "" {
			if s != "" {
				s += ": "
			}
			s += part
		}
	}
	if s != "" {
		s += ": "
	}
	return s + p.Message
}

// unitsOf groups the managed targets by component and environment.
func unitsOf(repo string, p *pipeline.Pipeline, fl *fleet.Fleet) map[string]*UnitAt {
	units := map[string]*UnitAt{}
	owners := rootOwners(fl)
	for _, t := range fl.Targets {
		if t.Component == "" || t.Environment == "" {
			continue
		}
		u, ok := units[t.Component]
		if !ok {
			u = &UnitAt{Unit: promotion.Unit{Repo: repo, Pipeline: p.Name(), Component: t.Component}, Envs: map[string]*EnvAt{}}
			units[t.Component] = u
		}
		e, ok := u.Envs[t.Environment]
		if !ok {
			e = &EnvAt{}
			u.Envs[t.Environment] = e
		}
		e.Targets = append(e.Targets, t)
		for _, root := range fleet.Roots(t) {
			if !slices.Contains(e.Roots, root) && len(owners[root]) == 1 {
				e.Roots = append(e.Roots, root)
			}
		}
		sort.Strings(e.Roots)
	}
	return units
}

// rootOwners says which environments of which components have a folder among
// their roots. One that several share holds no overlay of any of them.
func rootOwners(fl *fleet.Fleet) map[string]map[string]bool {
	owners := map[string]map[string]bool{}
	for _, t := range fl.Targets {
		for _, root := range fleet.Roots(t) {
			if owners[root] == nil {
				owners[root] = map[string]bool{}
			}
			owners[root][t.Component+"|"+t.Environment] = true
		}
	}
	return owners
}

// versions walks the commits that changed the pipeline files, newest first.
func versions(ctx context.Context, r *Repository, from string) ([]gitrepo.CommitInfo, error) {
	log, err := r.Mirror.Log(ctx, gitrepo.LogQuery{From: from, FirstParent: true, Paths: pipelinePaths, Limit: historyDepth})
	if err != nil {
		return nil, fmt.Errorf("walk the history of the pipeline files of %s: %w", r.ID, err)
	}
	return log, nil
}

// lastGood finds the newest version of the pipeline files that can be used.
// None at all is no error: then there are no pipelines.
func (o *Observer) lastGood(ctx context.Context, r *Repository, tip string) ([]*pipeline.Pipeline, string, error) {
	log, err := versions(ctx, r, tip)
	if err != nil {
		return nil, "", err
	}
	for _, c := range log {
		pipes, err := pipeline.Load(r.Mirror.Tree(c.SHA))
		if err == nil {
			return pipes, c.SHA, nil
		}
	}
	return nil, tip, nil
}

// baseline finds the commit that brought the pipeline, or the newest of its
// carry entries: releases that landed no later than that are never moved by
// themselves. Versions that were broken in between don't interrupt a pipeline's life.
func (o *Observer) baseline(ctx context.Context, r *Repository, p *pipeline.Pipeline, from string) (string, error) {
	log, err := versions(ctx, r, from)
	if err != nil {
		return "", err
	}
	base := ""
	for _, c := range log {
		pipes, err := pipeline.Load(r.Mirror.Tree(c.SHA))
		if err != nil && !errors.Is(err, pipeline.ErrNone) {
			continue
		}
		then := slices.IndexFunc(pipes, func(q *pipeline.Pipeline) bool { return q.Name() == p.Name() })
		if then < 0 || !carriesAll(pipes[then].Spec.Carry, p.Spec.Carry) {
			break
		}
		base = c.SHA
	}
	if base == "" {
		return from, nil
	}
	return base, nil
}

func carriesAll(then, now []pipeline.Carry) bool {
	for _, n := range now {
		if !slices.ContainsFunc(then, func(t pipeline.Carry) bool { return reflect.DeepEqual(t, n) }) {
			return false
		}
	}
	return true
}
