package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// BranchHead is a branch and its commit that is judged.
type BranchHead struct {
	Branch string
	Commit string // empty: there is no such branch
}

// BranchFor is what an environment of a pipeline is read from and merged into: its
// own branch, or the tracked one where it has none.
func (s *Snapshot) BranchFor(p *pipeline.Pipeline, environment string) BranchHead {
	branch := p.BranchOf(environment)
	if branch == "" || branch == s.Repo.Branch {
		return BranchHead{Branch: s.Repo.Branch, Commit: s.Commit}
	}
	return BranchHead{Branch: branch, Commit: s.BranchTips[branch]}
}

// BranchHeads are the tracked branch and all environments' own, by name: what a pull
// request may be judged against.
func (s *Snapshot) BranchHeads() []BranchHead {
	out := []BranchHead{{Branch: s.Repo.Branch, Commit: s.Commit}}
	for _, branch := range slices.Sorted(maps.Keys(s.BranchTips)) {
		out = append(out, BranchHead{Branch: branch, Commit: s.BranchTips[branch]})
	}
	return out
}

// targetsOn is how a branch sees targets.
func (s *Snapshot) targetsOn(branch string, targets []appset.Target) []appset.Target {
	if len(s.BranchTips) == 0 {
		return targets // there is only one
	}
	out := make([]appset.Target, len(targets))
	for i := range targets {
		out[i] = appset.ViewFromBranch(targets[i], branch, s.Repo.Branch)
	}
	return out
}

// otherBranches is what an edit on a line may depend on besides the line: what the
// other branches are at, the one with the rules among them. Empty where there
// is only one branch.
func (s *Snapshot) otherBranches(l BranchHead) []BranchHead {
	if len(s.BranchTips) == 0 {
		return nil
	}
	return slices.DeleteFunc(s.BranchHeads(), func(o BranchHead) bool { return o.Branch == l.Branch })
}

// inputWithBranch is what a pipeline's targets depend on while one branch is at another
// commit than it is: the tracked branch, or one that generators may read.
func (s *inputCollector) inputWithBranch(ctx context.Context, p *pipeline.Pipeline, at *Snapshot, l BranchHead) (appset.Input, error) {
	if l.Branch == s.repo.Branch {
		return s.collectInput(ctx, p, l.Commit)
	}
	in, err := s.collectInput(ctx, p, at.Commit)
	in.Branches = map[string]appset.ExternalRef{l.Branch: {Tree: s.repo.Mirror.Tree(l.Commit), Commit: l.Commit}}
	return in, err
}

// readBranchTips are the heads of the branches that pipelines' environments live on,
// but the tracked one's; empty for a branch that isn't there.
func readBranchTips[P interface{ EnvironmentBranches() []string }](ctx context.Context, r *Repository, pipes []P) (map[string]string, error) {
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
func (o *targetGatherer) withNewTips(ctx context.Context, s *Snapshot, tips map[string]string) (*Snapshot, error) {
	next := *s
	next.BranchTips = tips
	next.Pipelines = make([]*ResolvedPipeline, len(s.Pipelines))
	for i, p := range s.Pipelines {
		at := *p
		next.Pipelines[i] = &at
		if err := o.releases.readAhead(ctx, &next, &at, s); err != nil {
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
		var before map[string]*lazyIndex
		if last != nil && last.Pipeline(p.Name()) != nil {
			before = last.Pipeline(p.Name()).readerIndexes
		}
		p.readerIndexes = make(map[string]*lazyIndex, len(lines))
		for _, l := range lines {
			if p.readerIndexes[l.Branch] = before[l.Branch]; !before[l.Branch].isFor(l.Commit, p.TargetSet.Targets) {
				p.readerIndexes[l.Branch] = newLazyIndex(s.Repo, l.Branch, l.Commit, p.TargetSet.Targets, before[l.Branch])
			}
		}
	}
}

// missingBranchText says what is wrong with an environment whose branch isn't there.
func missingBranchText(r *Repository, branch string) string {
	return fmt.Sprintf("%s has no branch %s, which the pipeline says this environment lives on: create it (git push origin %s:refs/heads/%s starts it as %s is) or correct the environment's branch",
		r.ID, branch, r.Branch, branch, r.Branch)
}
