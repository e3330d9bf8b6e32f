package branch

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/liftlock/liftlock/internal/promotion"
)

// ChangedUnits are the units that the changes between two snapshots concern. Their targets or rules
// have changed, their targets read changed files, or they share files with those that read others
// than before. all says that it may be every unit.
func (tg *TargetGatherer) ChangedUnits(ctx context.Context, last, s *Snapshot) (units map[promotion.Unit]bool, all bool, err error) {
	if last.PipelineErr != s.PipelineErr || last.NoPipelines != s.NoPipelines || len(last.Pipelines) != len(s.Pipelines) ||
		len(last.BranchTips) != len(s.BranchTips) {
		return nil, true, nil
	}
	units = map[promotion.Unit]bool{}
	for _, p := range s.Pipelines {
		before := last.Pipeline(p.Name())
		if before == nil {
			return nil, true, nil
		}
		if !reflect.DeepEqual(before.Spec, p.Spec) || before.Baseline != p.Baseline || !slices.Equal(before.Problems, p.Problems) {
			for _, u := range p.Units {
				units[u.Unit] = true
			}
		}
		compareTargets(before, p, units)
	}
	for _, now := range s.BranchHeads() {
		i := slices.IndexFunc(last.BranchHeads(), func(b Head) bool { return b.Branch == now.Branch })
		if i < 0 {
			return nil, true, nil
		}
		was := last.BranchHeads()[i].Commit
		if was == now.Commit {
			continue
		}
		if was == "" || now.Commit == "" {
			return nil, true, nil
		}
		if follows, err := s.Repo.Mirror.IsAncestor(ctx, was, now.Commit); err != nil || !follows {
			return nil, true, nil // the history is another one, or not known
		}
		if err := tg.addReaders(ctx, last, s, Head{now.Branch, was}, now, units); err != nil {
			return nil, false, fmt.Errorf("find out whom the change of %s concerns: %w", now.Branch, err)
		}
	}
	return units, false, nil
}

// compareTargets adds the units of a pipeline whose targets are others than before, and
// those that are gone.
func compareTargets(before, p *ResolvedPipeline, units map[promotion.Unit]bool) {
	if SameTargetSlice(before.TargetSet, p.TargetSet) {
		return
	}
	for component, u := range p.Units {
		if was := before.Units[component]; was == nil ||
			!maps.EqualFunc(was.Envs, u.Envs, func(a, b *ResolvedEnv) bool { return a == b || reflect.DeepEqual(a, b) }) {
			units[u.Unit] = true
		}
	}
	for component, u := range before.Units {
		if p.Units[component] == nil {
			units[u.Unit] = true // its run forgets it
		}
	}
}

// addReaders adds the units whose targets read, or read before, what changed on a branch.
func (tg *TargetGatherer) addReaders(ctx context.Context, last, s *Snapshot, was, now Head, units map[promotion.Unit]bool) error {
	changes, err := s.Repo.Mirror.Changed(ctx, was.Commit, now.Commit)
	if err != nil {
		return err
	}
	files := pathsOf(changes)
	for _, p := range s.Pipelines {
		before := last.Pipeline(p.Name())
		older, err := before.AffectedReaders(ctx, was.Branch, files)
		if err != nil {
			return err
		}
		readers, err := p.AffectedReaders(ctx, now.Branch, files)
		if err != nil {
			return err
		}
		ids := map[string]bool{}
		for _, some := range []map[string][]string{older, readers} {
			for id := range some {
				ids[id] = true
			}
		}
		if err := addSharers(ctx, before, p, now.Branch, ids); err != nil {
			return err
		}
		p.AddUnitsOf(ids, units)
		envs := p.locations.changedEnvs(changes)
		for _, u := range p.Units {
			for _, e := range u.Envs {
				if envs == nil || envs[e] {
					units[u.Unit] = true
				}
			}
		}
	}
	return nil
}

// addSharers adds to targets those that read a file which one of them began or ceased
// to read: whether an edit of it reaches another environment is another question now.
func addSharers(ctx context.Context, before, p *ResolvedPipeline, branch string, ids map[string]bool) error {
	older, err := before.ReaderIndexes[branch].Get(ctx)
	if err != nil {
		return err
	}
	newer, err := p.ReaderIndexes[branch].Get(ctx)
	if err != nil {
		return err
	}
	differs := map[string]bool{}
	for id := range ids {
		a, b := older.Files(id), newer.Files(id)
		if slices.Equal(a, b) {
			continue
		}
		for _, f := range slices.Concat(a, b) {
			_, had := slices.BinarySearch(a, f)
			if _, has := slices.BinarySearch(b, f); had != has {
				differs[f] = true
			}
		}
	}
	for id := range newer.AffectedReaders(slices.Collect(maps.Keys(differs))) {
		ids[id] = true
	}
	return nil
}

// AddUnitsOf adds the units of targets by their IDs.
func (r *ResolvedPipeline) AddUnitsOf(ids map[string]bool, units map[promotion.Unit]bool) {
	if len(ids) == 0 {
		return
	}
	for i := range r.TargetSet.Targets {
		t := &r.TargetSet.Targets[i]
		if u := r.Units[t.Component]; u != nil && ids[t.ID()] {
			units[u.Unit] = true
		}
	}
}
