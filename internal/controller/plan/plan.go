package plan

import (
	"context"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// Input is what a plan is made from.
type Input struct {
	Mirror       *git.Mirror // whose branches are as the server would see them
	Branch       string      // the tracked one
	URLs         []string    // by which manifests may name the repository
	OnlyPipeline string      // this pipeline alone is planned; "" is all
	// KnownInputs is what targets depend on besides Git.
	KnownInputs func(in *appset.Input)
	Now         time.Time
	// Rendered asks what the promotions do to the rendered manifests.
	Rendered bool
	// External gives what targets are made of besides the repository; nil: nothing.
	External render.OpenExternal
}

// planner makes one plan.
type planner struct {
	input    Input
	gatherer *facts.Gatherer
	snapshot *branch.Snapshot
	order    map[string]int64 // of commits: newer ones have larger numbers
}

// New is an empty plan; subject names the checkout's commit or tree for people.
func New(subject, commit string) *Plan {
	return &Plan{Subject: subject, Commit: commit, Assumptions: assumptions, Pipelines: []Pipeline{}, Problems: []appset.Problem{},
		Notes: []appset.Problem{}}
}

// Fill plans the pipelines. The plan says what is wrong with the files; the error is for a
// repository that can't be read and a context that ended.
func (p *Plan) Fill(ctx context.Context, in Input) (err error) {
	m, err := newPlanner(ctx, in)
	if err != nil {
		return err
	}
	for _, of := range m.snapshot.Pipelines {
		p.Problems = append(p.Problems, of.TargetSet.Problems...)
		p.Notes = append(p.Notes, of.TargetSet.Notes...)
		if in.OnlyPipeline != "" && of.Name() != in.OnlyPipeline {
			continue
		}
		part, err := m.planPipeline(ctx, of)
		if err != nil {
			return err
		}
		p.Pipelines = append(p.Pipelines, part)
		p.Problems = append(p.Problems, m.unmatchedCarry(of)...)
		p.Notes = append(p.Notes, appset.UnreachedTargets(of.Pipeline, of.TargetSet.Targets, in.Branch)...)
		p.Notes = append(p.Notes, history.MissingFolders(of.TargetSet.Targets, in.Branch, m.branchFiles)...)
	}
	return nil
}

// newPlanner takes a snapshot of a repository, and finds where its releases came from.
func newPlanner(ctx context.Context, in Input) (*planner, error) {
	m, err := openSnapshot(ctx, in)
	if err != nil {
		return nil, err
	}
	m.order, err = m.gatherer.History.FindOrigins(ctx, m.snapshot)
	return m, err
}

// openSnapshot makes a planner that has resolved all pipelines, and knows of no release yet where it came from.
func openSnapshot(ctx context.Context, in Input) (*planner, error) {
	repo := &branch.Repository{ID: "checkout", Forge: noPulls{}, Branch: in.Branch, Mirror: in.Mirror, URLs: in.URLs}
	var externals *branch.ExternalFiles
	if in.External != nil {
		externals = branch.GivenExternalFiles(in.External)
	}
	m := &planner{input: in, gatherer: facts.New(facts.Options{
		Store: newStore{}, Resolver: appset.New(appset.Options{}), Repos: []*branch.Repository{repo}, KnownInputs: in.KnownInputs,
		Externals: externals,
		Now:       func() time.Time { return in.Now }, MaxAge: time.Hour,
	})}
	var err error
	m.snapshot, err = m.gatherer.Targets.Snapshot(ctx, repo)
	return m, err
}

// branchFiles are the files at a branch's head; nil where that isn't there.
func (pl *planner) branchFiles(branch string) fs.FS {
	commit := pl.snapshot.BranchTips[branch]
	if branch == pl.input.Branch {
		commit = pl.snapshot.Commit
	}
	if commit == "" {
		return nil
	}
	return pl.input.Mirror.Tree(commit)
}

// unmatchedCarry says which carry entries of a pipeline pick nothing.
func (pl *planner) unmatchedCarry(of *branch.ResolvedPipeline) []appset.Problem {
	components := map[string]map[string]*history.Environment{}
	for name, u := range of.Units {
		components[name] = u.Envs
	}
	return history.UnmatchedCarry(of.Pipeline, components, func(environment string) fs.FS {
		commit := pl.snapshot.BranchFor(of.Pipeline, environment).Commit
		if commit == "" {
			return nil
		}
		return pl.input.Mirror.Tree(commit)
	})
}

// unit is what is evaluated as one: a component, or all of a pipeline's.
type unit struct {
	*facts.Evaluation
	decision *promotion.Decision
}

// opens are the pull requests that would be opened into an environment.
func (u *unit) opens(env string) []promotion.Open {
	var out []promotion.Open
	for _, a := range u.decision.Actions {
		if open, ok := a.(promotion.Open); ok && open.Environment == env {
			out = append(out, open)
		}
	}
	return out
}

// planPipeline has the controller evaluate every component of a pipeline, and
// reads off what it would open and why it leaves the rest.
func (pl *planner) planPipeline(ctx context.Context, p *branch.ResolvedPipeline) (Pipeline, error) {
	out := Pipeline{Name: p.Name(), DryRun: p.Spec.Mode == pipeline.ModeDryRun, Promotions: []Promotion{}, Waiting: []Waiting{}}
	units, err := pl.decideAll(ctx, p)
	if err != nil {
		return out, err
	}
	for _, spec := range p.TopologicalOrder() {
		moves := map[string]bool{}
		for _, u := range units {
			for _, open := range u.opens(spec.Name) {
				for _, member := range open.Members {
					moves[member.Component] = true
				}
				shown, err := pl.describePromotion(ctx, u, open)
				if err != nil {
					return out, err
				}
				out.Promotions = append(out.Promotions, shown)
			}
		}
		for _, u := range units {
			for i, c := range u.Components {
				st := u.decision.Components[i].Env(spec.Name)
				if name := c.Facts.Unit.Component; !moves[name] && (!spec.IsSource() || st.State == promotion.Mixed ||
					st.State == promotion.Unreadable) {
					out.Waiting = append(out.Waiting, explainWaiting(name, st))
				}
			}
		}
	}
	return out, nil
}

// decideAll gathers the facts about what is evaluated as one, sorted by name, and
// has the controller decide.
func (pl *planner) decideAll(ctx context.Context, p *branch.ResolvedPipeline) ([]*unit, error) {
	names := slices.Sorted(maps.Keys(p.Units))
	if p.Spec.BatchesByEnvironment() {
		names = names[:min(len(names), 1)] // any stands for all
	}
	units := make([]*unit, len(names))
	for i, name := range names {
		ev, err := pl.gatherer.Gather(ctx, pl.snapshot, p.Units[name].Unit, false)
		if err != nil {
			return nil, err
		}
		units[i] = &unit{Evaluation: ev}
		for _, c := range ev.Components {
			if err := pl.assume(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	if limit := p.Spec.Limits.OpenPerEnvironment; limit > 0 && !p.Spec.BatchesByEnvironment() {
		if err := pl.queueContenders(ctx, p, units, limit); err != nil {
			return nil, err
		}
	}
	for _, u := range units {
		var err error
		if u.decision, err = pl.gatherer.Decide(ctx, u.Evaluation); err != nil {
			return nil, err
		}
	}
	return units, nil
}

// contender is a release that would come into an environment if there is a place.
type contender struct {
	unit  *unit
	since time.Time
}

// queueContenders gives the places in each environment to those that have waited
// longest, and counts for each component those before it.
func (pl *planner) queueContenders(ctx context.Context, p *branch.ResolvedPipeline, units []*unit, limit int) (err error) {
	contenders := map[string][]contender{}
	for _, u := range units {
		d := promotion.Decide(u.Facts()).Components[0]
		for _, a := range d.Actions {
			if l, ok := a.(promotion.FactRequest); ok && l.What == promotion.RequestComposition {
				contenders[l.Environment] = append(contenders[l.Environment], contender{u, d.Env(l.Environment).ReadySince})
			}
		}
	}
	for _, list := range contenders {
		slices.SortStableFunc(list, func(a, b contender) int { return a.since.Compare(b.since) })
	}
	if err := pl.composeAhead(ctx, contenders, limit); err != nil {
		return err
	}
	for _, spec := range p.TopologicalOrder() {
		list, ahead := contenders[spec.Name], 0
		for _, c := range list {
			c.unit.Components[0].Facts.Limits.QueuedAhead[spec.Name] = ahead
			if ahead < limit {
				if c.unit.decision, err = pl.gatherer.Decide(ctx, c.unit.Evaluation); err != nil {
					return err
				}
			}
			if ahead >= limit || len(c.unit.opens(spec.Name)) > 0 {
				ahead++
			}
		}
	}
	return nil
}

// composeAhead composes side by side what the contenders for the places in each
// environment would bring; one after the other they then find it composed.
func (pl *planner) composeAhead(ctx context.Context, contenders map[string][]contender, limit int) error {
	first := map[*unit]bool{}
	for _, list := range contenders {
		for _, c := range list[:min(limit, len(list))] {
			first[c.unit] = true
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for u := range first {
		group.Go(func() error {
			_, err := pl.gatherer.Decide(ctx, u.Evaluation)
			return err
		})
	}
	return group.Wait()
}

// explainWaiting says why nothing opens.
func explainWaiting(component string, st *promotion.EnvState) Waiting {
	w := Waiting{Component: component, Environment: st.Environment, State: st.State, Why: st.Why}
	if st.Release != "" {
		w.Release = &promotion.Release{ID: st.Release, Name: st.Name}
	}
	if st.Candidate != "" {
		w.Candidate = &promotion.Release{ID: st.Candidate, Name: st.CandidateName}
	}
	switch {
	case len(w.Why) > 0:
	case st.State == promotion.Mixed, st.State == promotion.Unreadable, st.State == promotion.NotHere:
		w.Why = []promotion.Reason{{Code: cause.Code(st.State), Text: st.Reason}}
	default:
		w.Why = []promotion.Reason{{Code: cause.UpToDate, Text: "nothing newer may come: it carries what is before it"}}
	}
	return w
}
