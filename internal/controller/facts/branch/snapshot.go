package branch

import (
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Snapshot is what one commit of the tracked branch says, and where the
// environments' own branches are.
type Snapshot struct {
	Repo           *Repository
	Commit         string
	PipelineErr    string            // why the pipeline files at Commit can't be used: file:line: message
	PipelineCommit string            // the commit whose pipeline files are in force; Commit unless Broken
	BranchTips     map[string]string // the heads of the environments' own branches; "": there is no such branch
	Pipelines      []*ResolvedPipeline
	NoPipelines    bool // there is no pipeline file

	// Generation changes when targets changed although the commit is the same: another
	// repository, a cluster or a live object did. It counts within one process.
	Generation uint64
	Inputs     ResolveInputs
}

// ResolvedPipeline is one pipeline with its targets.
type ResolvedPipeline struct {
	*pipeline.Pipeline
	TargetSet         *appset.TargetSet         // the targets in force, and what was wrong
	Problems          []string                  // why targets can't be resolved; the last good ones are in force meanwhile
	componentProblems history.ComponentProblems // the same, with whom it concerns
	Baseline          string                    // the commit that brought the pipeline, or the last of its carry entries
	Units             map[string]*ResolvedUnit
	ReaderIndexes     map[string]*LazyIndex // by branch
	Bases             pipelineBases
	locations         *locations
	Readings          map[*ResolvedEnv]Reading // of Units, at the commits of the snapshot; without what could not be read surely

	OverlaysKey func() string // what the components that a commit moves depend on besides it
}

// ResolvedUnit is one component of a pipeline.
type ResolvedUnit struct {
	Unit promotion.Unit
	Envs map[string]*ResolvedEnv
}

// ResolvedEnv is one environment of a component.
type ResolvedEnv = history.Environment

// Pipeline finds a pipeline by name; nil when there is none.
func (s *Snapshot) Pipeline(name string) *ResolvedPipeline {
	if i := slices.IndexFunc(s.Pipelines, func(p *ResolvedPipeline) bool { return p.Name() == name }); i >= 0 {
		return s.Pipelines[i]
	}
	return nil
}

// pipelineBefore is a pipeline as the snapshot before had it; an empty one where
// there was no snapshot or no such pipeline.
func (s *Snapshot) pipelineBefore(name string) *ResolvedPipeline {
	if s != nil {
		if p := s.Pipeline(name); p != nil {
			return p
		}
	}
	return &ResolvedPipeline{Pipeline: &pipeline.Pipeline{}}
}

// Unit finds a unit; both are nil when the snapshot doesn't have it.
func (s *Snapshot) Unit(u promotion.Unit) (*ResolvedPipeline, *ResolvedUnit) {
	p := s.Pipeline(u.Pipeline)
	if p == nil {
		return nil, nil
	}
	return p, p.Units[u.Component]
}

// RunsAs is the unit under whose key a unit is judged: itself, or, where the
// components of its pipeline are a batch, all of them as one.
func (s *Snapshot) RunsAs(u promotion.Unit) promotion.Unit {
	if p := s.Pipeline(u.Pipeline); p != nil && p.Spec.BatchesByEnvironment() {
		u.Component = promotion.BatchName
	}
	return u
}

// IsBatch says that a unit stands for all components of its pipeline.
func (s *Snapshot) IsBatch(u promotion.Unit) bool {
	p := s.Pipeline(u.Pipeline)
	return p != nil && p.Spec.BatchesByEnvironment() && u.Component == promotion.BatchName
}

// AllUnits lists the units of every pipeline.
func (s *Snapshot) AllUnits() []promotion.Unit {
	var out []promotion.Unit
	for _, p := range s.Pipelines {
		for _, u := range p.Units {
			out = append(out, u.Unit)
		}
	}
	return out
}

// WhyEmpty says why a pipeline has no component, which nothing else would show; "" where it has one.
func (r *ResolvedPipeline) WhyEmpty() string {
	switch {
	case len(r.Units) > 0:
		return ""
	case len(r.Problems) > 1:
		return fmt.Sprintf("it has no component: %s; and %d more problems, which `liftlock resolve` in a checkout names", r.Problems[0],
			len(r.Problems)-1)
	case len(r.Problems) > 0:
		return "it has no component: " + r.Problems[0]
	}
	return "it has no component: what it names generates no Application with an environment of its own; `liftlock resolve` in a checkout " +
		"says what is generated"
}

// ProblemsOf are the problems that concern a component.
func (r *ResolvedPipeline) ProblemsOf(component string) []string {
	return r.componentProblems.For(component)
}

// Head is a branch and its commit that is judged.
type Head struct {
	Branch string
	Commit string // empty: there is no such branch
}

// BranchFor is what an environment of a pipeline is read from and merged into: its
// own branch, or the tracked one where it has none.
func (s *Snapshot) BranchFor(p *pipeline.Pipeline, environment string) Head {
	branch := p.BranchOf(environment)
	if branch == "" || branch == s.Repo.Branch {
		return Head{Branch: s.Repo.Branch, Commit: s.Commit}
	}
	return Head{Branch: branch, Commit: s.BranchTips[branch]}
}

// BranchHeads are the tracked branch and all environments' own, by name: what a pull
// request may be judged against.
func (s *Snapshot) BranchHeads() []Head {
	out := []Head{{Branch: s.Repo.Branch, Commit: s.Commit}}
	for _, branch := range slices.Sorted(maps.Keys(s.BranchTips)) {
		out = append(out, Head{Branch: branch, Commit: s.BranchTips[branch]})
	}
	return out
}

// TargetsOn is how a branch sees targets.
func (s *Snapshot) TargetsOn(branch string, targets []appset.Target) []appset.Target {
	if len(s.BranchTips) == 0 {
		return targets // there is only one
	}
	out := make([]appset.Target, len(targets))
	for i := range targets {
		out[i] = appset.ViewFromBranch(targets[i], branch, s.Repo.Branch)
	}
	return out
}

// OtherBranches is what an edit on a line may depend on besides the line: what the
// other branches are at, the one with the rules among them. Empty where there
// is only one branch.
func (s *Snapshot) OtherBranches(l Head) []Head {
	if len(s.BranchTips) == 0 {
		return nil
	}
	return slices.DeleteFunc(s.BranchHeads(), func(o Head) bool { return o.Branch == l.Branch })
}

// OtherCommits are those of OtherBranches, by the branch; empty for one that isn't there.
func (s *Snapshot) OtherCommits(l Head) map[string]string {
	out := map[string]string{}
	for _, o := range s.OtherBranches(l) {
		out[o.Branch] = o.Commit
	}
	return out
}

// MissingBranchText says what is wrong with an environment whose branch isn't there.
func MissingBranchText(r *Repository, branch string) string {
	return fmt.Sprintf("%s has no branch %s, which the pipeline says this environment lives on: create it (git push origin "+
		"%s:refs/heads/%s starts it as %s is) or correct the environment's branch",
		r.ID, branch, r.Branch, branch, r.Branch)
}

// BaseOf finds the branch that a pull request is to be merged into among those
// that are judged: the tracked one and the environments' own.
func (s *Snapshot) BaseOf(pr *forge.PullRequest) (Head, bool) {
	for _, l := range s.BranchHeads() {
		if l.Branch == pr.Base && l.Commit != "" {
			return l, true
		}
	}
	return Head{}, false
}

// Scope is the input of the snapshot's own targets besides the repository. Nothing more is read for
// the author of a pull request, also where it is based on a commit whose ApplicationSets read more.
func (s *Snapshot) Scope(main string) *appset.Scope {
	var sets []*appset.TargetSet
	for _, p := range s.Pipelines {
		if p.TargetSet != nil {
			sets = append(sets, p.TargetSet)
		}
	}
	return appset.NewScope(main, sets...)
}
