package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Line is a branch and its commit that is judged.
type Line struct {
	Branch string
	Commit string // empty: there is no such branch
}

// Line is what an environment of a pipeline is read from and merged into: its
// own branch, or the tracked one where it has none.
func (s *Snapshot) Line(p *pipeline.Pipeline, environment string) Line {
	branch := p.BranchOf(environment)
	if branch == "" || branch == s.Repo.Branch {
		return Line{Branch: s.Repo.Branch, Commit: s.Commit}
	}
	return Line{Branch: branch, Commit: s.Tips[branch]}
}

// Lines are the tracked branch and all environments' own, by name: what a pull
// request may be judged against.
func (s *Snapshot) Lines() []Line {
	out := []Line{{Branch: s.Repo.Branch, Commit: s.Commit}}
	for _, branch := range slices.Sorted(maps.Keys(s.Tips)) {
		out = append(out, Line{Branch: branch, Commit: s.Tips[branch]})
	}
	return out
}

// on is how a branch sees targets.
func (s *Snapshot) on(branch string, targets []appset.Target) []appset.Target {
	if len(s.Tips) == 0 {
		return targets // there is only one
	}
	out := make([]appset.Target, len(targets))
	for i := range targets {
		out[i] = appset.On(targets[i], branch, s.Repo.Branch)
	}
	return out
}

// besides is what an edit on a line may depend on besides the line: what the
// other branches are at, the one with the rules among them. Empty where there
// is only one branch.
func (s *Snapshot) besides(l Line) []Line {
	if len(s.Tips) == 0 {
		return nil
	}
	return slices.DeleteFunc(s.Lines(), func(o Line) bool { return o.Branch == l.Branch })
}

// inputOn is what a pipeline's targets depend on while one branch is at another
// commit than it is: the tracked branch, or one that generators may read.
func (s *surroundings) inputOn(ctx context.Context, p *pipeline.Pipeline, at *Snapshot, l Line) (appset.Input, error) {
	if l.Branch == s.repo.Branch {
		return s.input(ctx, p, l.Commit)
	}
	in, err := s.input(ctx, p, at.Commit)
	in.Branches = map[string]appset.Elsewhere{l.Branch: {Tree: s.repo.Mirror.Tree(l.Commit), Commit: l.Commit}}
	return in, err
}

// tipsOf are the heads of the branches that pipelines' environments live on,
// but the tracked one's; empty for a branch that isn't there.
func tipsOf[P interface{ EnvironmentBranches() []string }](ctx context.Context, r *Repository, pipes []P) (map[string]string, error) {
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

// branchesMoved is the snapshot after environments' branches have moved that no
// generator reads: nothing needs to be resolved again.
func (o *Observer) branchesMoved(ctx context.Context, s *Snapshot, tips map[string]string) (*Snapshot, error) {
	next := *s
	next.Tips = tips
	next.Pipelines = make([]*PipelineAt, len(s.Pipelines))
	for i, p := range s.Pipelines {
		at := *p
		next.Pipelines[i] = &at
		if err := o.readAhead(ctx, &next, &at, s); err != nil {
			return nil, err
		}
	}
	next.index(s)
	return &next, nil
}

// index gives every pipeline an index for each of the branches; one that was
// made for the snapshot before is kept, or brought up to date when it is needed.
func (s *Snapshot) index(last *Snapshot) {
	lines := s.Lines()
	for _, p := range s.Pipelines {
		var before map[string]*lazyIndex
		if last != nil && last.Pipeline(p.Name()) != nil {
			before = last.Pipeline(p.Name()).indexes
		}
		p.indexes = make(map[string]*lazyIndex, len(lines))
		for _, l := range lines {
			if p.indexes[l.Branch] = before[l.Branch]; !before[l.Branch].is(l.Commit, p.Fleet.Targets) {
				p.indexes[l.Branch] = newIndex(s.Repo, l.Branch, l.Commit, p.Fleet.Targets, before[l.Branch])
			}
		}
	}
}

// missing says what is wrong with an environment whose branch isn't there.
func missing(r *Repository, branch string) string {
	return fmt.Sprintf("%s has no branch %s, which the pipeline says this environment lives on: create it (git push origin %s:refs/heads/%s starts it as %s is) or correct the environment's branch",
		r.ID, branch, r.Branch, branch, r.Branch)
}
