package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// Evaluation is what was gathered about a unit, which is one component or all of
// a pipeline's that move by one pull request an environment, with what acting on it
// needs. It belongs to one run.
type Evaluation struct {
	Unit       promotion.Unit
	Snapshot   *Snapshot
	Pipeline   *ResolvedPipeline
	Now        time.Time
	Components []*ComponentEvaluation       // sorted by name
	OpenPulls  map[int]*OpenPull            // ours that move any of the components, by number
	fresh      bool                         // before a merge: what may be remembered for minutes is read again
	RetryAt    time.Time                    // when a fact that ran out of time is looked for again; zero: none did
	contents   map[string]fieldedit.Release // what releases carry, by identity
	rules      map[string]string            // rulesOf, by component

	metricCalls   int               // queries that servers were sent for this evaluation
	endpointCalls int               // requests that endpoints were sent for this evaluation
	branchHeads   map[string]string // of the unit's branches, as they were judged; empty: there was none
	holdsCommit   string            // of the branch that keeps holds; empty: there is none
	envs          []promotion.Env   // the pipeline's, without what differs by component
	pulls         pullIndex
	deployments   promotion.Deployments
	compositions  map[string]map[string]promotion.Composition // by environment and BatchID
	edits         map[editKey][]fieldedit.Edit                // of the compositions
	fieldOwners   map[fieldKey]string                         // the components that fields belong to, as far as they were composed
}

// ComponentEvaluation is what was gathered about one component of a unit.
type ComponentEvaluation struct {
	*Evaluation
	Facts promotion.ComponentFacts
	Unit  *ResolvedUnit

	Observations []store.Observation // verification memories that changed, to be written with the run
	Soaks        []store.Arrival     // arrivals whose soak went on, likewise
	Metrics      []MetricRecord      // what Prometheus servers answered, likewise
	Endpoints    []EndpointRecord    // what endpoints said, likewise
	Ungated      []UngatedMerge      // promotions that were merged by hand past their gates, likewise
	Merges       []store.Audit       // that were just seen and are not on record yet
	// by the repository's ID: what Argo CD reports and Git doesn't know yet, mostly revisions
	FetchRequests      map[string][]string
	UnreachableArgoCDs []string                     // the Argo CDs that can't be asked about targets of the component
	TargetLabels       map[string]map[string]string // of the targets' Applications as they were seen last, by the targets' ID
	restored           map[string][]fieldedit.Edit  // what reverts what landed, by environment
	children           map[string][]childTarget     // the Applications below the targets, by environment
	arrivalsVersion    int64                        // the store's of the history as it was read
	olderArrivals      bool                         // there may be arrivals that aren't in it
	past               []store.PastPull             // what closed pull requests did for it, as the store has it
	pastVersion        int64                        // the store's of that
}

// requestFetch asks for a repository to be fetched, once for what it is for.
func (c *ComponentEvaluation) requestFetch(r *Repository, because string) {
	if c.FetchRequests == nil {
		c.FetchRequests = map[string][]string{}
	}
	c.FetchRequests[r.ID] = append(c.FetchRequests[r.ID], because)
}

// editKey names a composition: of a component's release, or of what moves by one
// pull request for all.
type editKey struct{ environment, component, release string }

type fieldKey struct{ file, path string }

// ErrNoUnit says that the tracked branch has no such component any more.
var ErrNoUnit = errors.New("no such component on the tracked branch")

// maxRounds bounds how often one evaluation gathers another expensive fact.
const maxRounds = 8

// Evaluate gathers the facts of the unit that a component is evaluated with, and
// decides. With fresh, open pull requests are read from the forge even when nothing
// was heard of them: before a merge. ErrNoUnit: there is no such unit.
func (ga *Gatherer) Evaluate(ctx context.Context, s *Snapshot, u promotion.Unit, fresh bool) (*Evaluation, *promotion.Decision, error) {
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

// answerRequests gathers the expensive facts that a decision asks for; false when it
// asks for none. What moves together hangs on each component's own, so that is
// answered first.
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
		return fmt.Errorf("look at %s: %w", l.Environment, ErrNoUnit)
	}
	switch l.What {
	case promotion.RequestComposition:
		return ga.answerComposition(ctx, c, env, l)
	case promotion.RequestRestore:
		return ga.answerRestore(ctx, c, env)
	case promotion.RequestBlame:
		return ga.answerBlame(ctx, c, env)
	case promotion.RequestCulprits:
		return ga.answerCulprits(ctx, c, env, at)
	case promotion.RequestChangedObjects:
		return ga.answerChangedObjects(ctx, c, env)
	case promotion.RequestSyncRights:
		return ga.answerSyncRights(ctx, c, env, at)
	case promotion.RequestMergeability:
		return ga.answerMergeability(ctx, c, env)
	}
	return fmt.Errorf("unknown fact request %q", l.What)
}

// Gather gathers everything that needs no request about the unit that a component is
// evaluated with. ErrNoUnit: there is no such component, also where the others of its
// pipeline are one unit.
func (ga *Gatherer) Gather(ctx context.Context, s *Snapshot, u promotion.Unit, fresh bool) (*Evaluation, error) {
	p, unit := s.Unit(u)
	if unit == nil && !s.IsBatch(u) {
		return nil, fmt.Errorf("%s: %w", wake.UnitName(u), ErrNoUnit)
	}
	u = s.RunsAs(u)
	if err := ga.ensurePullsCached(ctx, s.Repo); err != nil {
		return nil, err
	}
	ev := ga.newEvaluation(s, p, u)
	ev.fresh = fresh
	head, own, err := ga.FindHolds(ctx, s.Repo)
	if err != nil {
		return nil, err
	}
	ev.holdsCommit = head
	known := make([]componentHistory, len(ev.Components))
	for i, c := range ev.Components {
		// Commands first: what a command was given about was written down before it,
		// so it is among what is read after it.
		if c.Facts.PendingCommands, err = ga.readPendingCommands(ctx, c.Facts.Unit); err != nil {
			return nil, err
		}
		if known[i], err = ga.readHistory(ctx, c); err != nil {
			return nil, err
		}
	}
	if ev.pulls, err = ga.readPulls(ctx, ev); err != nil {
		return nil, err
	}
	for i := range ev.envs {
		if err := ga.gatherEnv(ctx, ev, i, known, fresh); err != nil {
			return nil, err
		}
	}
	for _, c := range ev.Components {
		if err := ga.completeHistory(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := ga.completePastPulls(ctx, ev); err != nil {
		return nil, err
	}
	for _, c := range ev.Components {
		c.Facts.Holds = ga.holdsOf(s.Repo, c.Facts.Unit, head, own)
		if c.Facts.ClusterIncidents, err = ga.gatherIncidents(ctx, p, c); err != nil {
			return nil, err
		}
		if c.Facts.Limits, err = ga.gatherLimits(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := ga.gatherDeployments(ctx, ev); err != nil {
		return nil, err
	}
	return ev, ga.inspectLeftovers(ctx, ev)
}

// MovedBranches asks the remote itself which of the branches that a merge into an
// environment was judged on aren't where they were any more: the environment's own, the
// tracked one with the rules, and the one with the holds. What a fetch brought says
// nothing about the time since.
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
func (ga *Gatherer) newEvaluation(s *Snapshot, p *ResolvedPipeline, u promotion.Unit) *Evaluation {
	ev := &Evaluation{Unit: u, Snapshot: s, Pipeline: p, Now: ga.opts.Now(), OpenPulls: map[int]*OpenPull{},
		branchHeads: map[string]string{},
		contents:    map[string]fieldedit.Release{}, compositions: map[string]map[string]promotion.Composition{},
		edits: map[editKey][]fieldedit.Edit{}, fieldOwners: map[fieldKey]string{}}
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
		c := &ComponentEvaluation{Evaluation: ev, Unit: unit, restored: map[string][]fieldedit.Edit{}, children: map[string][]childTarget{},
			Facts: ev.newComponentFacts(unit.Unit)}
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

// IsBatch says that the unit is all components of its pipeline.
func (ev *Evaluation) IsBatch() bool { return ev.Snapshot.IsBatch(ev.Unit) }

// Component finds a component of the unit; nil and -1 when there is none.
func (ev *Evaluation) Component(name string) (*ComponentEvaluation, int) {
	i := slices.IndexFunc(ev.Components, func(c *ComponentEvaluation) bool { return c.Facts.Unit.Component == name })
	if i < 0 {
		return nil, -1
	}
	return ev.Components[i], i
}

// Env finds an environment of the component; nil when the pipeline has none.
func (c *ComponentEvaluation) Env(name string) *promotion.Env {
	for i := range c.Facts.Envs {
		if c.Facts.Envs[i].Name == name {
			return &c.Facts.Envs[i]
		}
	}
	return nil
}

// RememberRelease remembers what a release carries and gives its name to the facts.
func (ev *Evaluation) RememberRelease(rel fieldedit.Release) promotion.Release {
	id := rel.ID()
	ev.contents[id] = rel
	return promotion.Release{ID: id, Name: rel.String()}
}

// ReleaseName is what people call a release; empty when nobody knows what it consists of.
func (ev *Evaluation) ReleaseName(release string) string { return ev.contents[release].String() }

// scheduleRetry notes when something that ran out of time is looked for again.
func (ev *Evaluation) scheduleRetry(l retryState) {
	if l.tries != 0 {
		ev.RetryAt = Earliest(ev.RetryAt, l.retryAt)
	}
}

// Earliest is the earlier of two times, of which zero is none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// whyUnknown says that nobody knows any more what a release consists of: the store
// that knew is gone. An empty one in its place would take everything away.
func (ev *Evaluation) whyUnknown(release string) string {
	if _, ok := ev.contents[release]; ok {
		return ""
	}
	return fmt.Sprintf("what the release %s consists of is not known any more", wording.Short(release))
}

// envAt is an environment of any component of the pipeline; nil when there is none.
func (ev *Evaluation) envAt(env, component string) *ResolvedEnv {
	u := ev.Pipeline.Units[component]
	if u == nil {
		return nil
	}
	return u.Envs[env]
}

// overlaysOf is where components have their carried fields in an environment.
func (ev *Evaluation) overlaysOf(env string, members []promotion.Member) []fieldedit.Overlay {
	var out []fieldedit.Overlay
	for _, m := range members {
		if at := ev.envAt(env, m.Component); at != nil {
			out = append(out, at.Overlay(ev.Pipeline.Pipeline))
		}
	}
	return out
}

// FieldOwner is which of the members a carried field belongs to; "" when that can't
// be told.
func (ev *Evaluation) FieldOwner(env string, members []promotion.Member, file, path string) string {
	if owner := ev.fieldOwners[fieldKey{file, path}]; owner != "" {
		return owner
	}
	owner := ""
	for _, m := range members {
		at := ev.envAt(env, m.Component)
		if at == nil {
			continue
		}
		if scope, err := fieldedit.NewScope(at.Overlay(ev.Pipeline.Pipeline)); err == nil && scope.Covers(file) {
			if owner != "" {
				return ""
			}
			owner = m.Component
		}
	}
	return owner
}

// Environments are the pipeline's environments, topologically sorted, with nothing of a
// component's.
func (ev *Evaluation) Environments() []promotion.Env { return ev.envs }
