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
// memory when that commit was seen before and nothing else that targets depend
// on has changed since. It does not fetch.
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
	if last != nil && last.Commit == tip && o.current(ctx, last) {
		return last, nil
	}
	s, err := o.build(ctx, r, tip, last)
	if err != nil {
		return nil, err
	}
	if last != nil {
		s.Turn = last.Turn
		if last.Commit == tip && !sameTargets(last, s) {
			s.Turn++
		}
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
	sur := o.surroundings(r)
	for _, p := range pipes {
		at, err := o.pipelineAt(ctx, sur, p, tip, last)
		if err != nil {
			return nil, err
		}
		if at.Baseline, err = o.baseline(ctx, r, p, s.GoodAt); err != nil {
			return nil, err
		}
		s.Pipelines = append(s.Pipelines, at)
	}
	s.around = sur.around
	return s, nil
}

// pipelineAt resolves a pipeline at a commit and puts the last good targets in
// force where it can't be.
func (o *Observer) pipelineAt(ctx context.Context, sur *surroundings, p *pipeline.Pipeline, tip string, last *Snapshot) (*PipelineAt, error) {
	fl, err := o.resolve(ctx, sur, p, tip)
	if err != nil {
		return nil, err
	}
	if d := fl.RefreshAfter; d > 0 {
		if at := o.o.Now().Add(d); sur.until.IsZero() || at.Before(sur.until) {
			sur.until = at
		}
	}
	at := &PipelineAt{Pipeline: p, Fleet: fl}
	for _, pr := range fl.Problems {
		at.Problems = append(at.Problems, problemText(pr))
	}
	good := &fleet.Fleet{}
	if len(fl.Problems) > 0 {
		if good, err = o.lastGoodTargets(ctx, sur, p, fl.Problems, tip, last); err != nil {
			return nil, err
		}
		at.Fleet = inForce(fl, good, p.File)
	}
	at.Units = unitsOf(sur.repo.ID, p, at.Fleet)
	at.troubles = troublesOf(fl.Problems, at.Fleet, p.File)
	var before *lazyIndex
	if last != nil && last.Pipeline(p.Name()) != nil {
		before = last.Pipeline(p.Name()).index
	}
	at.index = newIndex(sur.repo.Mirror, tip, at.Fleet.Targets, before)
	return at, nil
}

// sameTargets says whether two snapshots of one commit mean the same to every unit.
func sameTargets(a, b *Snapshot) bool {
	return slices.EqualFunc(a.Pipelines, b.Pipelines, func(a, b *PipelineAt) bool {
		return a.Name() == b.Name() && slices.Equal(a.Problems, b.Problems) && reflect.DeepEqual(a.Fleet.Targets, b.Fleet.Targets)
	})
}

// resolve asks the ApplicationSets for a pipeline's targets. What can't be
// resolved is in the fleet's problems, and no error of the run.
func (o *Observer) resolve(ctx context.Context, sur *surroundings, p *pipeline.Pipeline, commit string) (*fleet.Fleet, error) {
	in, err := sur.input(ctx, p, commit)
	var fl *fleet.Fleet
	if err == nil {
		fl, err = o.o.Resolver.Resolve(ctx, in)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("resolve %s at %s: %w", p.Name(), commit, err)
		}
		o.o.Log.Warn("the targets can't be resolved", zap.String("repository", sur.repo.ID), zap.String("pipeline", p.Name()), zap.Error(err))
		fl = &fleet.Fleet{Problems: []fleet.Problem{{File: p.File, Message: err.Error()}}}
	}
	return fl, nil
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
