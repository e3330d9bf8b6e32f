package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// Evaluation is what was gathered about a unit, with what acting on it needs. It belongs
// to one run.
type Evaluation struct {
	branch.Basis
	Components []*ComponentEvaluation // sorted by name
	OpenPulls  map[int]*OpenPull      // ours that move any of the components, by number
	rules      map[string]string      // rulesOf, by component

	metricCalls   int               // queries that servers were sent for this evaluation
	endpointCalls int               // requests that endpoints were sent for this evaluation
	branchHeads   map[string]string // of the unit's branches, as they were judged; empty: there was none
	holdsCommit   string            // of the branch that keeps holds; empty: there is none
	envs          []promotion.Env   // the pipeline's, without what differs by component
	pulls         pullIndex
	deployments   promotion.Deployments
	compositions  map[string]map[string]promotion.Composition // by environment and BatchID
	edits         map[editKey][]fieldedit.Edit                // of the compositions
}

// ComponentEvaluation is what was gathered about one component of a unit.
type ComponentEvaluation struct {
	branch.ComponentBasis
	Evaluation *Evaluation // of the unit as a whole

	Observations []store.Observation // verification memories that changed, to be written with the run
	Soaks        []store.Arrival     // arrivals whose soak went on, likewise
	Metrics      []MetricRecord      // what Prometheus servers answered, likewise
	Endpoints    []EndpointRecord    // what endpoints said, likewise
	Ungated      []UngatedMerge      // promotions that were merged by hand past their gates, likewise
	Merges       []store.Audit       // that were just seen and are not on record yet

	// by the repository's ID: what Argo CD reports and Git doesn't know yet, mostly revisions
	FetchRequests      map[string][]string
	UnreachableArgoCDs []string                      // the Argo CDs that can't be asked about targets of the component
	TargetLabels       map[string]map[string]string  // of the targets' Applications as they were seen last, by the targets' ID
	restored           map[string][]fieldedit.Edit   // what reverts what landed, by environment
	children           map[string][]live.ChildTarget // the Applications below the targets, by environment
	arrivalsVersion    int64                         // the store's of the history as it was read
	olderArrivals      bool                          // there may be arrivals that aren't in it
	past               []store.PastPull              // what closed pull requests did for it, as the store has it
	pastVersion        int64                         // the store's of that
}

// editKey names a composition: of a component's release, or of what moves by one
// pull request for all.
type editKey struct{ environment, component, release string }

// maxRounds bounds how often one evaluation gathers another expensive fact.
const maxRounds = 8

// Evaluate gathers the facts of the unit that a component is evaluated with, and
// decides. With fresh, open pull requests are read from the forge even when nothing
// was heard of them: before a merge. branch.ErrNoUnit: there is no such unit.
func (ga *Gatherer) Evaluate(ctx context.Context, s *branch.Snapshot, u promotion.Unit, fresh bool) (*Evaluation, *promotion.Decision,
	error) {
	ev, err := ga.Gather(ctx, s, u, fresh)
	if err != nil {
		return nil, nil, err
	}
	d, err := ga.Decide(ctx, ev)
	return ev, d, err
}

// Decide decides on what was gathered, answering fact requests until none is left.
func (ga *Gatherer) Decide(ctx context.Context, ev *Evaluation) (*promotion.Decision, error) {
	for range maxRounds {
		d := promotion.Decide(ev.Facts())
		answered, err := ga.answerRequests(ctx, ev, &d)
		if err != nil {
			return nil, err
		}
		if !answered {
			return &d, nil
		}
	}
	return nil, fmt.Errorf("evaluating %s asked for facts %d times without coming to an end", wake.UnitName(ev.Unit), maxRounds)
}

// Facts are what is decided on, as far as it was gathered.
func (ev *Evaluation) Facts() promotion.Facts {
	f := promotion.Facts{Compositions: ev.compositions, Deployments: ev.deployments}
	for _, c := range ev.Components {
		f.Components = append(f.Components, c.Facts)
	}
	return f
}

// answerRequests gathers the expensive facts that a decision asks for; false when it asks for none.
// Facts about joined components depend on each component's own, so these are answered first.
func (ga *Gatherer) answerRequests(ctx context.Context, ev *Evaluation, d *promotion.Decision) (answered bool, err error) {
	for i := range d.Components {
		for _, a := range d.Components[i].Actions {
			if l, ok := a.(promotion.FactRequest); ok {
				answered = true
				if err := ga.answerRequest(ctx, ev.Components[i], l); err != nil {
					return true, err
				}
			}
		}
	}
	if answered {
		return true, nil
	}
	for _, a := range d.Actions {
		if l, ok := a.(promotion.FactRequest); ok {
			answered = true
			if err := ga.answerBatchRequest(ctx, ev, l); err != nil {
				return true, err
			}
		}
	}
	return answered, nil
}

// answerRequest gathers an expensive fact about one component.
func (ga *Gatherer) answerRequest(ctx context.Context, c *ComponentEvaluation, l promotion.FactRequest) error {
	env, at := c.Env(l.Environment), c.Unit.Envs[l.Environment]
	if at == nil || env == nil {
		return fmt.Errorf("look at %s: %w", l.Environment, branch.ErrNoUnit)
	}
	switch l.What {
	case promotion.RequestComposition:
		return ga.answerComposition(ctx, c, env, l)
	case promotion.RequestRestore:
		return ga.answerRestore(ctx, c, env)
	case promotion.RequestBlame:
		return ga.answerBlame(ctx, c, env)
	case promotion.RequestCulprits:
		return ga.Live.AnswerCulprits(ctx, &c.ComponentBasis, env, at, c.children[env.Name])
	case promotion.RequestChangedObjects:
		return ga.answerChangedObjects(ctx, c, env)
	case promotion.RequestSyncRights:
		return ga.Live.AnswerSyncRights(ctx, env, at, c.children[env.Name])
	case promotion.RequestMergeability:
		return ga.answerMergeability(ctx, c, env)
	}
	return fmt.Errorf("unknown fact request %q", l.What)
}

// MovedBranches asks the remote itself which of the branches have moved on which a merge into an
// environment was judged. They are the environment's own, the tracked one with the rules, and the
// one with the holds. An earlier fetch says nothing about the time since.
func (ga *Gatherer) MovedBranches(ctx context.Context, ev *Evaluation, env string) ([]string, error) {
	r, line := ev.Snapshot.Repo, ev.Snapshot.BranchFor(ev.Pipeline.Pipeline, env)
	judged := map[string]string{r.Branch: ev.Snapshot.Commit, line.Branch: line.Commit, history.StateBranch: ev.holdsCommit}
	now, err := r.Mirror.RemoteHeads(ctx, slices.Sorted(maps.Keys(judged))...)
	if err != nil {
		return nil, err
	}
	var moved []string
	for _, branch := range slices.Sorted(maps.Keys(judged)) {
		if now[branch] != judged[branch] {
			moved = append(moved, branch)
		}
	}
	return moved, nil
}

// newEvaluation has of the facts only what a snapshot says of the pipeline's
// environments.
func (ga *Gatherer) newEvaluation(s *branch.Snapshot, p *branch.ResolvedPipeline, u promotion.Unit, fresh bool) *Evaluation {
	ev := &Evaluation{Basis: branch.NewBasis(s, p, u, ga.opts.Now(), fresh), OpenPulls: map[int]*OpenPull{},
		branchHeads: map[string]string{}, compositions: map[string]map[string]promotion.Composition{},
		edits: map[editKey][]fieldedit.Edit{}}
	for _, spec := range p.TopologicalOrder() {
		line := s.BranchFor(p.Pipeline, spec.Name)
		ev.envs = append(ev.envs, promotion.Env{Name: spec.Name, Branch: line.Branch, Tip: line.Commit, Spec: *spec, Gates: ga.Gates(spec),
			Floor: ga.opts.Floor(spec.Name, nil)})
	}
	components := []string{u.Component}
	if s.IsBatch(u) {
		components = slices.Sorted(maps.Keys(p.Units))
	}
	for _, component := range components {
		unit := p.Units[component]
		c := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Basis: &ev.Basis, Unit: unit,
			Facts: ev.newComponentFacts(unit.Unit)},
			Evaluation: ev, restored: map[string][]fieldedit.Edit{}, children: map[string][]live.ChildTarget{}}
		c.Facts.Problems = p.ProblemsOf(component)
		for i := range c.Facts.Envs {
			c.Facts.Envs[i].Compositions = map[string]promotion.Composition{}
		}
		ev.Components = append(ev.Components, c)
	}
	return ev
}

func (ev *Evaluation) newComponentFacts(u promotion.Unit) promotion.ComponentFacts {
	return promotion.ComponentFacts{Now: ev.Now, Unit: u, Pipeline: ev.Pipeline.Pipeline, PipelineErr: ev.Snapshot.PipelineErr,
		Tip: ev.Snapshot.Commit, Envs: slices.Clone(ev.envs)}
}

// Component finds a component of the unit; nil and -1 when there is none.
func (ev *Evaluation) Component(name string) (*ComponentEvaluation, int) {
	i := slices.IndexFunc(ev.Components, func(c *ComponentEvaluation) bool { return c.Facts.Unit.Component == name })
	if i < 0 {
		return nil, -1
	}
	return ev.Components[i], i
}

// addJudged takes in what is known of an environment's targets.
func (c *ComponentEvaluation) addJudged(env *promotion.Env, j live.Judged) {
	env.Targets, c.children[env.Name] = j.Targets, j.Children
	c.Observations = append(c.Observations, j.Observations...)
	for _, name := range j.UnreachableArgoCDs {
		if !slices.Contains(c.UnreachableArgoCDs, name) {
			c.UnreachableArgoCDs = append(c.UnreachableArgoCDs, name)
		}
	}
	if c.TargetLabels == nil && len(j.Labels) > 0 {
		c.TargetLabels = map[string]map[string]string{}
	}
	maps.Copy(c.TargetLabels, j.Labels)
	for repo, because := range j.FetchRequests {
		c.requestFetch(repo, because...)
	}
	c.ScheduleRetry(j.RetryAt)
}

// requestFetch asks for a repository to be fetched, once for each that it is for.
func (c *ComponentEvaluation) requestFetch(repo string, because ...string) {
	if c.FetchRequests == nil {
		c.FetchRequests = map[string][]string{}
	}
	c.FetchRequests[repo] = append(c.FetchRequests[repo], because...)
}

// ChildTargets are the Applications below an environment's targets.
func (c *ComponentEvaluation) ChildTargets(env string) []appset.Target {
	return live.TargetsOf(c.children[env])
}

// childTargets are the Applications below all targets of the unit.
func (ev *Evaluation) childTargets() []appset.Target {
	var out []appset.Target
	for _, c := range ev.Components {
		for env := range c.children {
			out = append(out, c.ChildTargets(env)...)
		}
	}
	return out
}

// FindTarget finds a target, or an Application below one, by what decisions call it; nil
// when there is none any more.
func (ga *Gatherer) FindTarget(c *ComponentEvaluation, env, label string) *appset.Target {
	return live.FindTarget(ga.ArgoCDs, c.Unit.Envs[env], c.children[env], label)
}

// Environments are the pipeline's environments, topologically sorted, with nothing of a
// component's.
func (ev *Evaluation) Environments() []promotion.Env { return ev.envs }
