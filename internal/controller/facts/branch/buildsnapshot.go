package branch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TargetGatherer finds out what the tracked branches' newest commits say: the pipelines,
// their targets and the releases that the environments hold.
type TargetGatherer struct {
	Argocds     *ArgoCDs
	releases    *ReleaseReader
	Resolver    *appset.Resolver
	generators  appset.Generators
	build       appset.ManifestBuilder
	Repos       TrackedRepositories
	knownInputs func(in *appset.Input)                             // nil: the Argo CDs are asked
	resolving   func(repo, commit string) (done func(), err error) // nil: nothing is told
	now         func() time.Time
	log         *zap.Logger

	building     lock.Keyed[string]              // by repository: one of its snapshots is built at a time
	Snapshots    *cache.Cache[string, *Snapshot] // by repository, the last one of each
	clusterFiles *cache.Cache[string, clusterFile]
	applications applicationCache
}

// TargetOptions are what targets are resolved by.
type TargetOptions struct {
	Resolver    *appset.Resolver
	Generators  appset.Generators // that ask the network and may
	Repos       []*Repository     // all that are tracked: what generators may read of each other
	Renderer    render.Renderer   // of what is on our own branches; nil: this process
	Caches      *cache.Group
	KnownInputs func(in *appset.Input)                             // puts all in that is known beside Git; nil: the Argo CDs are asked
	Resolving   func(repo, commit string) (done func(), err error) // is told which commit is about to be resolved; nil: nobody is
	Now         func() time.Time
	Log         *zap.Logger
}

func NewTargetGatherer(o *TargetOptions, argocds *ArgoCDs, releases *ReleaseReader) *TargetGatherer {
	return &TargetGatherer{Argocds: argocds, releases: releases, Resolver: o.Resolver, generators: o.Generators,
		build: evaluate.NewManifestBuilder(newBuildMemo(o)), Repos: TrackedRepositories{List: o.Repos}, knownInputs: o.KnownInputs,
		resolving: o.Resolving, now: o.Now, log: o.Log,
		// Room for all: Snapshot.Generation goes on from the snapshot before.
		Snapshots:    NewCache[string, *Snapshot](o.Caches, "snapshots", MaxRepositories),
		clusterFiles: NewCache[string, clusterFile](o.Caches, "cluster_files", max(1, len(argocds.ByName))),
		applications: newApplicationCache(o.Caches)}
}

// maxBuiltSets bounds the bytes of manifests that ApplicationSets are built into.
const maxBuiltSets = 32 << 20

// newBuildMemo renders what entries have built, and remembers it while its files are the same.
func newBuildMemo(o *TargetOptions) *render.Memo {
	return render.NewMemo(render.MemoOptions{Bytes: maxBuiltSets, Renderer: o.Renderer, Now: o.Now})
}

// Snapshot gives the content of the tracked branch's newest fetched commit and the places of the
// environments' own branches. It gives them from memory when that commit was seen before and no
// other input of targets has changed since. It does not fetch.
func (tg *TargetGatherer) Snapshot(ctx context.Context, r *Repository) (*Snapshot, error) {
	unlock, err := tg.building.Lock(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	tip, ok, err := r.Mirror.Head(ctx, r.Branch)
	if err != nil {
		return nil, fmt.Errorf("read the head of %s of %s: %w", r.Branch, r.ID, err)
	}
	if !ok {
		return nil, fmt.Errorf("%s has no branch %s: create it or correct repositories[].branch", r.ID, r.Branch)
	}
	last, _ := tg.Snapshots.Get(r.ID)
	var s *Snapshot
	if last != nil && last.Commit == tip && tg.IsCurrent(ctx, last) {
		tips, err := readBranchTips(ctx, r, last.Pipelines)
		if err != nil {
			return nil, err
		}
		if maps.Equal(tips, last.BranchTips) {
			return last, nil
		}
		if s, err = tg.withNewTips(ctx, last, tips); err != nil {
			return nil, err
		}
	} else {
		if s, err = tg.buildSnapshot(ctx, r, tip, last); err != nil {
			return nil, err
		}
		if last != nil {
			s.Generation = last.Generation
			if last.Commit == tip && !sameTargets(last, s) {
				s.Generation++
			}
		}
	}
	tg.Snapshots.Put(r.ID, s)
	return s, nil
}

func (tg *TargetGatherer) buildSnapshot(ctx context.Context, r *Repository, tip string, last *Snapshot) (*Snapshot, error) {
	if tg.resolving != nil {
		done, err := tg.resolving(r.ID, tip)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	s := &Snapshot{Repo: r, Commit: tip, PipelineCommit: tip}
	pipes, err := LoadPipelines(ctx, r.Mirror, tip, last)
	switch {
	case errors.Is(err, pipeline.ErrNoPipeline):
		s.NoPipelines = true
	case err != nil:
		s.PipelineErr = err.Error()
		if pipes, s.PipelineCommit, err = history.LastGood(ctx, r.Mirror, tip); err != nil {
			return nil, err
		}
	}
	if s.BranchTips, err = readBranchTips(ctx, r, pipes); err != nil {
		return nil, err
	}
	sur := tg.NewInputCollector(r)
	for _, p := range pipes {
		at, err := tg.resolvePipeline(ctx, sur, p, tip, last)
		if err != nil {
			return nil, err
		}
		if err := tg.listUnits(ctx, s, at, last); err != nil {
			return nil, err
		}
		if at.Baseline, err = tg.findBaseline(ctx, s, p, last); err != nil {
			return nil, err
		}
		if err := tg.releases.ReadAhead(ctx, s, at, last); err != nil {
			return nil, err
		}
		s.Pipelines = append(s.Pipelines, at)
	}
	s.buildIndexes(last)
	s.Inputs = sur.ResolveInputs
	return s, nil
}

// LoadPipelines loads the pipelines of a commit; those of the snapshot before where no commit since
// changed their files, which most commits don't.
func LoadPipelines(ctx context.Context, m *git.Mirror, tip string, last *Snapshot) ([]*pipeline.Pipeline, error) {
	if last == nil || last.PipelineErr != "" || last.NoPipelines || !history.SameRules(ctx, m, last.Commit, tip) {
		return pipeline.Load(m.Tree(tip))
	}
	pipes := make([]*pipeline.Pipeline, len(last.Pipelines))
	for i, p := range last.Pipelines {
		pipes[i] = p.Pipeline
	}
	return pipes, nil
}

// findBaseline is that of the snapshot before where the pipeline files are older.
func (tg *TargetGatherer) findBaseline(ctx context.Context, s *Snapshot, p *pipeline.Pipeline, last *Snapshot) (string, error) {
	m, before := s.Repo.Mirror, last.pipelineBefore(p.Name())
	if before.TargetSet != nil && before.Baseline != last.PipelineCommit && reflect.DeepEqual(before.Spec.Carry, p.Spec.Carry) &&
		history.SameRules(ctx, m, last.PipelineCommit, s.PipelineCommit) {
		return before.Baseline, nil
	}
	return history.Baseline(ctx, m, p, s.PipelineCommit)
}

// resolvePipeline resolves a pipeline at a commit and puts the last good targets in
// force where it can't be.
func (tg *TargetGatherer) resolvePipeline(ctx context.Context, sur *InputCollector, p *pipeline.Pipeline, tip string,
	last *Snapshot) (*ResolvedPipeline, error) {
	fl, err := tg.ResolveTargets(ctx, sur, p, tip)
	if err != nil {
		return nil, err
	}
	if d := fl.RefreshAfter; d > 0 {
		if at := tg.now().Add(d); sur.validUntil.IsZero() || at.Before(sur.validUntil) {
			sur.validUntil = at
		}
	}
	at := &ResolvedPipeline{Pipeline: p, TargetSet: fl}
	if len(fl.Problems) > 0 {
		good, err := tg.lastGoodTargets(ctx, sur, p, fl.Problems, tip, last)
		if err != nil {
			return nil, err
		}
		at.TargetSet = history.EffectiveTargets(fl, good, p.File)
	}
	problems := slices.Concat(fl.Problems, reservedNameProblem(p, at.TargetSet))
	at.Problems = problemTexts(problems)
	at.componentProblems = history.NewComponentProblems(problems, at.TargetSet, p.File)
	return at, nil
}

// lastTargetsDepth bounds how far back targets are looked for that could still
// be resolved.
const lastTargetsDepth = 20

// lastGoodTargets finds the targets that stay in force for a part that can't be resolved at tip.
// They are those of the snapshot before or, after a start, of the newest commit at which the part
// could be resolved. It is empty where no such targets are known.
func (tg *TargetGatherer) lastGoodTargets(ctx context.Context, sur *InputCollector, p *pipeline.Pipeline, problems []appset.Problem,
	tip string, last *Snapshot) (*appset.TargetSet, error) {
	if before := last.pipelineBefore(p.Name()); before.TargetSet != nil && reflect.DeepEqual(before.Spec, p.Spec) {
		return before.TargetSet, nil
	}
	log, err := sur.repo.Mirror.Log(ctx, git.LogQuery{From: tip, FirstParent: true, Limit: lastTargetsDepth})
	if err != nil {
		return nil, fmt.Errorf("look for the last good targets of %s: %w", p.Name(), err)
	}
	for _, c := range log {
		if c.SHA == tip {
			continue
		}
		then, err := tg.ResolveTargets(ctx, sur, p, c.SHA)
		if err != nil {
			return nil, err
		}
		if history.UnrelatedProblems(then.Problems, problems, p.File) {
			return then, nil
		}
	}
	return &appset.TargetSet{}, nil
}

func problemTexts(problems []appset.Problem) []string {
	var out []string
	for _, p := range appset.GroupProblems(problems, appset.NameFew) {
		out = append(out, p.Text())
	}
	return out
}

// SameTargetSlice says that the targets are those of before, address and all.
func SameTargetSlice(a, b *appset.TargetSet) bool {
	return a != nil && len(a.Targets) == len(b.Targets) && len(a.Targets) > 0 && &a.Targets[0] == &b.Targets[0]
}

// sameTargets says whether two snapshots of one commit mean the same to every unit.
func sameTargets(a, b *Snapshot) bool {
	return slices.EqualFunc(a.Pipelines, b.Pipelines, func(a, b *ResolvedPipeline) bool {
		return a.Name() == b.Name() && slices.Equal(a.Problems, b.Problems) && reflect.DeepEqual(a.TargetSet.Targets, b.TargetSet.Targets)
	})
}

// ResolveTargets resolves the ApplicationSets to a pipeline's targets. A set that can't be resolved
// is among the set's problems, and no error of the run.
func (tg *TargetGatherer) ResolveTargets(ctx context.Context, sur *InputCollector, p *pipeline.Pipeline,
	commit string) (*appset.TargetSet, error) {
	var fl *appset.TargetSet
	in, err := sur.collectInput(ctx, p, commit)
	if err == nil {
		fl, err = tg.Resolver.Resolve(ctx, in)
	}
	if ctx.Err() != nil && err != nil {
		return nil, fmt.Errorf("resolve %s at %s: %w", p.Name(), commit, err)
	}
	if err != nil {
		tg.log.Warn("the targets can't be resolved", zap.String("repository", sur.repo.ID), zap.String("pipeline", p.Name()),
			zap.Error(err))
		fl = &appset.TargetSet{Problems: []appset.Problem{{File: p.File, Message: err.Error()}}}
	}
	return fl, nil
}

// listUnits lists the units of a pipeline and where they have their fields. They are those of the
// snapshot before, as long as neither the targets change nor the bases of the kustomizations that
// they lead to.
func (tg *TargetGatherer) listUnits(ctx context.Context, s *Snapshot, at *ResolvedPipeline, last *Snapshot) error {
	before := last.pipelineBefore(at.Name())
	sameTargets := SameTargetSlice(before.TargetSet, at.TargetSet)
	var err error
	if at.Bases, err = readBases(ctx, s, at, last, sameTargets); err != nil {
		return err
	}
	same := sameTargets && maps.Equal(before.Bases.Of, at.Bases.Of) && before.Spec.BatchesByEnvironment() == at.Spec.BatchesByEnvironment()
	if same {
		at.Units = before.Units
	} else {
		at.Units = newUnits(s.Repo, at.Pipeline, at.TargetSet, at.Bases.Of)
	}
	if same && reflect.DeepEqual(before.Spec.Carry, at.Spec.Carry) {
		at.locations = before.locations
	} else {
		at.locations = newLocations(at)
	}
	at.OverlaysKey = sync.OnceValue(at.hashOverlays)
	return nil
}

// newUnits are the components of a pipeline's targets, as units of the repository.
func newUnits(r *Repository, p *pipeline.Pipeline, fl *appset.TargetSet, bases map[string]*history.Bases) map[string]*ResolvedUnit {
	units := map[string]*ResolvedUnit{}
	for component, envs := range history.Components(fl, r.Branch, bases) {
		if p.Spec.BatchesByEnvironment() && component == promotion.BatchName {
			continue
		}
		units[component] = &ResolvedUnit{Unit: promotion.Unit{Repo: r.ID, Pipeline: p.Name(), Component: component}, Envs: envs}
	}
	return units
}

// reservedNameProblem says that a component has the name that stands for all of them
// where they are a batch.
func reservedNameProblem(p *pipeline.Pipeline, fl *appset.TargetSet) []appset.Problem {
	for i := range fl.Targets {
		if t := &fl.Targets[i]; p.Spec.BatchesByEnvironment() && t.Component == promotion.BatchName {
			return []appset.Problem{{File: p.File, Message: fmt.Sprintf("spec.component gives %s the component %q, which with batch: "+
				"environment stands for all of them: call it something else", t.Name, promotion.BatchName)}}
		}
	}
	return nil
}

// readBranchTips are the heads of the branches that pipelines' environments live on,
// but the tracked one's; empty for a branch that isn't there.
func readBranchTips[P interface{ EnvironmentBranches() []string }](ctx context.Context, r *Repository,
	pipes []P) (map[string]string, error) {
	tips := map[string]string{}
	for _, p := range pipes {
		for _, branch := range p.EnvironmentBranches() {
			if branch == r.Branch {
				continue
			}
			tip, _, err := r.Mirror.Head(ctx, branch)
			if err != nil {
				return nil, fmt.Errorf("read the head of %s of %s: %w", branch, r.ID, err)
			}
			tips[branch] = tip
		}
	}
	return tips, nil
}

// withNewTips is the snapshot after environments' branches have moved that no
// generator reads: nothing needs to be resolved again.
func (tg *TargetGatherer) withNewTips(ctx context.Context, s *Snapshot, tips map[string]string) (*Snapshot, error) {
	next := *s
	next.BranchTips = tips
	next.Pipelines = make([]*ResolvedPipeline, len(s.Pipelines))
	for i, p := range s.Pipelines {
		at := *p
		next.Pipelines[i] = &at
		if err := tg.listUnits(ctx, &next, &at, s); err != nil {
			return nil, err
		}
		if err := tg.releases.ReadAhead(ctx, &next, &at, s); err != nil {
			return nil, err
		}
	}
	next.buildIndexes(s)
	return &next, nil
}

// buildIndexes gives every pipeline an index for each of the branches; one that was
// made for the snapshot before is kept, or brought up to date when it is needed.
func (s *Snapshot) buildIndexes(last *Snapshot) {
	lines := s.BranchHeads()
	for _, p := range s.Pipelines {
		before := last.pipelineBefore(p.Name()).ReaderIndexes
		p.ReaderIndexes = make(map[string]*LazyIndex, len(lines))
		for _, l := range lines {
			if p.ReaderIndexes[l.Branch] = before[l.Branch]; !before[l.Branch].IsFor(l.Commit, p.TargetSet.Targets) {
				p.ReaderIndexes[l.Branch] = NewLazyIndex(s.Repo, l.Branch, l.Commit, p.TargetSet.Targets, before[l.Branch])
			}
		}
	}
}
