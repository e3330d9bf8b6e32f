package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxRendered is about how many bytes of manifests are remembered.
const maxRendered = 128 << 20

// planner makes one plan.
type planner struct {
	input          Input
	tracked        *branchHead            // the tracked branch
	branches       map[string]*branchHead // environments' own branches, by name
	pipelines      []*resolvedPipeline
	renderer       *isolation.Renderer
	trailerCommits map[trailerKey][]git.CommitInfo // commits with trailers, newest first
}

// resolvedPipeline is one pipeline at the commit.
type resolvedPipeline struct {
	pipeline          *pipeline.Pipeline
	targetSet         *appset.TargetSet
	fullTargetSet     *appset.TargetSet // with Applications; nil: not asked for yet
	baseline          string
	componentProblems history.ComponentProblems
	units             []*unit                     // by component
	readers           map[*branchHead]*deps.Index // what its targets read of a line; made when it is first asked for
}

// unit is one component.
type unit struct {
	pipeline  *resolvedPipeline
	component string
	envs      map[string]*history.Environment
	facts     promotion.ComponentFacts
	contents  map[string]fieldedit.Release // by identity
	composed  map[string][]fieldedit.Edit  // by environment and release
}

// Make makes a plan. What is wrong with the files is in it; the error is for a
// repository that can't be read and a context that ended.
func Make(ctx context.Context, in Input) (*Plan, error) {
	m := &planner{input: in, tracked: &branchHead{branch: in.Branch, commit: in.Commit, tree: &commitTree{Tree: in.Git.Tree(in.Commit)}}, branches: map[string]*branchHead{}, renderer: isolation.New(nil, maxRendered), trailerCommits: map[trailerKey][]git.CommitInfo{}}
	out := &Plan{Subject: in.Subject, Commit: in.Commit, Assumptions: assumptions, Pipelines: []Pipeline{}, Problems: []appset.Problem{}, Notes: []appset.Problem{}}
	for _, p := range in.Pipelines {
		r, err := m.resolvePipeline(ctx, p)
		if err != nil {
			return nil, err
		}
		m.pipelines = append(m.pipelines, r)
		out.Problems = append(out.Problems, r.targetSet.Problems...)
		out.Notes = append(out.Notes, r.targetSet.Notes...)
	}
	for _, l := range append(slices.Collect(maps.Values(m.branches)), m.tracked) {
		if err := m.findTrailerCommits(ctx, l); err != nil {
			return nil, err
		}
	}
	for _, r := range m.pipelines {
		if in.OnlyPipeline != "" && r.pipeline.Name() != in.OnlyPipeline {
			continue
		}
		if err := m.gatherFacts(ctx, r); err != nil {
			return nil, err
		}
		part, err := m.evaluatePipeline(ctx, r)
		if err != nil {
			return nil, err
		}
		out.Pipelines = append(out.Pipelines, part)
	}
	return out, nil
}

// findTrailerCommits finds the commits with trailers on a line. A squash or a rebase has them on
// the branch's own line, a merge on the merged one.
func (m *planner) findTrailerCommits(ctx context.Context, l *branchHead) error {
	if l.tree == nil {
		return nil
	}
	log, err := m.input.Git.Log(ctx, git.LogQuery{From: l.commit, Grep: promotion.TrailerKind + ": "})
	for _, c := range log {
		components := []string{c.Trailers[promotion.TrailerComponent]}
		for _, p := range promotion.ParseMembers(c.Trailers[promotion.TrailerMembers]) {
			components = append(components, p.Component)
		}
		for _, component := range components {
			k := trailerKey{l, c.Trailers[promotion.TrailerPipeline], component, c.Trailers[promotion.TrailerEnvironment]}
			m.trailerCommits[k] = append(m.trailerCommits[k], c)
		}
	}
	return err
}

// trailerKey is what trailers name, on a line.
type trailerKey struct {
	branch                           *branchHead
	pipeline, component, environment string
}

// resolvePipeline resolves a pipeline and finds the commit since which it is in force.
func (m *planner) resolvePipeline(ctx context.Context, p *pipeline.Pipeline) (*resolvedPipeline, error) {
	if err := m.openBranches(ctx, p); err != nil {
		return nil, err
	}
	fl, err := m.input.Resolve(ctx, p, appset.ExternalRef{Tree: m.tracked.tree, Commit: m.input.Commit}, nil, false)
	if err != nil {
		return nil, err
	}
	r := &resolvedPipeline{pipeline: p, targetSet: fl, readers: map[*branchHead]*deps.Index{}, componentProblems: history.NewComponentProblems(fl.Problems, fl, p.File)}
	if r.baseline, err = history.Baseline(ctx, m.input.Git, p, m.input.Commit); err != nil {
		return nil, err
	}
	components := history.Components(fl, m.input.Branch)
	for _, name := range slices.Sorted(maps.Keys(components)) {
		r.units = append(r.units, &unit{pipeline: r, component: name, envs: components[name],
			contents: map[string]fieldedit.Release{}, composed: map[string][]fieldedit.Edit{}})
	}
	return r, nil
}

// gatherFacts collects the facts about every component of a pipeline.
func (m *planner) gatherFacts(ctx context.Context, r *resolvedPipeline) error {
	err := inParallel(ctx, len(r.units), func(i int) error { return m.readUnit(r.units[i]) })
	if err != nil {
		return err
	}
	places := map[*branchHead][]*location{}
	for _, u := range r.units {
		for i := range u.facts.Envs {
			if e := &u.facts.Envs[i]; e.Release.OK {
				l := m.branchOf(r.pipeline, e.Name)
				places[l] = append(places[l], &location{unit: u, branch: l, env: e.Name, overlay: u.envs[e.Name].Overlay(r.pipeline), now: e.Release.Value.ID, wantsPast: u.needsPast(e.Name)})
			}
		}
	}
	for l, here := range places {
		if err := m.findOrigins(ctx, l, r.baseline, here); err != nil {
			return err
		}
		s, err := m.newAncestry(ctx, l, r.baseline)
		if err != nil {
			return err
		}
		for _, p := range here {
			if err := m.recordLanded(ctx, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// inActMode is a pipeline as it would be with mode: act: what it would open is what
// is asked.
func inActMode(p *pipeline.Pipeline) *pipeline.Pipeline {
	out := *p
	out.Spec.Mode = pipeline.ModeAct
	return &out
}

// readUnit reads a component's releases and what restrains them.
func (m *planner) readUnit(u *unit) error {
	p := u.pipeline.pipeline
	u.facts = promotion.ComponentFacts{
		Now: m.input.Now, Unit: promotion.Unit{Pipeline: p.Name(), Component: u.component}, Pipeline: inActMode(p),
		Problems: u.pipeline.componentProblems.For(u.component), Tip: m.input.Commit,
		Limits: promotion.Limits{QueuedAhead: map[string]int{}},
	}
	u.facts.Holds = promotion.Sure[[]promotion.Hold](nil)
	if m.input.Holds != nil {
		holds, err := history.Holds(m.input.Holds, p.Name(), u.component)
		if err != nil {
			return err
		}
		u.facts.Holds = promotion.Sure(holds)
	}
	for _, spec := range p.TopologicalOrder() {
		l := m.branchOf(p, spec.Name)
		env := promotion.Env{Name: spec.Name, Branch: l.branch, Tip: l.commit, Spec: *spec, Compositions: map[string]promotion.Composition{}}
		switch at := u.envs[spec.Name]; {
		case at == nil:
			env.Release = promotion.Unsure[promotion.Release]("no ApplicationSet generates a target for this component here")
		case l.tree == nil:
			env.Release = promotion.Unsure[promotion.Release](missingBranchText(l.branch))
		default:
			m.readOverlay(u, &env, at, l)
		}
		u.facts.Envs = append(u.facts.Envs, env)
	}
	return nil
}

func (m *planner) readOverlay(u *unit, env *promotion.Env, at *history.Environment, l *branchHead) {
	for i := range at.Targets {
		t := &at.Targets[i]
		env.Targets = append(env.Targets, promotion.Target{Name: t.Name, Cluster: cmp.Or(t.Cluster, t.Server),
			Verdict: verification.Verdict{State: verification.Verified, Reason: "taken as healthy"}})
	}
	rel, err := fieldedit.Read(l.tree, at.Overlay(u.pipeline.pipeline))
	var mixed *fieldedit.MixedError
	switch {
	case errors.As(err, &mixed):
		env.Fields, env.FieldsReason = promotion.FieldsMixed, err.Error()
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case err != nil:
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case rel.Empty():
		env.Release = promotion.Unsure[promotion.Release](at.NothingCarried())
	default:
		id := rel.ID()
		u.contents[id] = rel
		env.Release = promotion.Sure(promotion.Release{ID: id, Name: rel.String()})
	}
	if !env.Source() {
		env.RevertedReleases = history.RevertedReleases(m.trailerCommits[trailerKey{l, u.pipeline.pipeline.Name(), u.component, env.Name}], u.facts.Unit, env.Name)
	}
}

// needsPast says whether what an environment carried earlier may still move: where
// several environments must agree on a release, or the newest was reverted
// further on.
func (u *unit) needsPast(name string) bool {
	for i := range u.facts.Envs {
		e := &u.facts.Envs[i]
		if len(e.RevertedReleases) > 0 {
			return true
		}
		if len(e.Spec.After) < 2 || !slices.Contains(e.Spec.After, name) {
			continue
		}
		first := ""
		for _, after := range e.Spec.After {
			id := u.findEnv(after).Release.Value.ID
			if first = cmp.Or(first, id); id != first {
				return true
			}
		}
	}
	return false
}

// findEnv finds an environment's facts; the pipeline has it.
func (u *unit) findEnv(name string) *promotion.Env {
	i := slices.IndexFunc(u.facts.Envs, func(e promotion.Env) bool { return e.Name == name })
	return &u.facts.Envs[i]
}

// recordLanded writes down where a place's release came from, and its past.
func (m *planner) recordLanded(ctx context.Context, p *location, s *baselineAncestry) error {
	l, err := m.describeLanded(ctx, p, s)
	if err != nil {
		return err
	}
	e := p.unit.findEnv(p.env)
	e.Landed = promotion.Sure(l)
	now := promotion.Arrival{Seq: p.seq, Release: p.now, Name: e.Release.Value.Name, Commit: l.Commit, By: l.By, At: l.At, VerifiedAt: l.At}
	if now.VerifiedAt.IsZero() {
		now.VerifiedAt = m.input.Now
	}
	past, err := m.pastArrivals(ctx, p)
	e.History = append([]promotion.Arrival{now}, past...)
	return err
}

// inParallel calls do for 0…n-1 and returns the first error that it met.
func inParallel(ctx context.Context, n int, do func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			for i := k; i < n && errs[k] == nil; i += workers {
				if errs[k] = ctx.Err(); errs[k] == nil {
					errs[k] = do(i)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
