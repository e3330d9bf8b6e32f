package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Snapshot gives what the tracked branch's newest fetched commit says and where
// the environments' own branches are, from memory when that commit was seen before
// and nothing else that targets depend on has changed since. It does not fetch.
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
	var s *Snapshot
	if last != nil && last.Commit == tip && o.current(ctx, last) {
		tips, err := tipsOf(ctx, r, last.Pipelines)
		if err != nil {
			return nil, err
		}
		if maps.Equal(tips, last.Tips) {
			return last, nil
		}
		if s, err = o.branchesMoved(ctx, last, tips); err != nil {
			return nil, err
		}
	} else {
		if s, err = o.build(ctx, r, tip, last); err != nil {
			return nil, err
		}
		if last != nil {
			s.Turn = last.Turn
			if last.Commit == tip && !sameTargets(last, s) {
				s.Turn++
			}
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
	case errors.Is(err, pipeline.ErrNoPipeline):
		s.None = true
	case err != nil:
		s.Broken = err.Error()
		if pipes, s.GoodAt, err = history.LastGood(ctx, r.Mirror, tip); err != nil {
			return nil, err
		}
	}
	if s.Tips, err = tipsOf(ctx, r, pipes); err != nil {
		return nil, err
	}
	sur := o.surroundings(r)
	for _, p := range pipes {
		at, err := o.pipelineAt(ctx, sur, p, tip, last)
		if err != nil {
			return nil, err
		}
		if at.Baseline, err = o.baseline(ctx, s, p, last); err != nil {
			return nil, err
		}
		if err := o.readAhead(ctx, s, at, last); err != nil {
			return nil, err
		}
		s.Pipelines = append(s.Pipelines, at)
	}
	s.index(last)
	s.around = sur.around
	return s, nil
}

// baseline is that of the snapshot before where the pipeline files are older.
func (o *Observer) baseline(ctx context.Context, s *Snapshot, p *pipeline.Pipeline, last *Snapshot) (string, error) {
	m := s.Repo.Mirror
	if last != nil {
		before := last.Pipeline(p.Name())
		if before != nil && before.Baseline != last.GoodAt && reflect.DeepEqual(before.Spec.Carry, p.Spec.Carry) && history.SameRules(ctx, m, last.GoodAt, s.GoodAt) {
			return before.Baseline, nil
		}
	}
	return history.Baseline(ctx, m, p, s.GoodAt)
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
	good := &appset.Fleet{}
	if len(fl.Problems) > 0 {
		if good, err = o.lastGoodTargets(ctx, sur, p, fl.Problems, tip, last); err != nil {
			return nil, err
		}
		at.Fleet = history.InForce(fl, good, p.File)
	}
	before := &PipelineAt{}
	if last != nil && last.Pipeline(p.Name()) != nil {
		before = last.Pipeline(p.Name())
	}
	same := sameList(before.Fleet, at.Fleet) && before.Spec.BatchesByEnvironment() == p.Spec.BatchesByEnvironment()
	if same {
		at.Units = before.Units
	} else {
		at.Units = unitsOf(sur.repo, p, at.Fleet)
	}
	if same && reflect.DeepEqual(before.Spec.Carry, p.Spec.Carry) {
		at.places = before.places
	} else {
		at.places = placesOf(at)
	}
	problems := slices.Concat(fl.Problems, reservedName(p, at.Fleet))
	for _, pr := range problems {
		at.Problems = append(at.Problems, history.ProblemText(pr))
	}
	at.troubles = history.TroublesOf(problems, at.Fleet, p.File)
	at.movedKey = sync.OnceValue(at.movedBy)
	return at, nil
}

// sameList says that the targets are those of before, address and all.
func sameList(a, b *appset.Fleet) bool {
	return a != nil && len(a.Targets) == len(b.Targets) && len(a.Targets) > 0 && &a.Targets[0] == &b.Targets[0]
}

// sameTargets says whether two snapshots of one commit mean the same to every unit.
func sameTargets(a, b *Snapshot) bool {
	return slices.EqualFunc(a.Pipelines, b.Pipelines, func(a, b *PipelineAt) bool {
		return a.Name() == b.Name() && slices.Equal(a.Problems, b.Problems) && reflect.DeepEqual(a.Fleet.Targets, b.Fleet.Targets)
	})
}

// resolve asks the ApplicationSets for a pipeline's targets. What can't be
// resolved is in the fleet's problems, and no error of the run.
func (o *Observer) resolve(ctx context.Context, sur *surroundings, p *pipeline.Pipeline, commit string) (*appset.Fleet, error) {
	in, err := sur.input(ctx, p, commit)
	var fl *appset.Fleet
	if err == nil {
		fl, err = o.o.Resolver.Resolve(ctx, in)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("resolve %s at %s: %w", p.Name(), commit, err)
		}
		o.o.Log.Warn("the targets can't be resolved", zap.String("repository", sur.repo.ID), zap.String("pipeline", p.Name()), zap.Error(err))
		fl = &appset.Fleet{Problems: []appset.Problem{{File: p.File, Message: err.Error()}}}
	}
	return fl, nil
}

// unitsOf are the components of a pipeline's targets, as units of the repository.
func unitsOf(r *Repository, p *pipeline.Pipeline, fl *appset.Fleet) map[string]*UnitAt {
	units := map[string]*UnitAt{}
	for component, envs := range history.Components(fl, r.Branch) {
		if p.Spec.BatchesByEnvironment() && component == promotion.BatchName {
			continue
		}
		units[component] = &UnitAt{Unit: promotion.Unit{Repo: r.ID, Pipeline: p.Name(), Component: component}, Envs: envs}
	}
	return units
}

// reservedName says that a component has the name that stands for all of them
// where they travel together.
func reservedName(p *pipeline.Pipeline, fl *appset.Fleet) []appset.Problem {
	for i := range fl.Targets {
		if t := &fl.Targets[i]; p.Spec.BatchesByEnvironment() && t.Component == promotion.BatchName {
			return []appset.Problem{{File: p.File, Message: fmt.Sprintf("spec.component gives %s the component %q, which with batch: environment stands for all of them: call it something else", t.Name, promotion.BatchName)}}
		}
	}
	return nil
}
