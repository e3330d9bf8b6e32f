package plan

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// branchHead is a branch that environments live on, at its commit.
type branchHead struct {
	branch string
	tree   *commitTree // nil: there is no such branch
	commit string      // "" likewise
}

// branchOf is where an environment lives: on the tracked branch, or on its own.
func (m *planner) branchOf(p *pipeline.Pipeline, env string) *branchHead {
	if l := m.branches[p.BranchOf(env)]; l != nil {
		return l
	}
	return m.tracked
}

// openBranches finds the branches of a pipeline's environments.
func (m *planner) openBranches(ctx context.Context, p *pipeline.Pipeline) error {
	for _, branch := range p.EnvironmentBranches() {
		if branch == m.input.Branch || m.branches[branch] != nil {
			continue
		}
		l := &branchHead{branch: branch}
		sha, ok, err := m.input.Head(ctx, branch)
		if err != nil {
			return fmt.Errorf("find the branch %s: %w", branch, err)
		}
		if ok {
			l.commit, l.tree = sha, &commitTree{Tree: m.input.Git.Tree(sha)}
		}
		m.branches[branch] = l
	}
	return nil
}

// missingBranchText says what is wrong with an environment whose branch isn't there.
func missingBranchText(branch string) string {
	return fmt.Sprintf("there is no branch %s here, which the pipeline says this environment lives on: fetch it (git fetch origin), create it, or correct the environment's branch", branch)
}

// targetsOn is how a line sees targets.
func (m *planner) targetsOn(l *branchHead, targets []appset.Target) []appset.Target {
	if len(m.branches) == 0 {
		return targets // there is only one
	}
	out := make([]appset.Target, len(targets))
	for i := range targets {
		out[i] = appset.ViewFromBranch(targets[i], l.branch, m.input.Branch)
	}
	return out
}

// findReaders says which of a pipeline's targets read which of some files of a line,
// by the targets' IDs.
func (m *planner) findReaders(ctx context.Context, r *resolvedPipeline, l *branchHead, files []string) (map[string][]string, error) {
	ix := r.readers[l]
	if ix == nil {
		targets := m.targetsOn(l, r.targetSet.Targets)
		list := make([]deps.Reader, len(targets))
		for i := range targets {
			list[i] = evaluate.Reader(&targets[i])
		}
		var err error
		if ix, err = deps.Build(ctx, l.tree, list); err != nil {
			return nil, err
		}
		r.readers[l] = ix
	}
	return ix.AffectedReaders(files), nil
}

// baselineAncestry answers what tracked.Old asks about commits of a line that are not in the
// baseline's own history, without asking git for each.
type baselineAncestry struct {
	git       Git
	baseline  string
	isTracked bool // it is the tracked branch: all of them descend from the baseline
	diverged  bool // the baseline is not on the line: none does
	commits   map[string]*git.CommitInfo
}

var _ history.Ancestry = (*baselineAncestry)(nil)

func (m *planner) newAncestry(ctx context.Context, l *branchHead, baseline string) (*baselineAncestry, error) {
	s := &baselineAncestry{git: m.input.Git, baseline: baseline, isTracked: l == m.tracked, commits: map[string]*git.CommitInfo{}}
	if s.isTracked {
		return s, nil
	}
	on, err := m.input.Git.IsAncestor(ctx, baseline, l.commit)
	s.diverged = !on
	return s, err
}

// IsAncestor is asked of a commit and the baseline, one way and the other.
func (s *baselineAncestry) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	if descendant == s.baseline || s.isTracked || s.diverged {
		return descendant != s.baseline && s.isTracked, nil
	}
	return s.git.IsAncestor(ctx, ancestor, descendant)
}

// Commit reads a commit once.
func (s *baselineAncestry) Commit(ctx context.Context, sha string) (*git.CommitInfo, error) {
	if c := s.commits[sha]; c != nil {
		return c, nil
	}
	c, err := s.git.Commit(ctx, sha)
	if err == nil {
		s.commits[sha] = c
	}
	return c, err
}
