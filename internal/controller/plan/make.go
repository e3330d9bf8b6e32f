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

// maker makes one plan.
type maker struct {
	in       Input
	main     *line            // the tracked branch
	lines    map[string]*line // environments' own branches, by name
	rules    []*rules
	renderer *isolation.Renderer
	ours     map[trail][]git.CommitInfo // commits with trailers, newest first
}

// rules is one pipeline at the commit.
type rules struct {
	p        *pipeline.Pipeline
	fleet    *appset.Fleet
	whole    *appset.Fleet // with Applications; nil: not asked for yet
	baseline string
	troubles history.Troubles
	units    []*unit               // by component
	readers  map[*line]*deps.Index // what its targets read of a line; made when it is first asked for
}

// unit is one component.
type unit struct {
	rules     *rules
	component string
	envs      map[string]*history.Environment
	facts     promotion.Facts
	contents  map[string]fieldedit.Release // by identity
	composed  map[string][]fieldedit.Edit  // by environment and release
}

// Make makes a plan. What is wrong with the files is in it; the error is for a
// repository that can't be read and a context that ended.
func Make(ctx context.Context, in Input) (*Plan, error) {
	m := &maker{in: in, main: &line{branch: in.Branch, commit: in.Commit, tree: &commitTree{Tree: in.Git.Tree(in.Commit)}}, lines: map[string]*line{}, renderer: isolation.New(maxRendered), ours: map[trail][]git.CommitInfo{}}
	out := &Plan{Looked: in.Looked, Commit: in.Commit, Assumed: assumed, Pipelines: []Pipeline{}, Problems: []appset.Problem{}, Notes: []appset.Problem{}}
	for _, p := range in.Pipelines {
		r, err := m.open(ctx, p)
		if err != nil {
			return nil, err
		}
		m.rules = append(m.rules, r)
		out.Problems = append(out.Problems, r.fleet.Problems...)
		out.Notes = append(out.Notes, r.fleet.Notes...)
	}
	for _, l := range append(slices.Collect(maps.Values(m.lines)), m.main) {
		if err := m.findOurs(ctx, l); err != nil {
			return nil, err
		}
	}
	for _, r := range m.rules {
		if in.Only != "" && r.p.Name() != in.Only {
			continue
		}
		if err := m.gather(ctx, r); err != nil {
			return nil, err
		}
		part, err := m.judge(ctx, r)
		if err != nil {
			return nil, err
		}
		out.Pipelines = append(out.Pipelines, part)
	}
	return out, nil
}

// findOurs finds the commits with trailers on a line. A squash or a rebase has them on
// the branch's own line, a merge on the merged one.
func (m *maker) findOurs(ctx context.Context, l *line) error {
	if l.tree == nil {
		return nil
	}
	log, err := m.in.Git.Log(ctx, git.LogQuery{From: l.commit, Grep: promotion.TrailerKind + ": "})
	for _, c := range log {
		components := []string{c.Trailers[promotion.TrailerComponent]}
		for _, p := range promotion.ParseMembers(c.Trailers[promotion.TrailerMembers]) {
			components = append(components, p.Component)
		}
		for _, component := range components {
			k := trail{l, c.Trailers[promotion.TrailerPipeline], component, c.Trailers[promotion.TrailerEnvironment]}
			m.ours[k] = append(m.ours[k], c)
		}
	}
	return err
}

// trail is what trailers name, on a line.
type trail struct {
	line                             *line
	pipeline, component, environment string
}

// open resolves a pipeline and finds the commit since which it is in force.
func (m *maker) open(ctx context.Context, p *pipeline.Pipeline) (*rules, error) {
	if err := m.openLines(ctx, p); err != nil {
		return nil, err
	}
	fl, err := m.in.Resolve(ctx, p, appset.Elsewhere{Tree: m.main.tree, Commit: m.in.Commit}, nil, false)
	if err != nil {
		return nil, err
	}
	r := &rules{p: p, fleet: fl, readers: map[*line]*deps.Index{}, troubles: history.TroublesOf(fl.Problems, fl, p.File)}
	if r.baseline, err = history.Baseline(ctx, m.in.Git, p, m.in.Commit); err != nil {
		return nil, err
	}
	components := history.Components(fl, m.in.Branch)
	for _, name := range slices.Sorted(maps.Keys(components)) {
		r.units = append(r.units, &unit{rules: r, component: name, envs: components[name],
			contents: map[string]fieldedit.Release{}, composed: map[string][]fieldedit.Edit{}})
	}
	return r, nil
}

// gather collects the facts about every component of a pipeline.
func (m *maker) gather(ctx context.Context, r *rules) error {
	err := inParallel(ctx, len(r.units), func(i int) error { return m.read(r.units[i]) })
	if err != nil {
		return err
	}
	places := map[*line][]*place{}
	for _, u := range r.units {
		for i := range u.facts.Envs {
			if e := &u.facts.Envs[i]; e.Release.OK {
				l := m.line(r.p, e.Name)
				places[l] = append(places[l], &place{unit: u, line: l, env: e.Name, over: u.envs[e.Name].Overlay(r.p), now: e.Release.Value.ID, past: u.wantsPast(e.Name)})
			}
		}
	}
	for l, here := range places {
		if err := m.walk(ctx, l, r.baseline, here); err != nil {
			return err
		}
		s, err := m.since(ctx, l, r.baseline)
		if err != nil {
			return err
		}
		for _, p := range here {
			if err := m.tell(ctx, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// acting is a pipeline as it would be with mode: act: what it would open is what
// is asked.
func acting(p *pipeline.Pipeline) *pipeline.Pipeline {
	out := *p
	out.Spec.Mode = pipeline.ModeAct
	return &out
}

// read reads a component's releases and what restrains them.
func (m *maker) read(u *unit) error {
	p := u.rules.p
	u.facts = promotion.Facts{
		Now: m.in.Now, Unit: promotion.Unit{Pipeline: p.Name(), Component: u.component}, Pipeline: acting(p),
		Problems: u.rules.troubles.Of(u.component), Tip: m.in.Commit,
		Limits: promotion.Limits{QueuedAhead: map[string]int{}},
	}
	if m.in.Holds != nil {
		var err error
		if u.facts.Holds, err = history.Holds(m.in.Holds, p.Name(), u.component); err != nil {
			return err
		}
	}
	for _, spec := range p.TopologicalOrder() {
		l := m.line(p, spec.Name)
		env := promotion.Env{Name: spec.Name, Branch: l.branch, Tip: l.commit, Spec: *spec, Compositions: map[string]promotion.Composition{}}
		switch at := u.envs[spec.Name]; {
		case at == nil:
			env.Release = promotion.Unsure[promotion.Release]("no ApplicationSet generates a target for this component here")
		case l.tree == nil:
			env.Release = promotion.Unsure[promotion.Release](missing(l.branch))
		default:
			m.readOverlay(u, &env, at, l)
		}
		u.facts.Envs = append(u.facts.Envs, env)
	}
	return nil
}

func (m *maker) readOverlay(u *unit, env *promotion.Env, at *history.Environment, l *line) {
	for i := range at.Targets {
		t := &at.Targets[i]
		env.Targets = append(env.Targets, promotion.Target{Name: t.Name, Cluster: cmp.Or(t.Cluster, t.Server),
			Verdict: verification.Verdict{State: verification.Verified, Reason: "taken as healthy"}})
	}
	rel, err := fieldedit.Read(l.tree, at.Overlay(u.rules.p))
	var mixed *fieldedit.MixedError
	switch {
	case errors.As(err, &mixed):
		env.Mixed = err.Error()
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
		env.RevertedReleases = history.Reverted(m.ours[trail{l, u.rules.p.Name(), u.component, env.Name}], u.facts.Unit, env.Name)
	}
}

// wantsPast says whether what an environment carried earlier may still move: where
// several environments must agree on a release, or the newest was reverted
// further on.
func (u *unit) wantsPast(name string) bool {
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
			id := u.env(after).Release.Value.ID
			if first = cmp.Or(first, id); id != first {
				return true
			}
		}
	}
	return false
}

// env finds an environment's facts; the pipeline has it.
func (u *unit) env(name string) *promotion.Env {
	i := slices.IndexFunc(u.facts.Envs, func(e promotion.Env) bool { return e.Name == name })
	return &u.facts.Envs[i]
}

// tell writes down where a place's release came from, and its past.
func (m *maker) tell(ctx context.Context, p *place, s *since) error {
	l, err := m.landed(ctx, p, s)
	if err != nil {
		return err
	}
	e := p.unit.env(p.env)
	e.Landed = promotion.Sure(l)
	now := promotion.Arrival{Seq: p.seq, Release: p.now, Name: e.Release.Value.Name, Commit: l.Commit, By: l.By, At: l.At, VerifiedAt: l.At}
	if now.VerifiedAt.IsZero() {
		now.VerifiedAt = m.in.Now
	}
	past, err := m.past(ctx, p)
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
