package facts

import (
	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
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
	inputs     resolveInputs
}

// ResolvedPipeline is one pipeline with its targets.
type ResolvedPipeline struct {
	*pipeline.Pipeline
	TargetSet         *appset.TargetSet         // the targets in force, and what was wrong
	Problems          []string                  // why targets can't be resolved; the last good ones are in force meanwhile
	componentProblems history.ComponentProblems // the same, with whom it concerns
	Baseline          string                    // the commit that brought the pipeline, or the last of its carry entries
	Units             map[string]*ResolvedUnit
	readerIndexes     map[string]*lazyIndex // by branch
	locations         *locations
	readings          map[*ResolvedEnv]reading // of Units, at the commits of the snapshot; without what could not be read surely

	overlaysKey func() string // what the components that a commit moves depend on besides it
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
	for _, p := range s.Pipelines {
		if p.Name() == name {
			return p
		}
	}
	return nil
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
// components of its pipeline travel together, all of them as one.
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
