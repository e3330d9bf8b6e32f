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

// line is a branch that environments live on, at its commit.
type line struct {
	branch string
	tree   *commitTree // nil: there is no such branch
	commit string      // "" likewise
}

// line is where an environment lives: on the tracked branch, or on its own.
func (m *maker) line(p *pipeline.Pipeline, env string) *line {
	if l := m.lines[p.BranchOf(env)]; l != nil {
		return l
	}
	return m.main
}

// openLines finds the branches of a pipeline's environments.
func (m *maker) openLines(ctx context.Context, p *pipeline.Pipeline) error {
	for _, branch := range p.EnvironmentBranches() {
		if branch == m.in.Branch || m.lines[branch] != nil {
			continue
		}
		l := &line{branch: branch}
		sha, ok, err := m.in.Head(ctx, branch)
		if err != nil {
			return fmt.Errorf("find the branch %s: %w", branch, err)
		}
		if ok {
			l.commit, l.tree = sha, &commitTree{Tree: m.in.Git.Tree(sha)}
		}
		m.lines[branch] = l
	}
	return nil
}

// missing says what is wrong with an environment whose branch isn't there.
func missing(branch string) string {
	return fmt.Sprintf("there is no branch %s here, which the pipeline says this environment lives on: fetch it (git fetch origin), create it, or correct the environment's branch", branch)
}

// on is how a line sees targets.
func (m *maker) on(l *line, targets []appset.Target) []appset.Target {
	if len(m.lines) == 0 {
		return targets // there is only one
	}
	out := make([]appset.Target, len(targets))
	for i := range targets {
		out[i] = appset.On(targets[i], l.branch, m.in.Branch)
	}
	return out
}

// touched says which of a pipeline's targets read which of some files of a line,
// by the targets' IDs.
func (m *maker) touched(ctx context.Context, r *rules, l *line, files []string) (map[string][]string, error) {
	ix := r.readers[l]
	if ix == nil {
		targets := m.on(l, r.fleet.Targets)
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

// since answers what tracked.Old asks about commits of a line that are not in the
// baseline's own history, without asking git for each.
type since struct {
	git      Git
	baseline string
	main     bool // it is the tracked branch: all of them descend from the baseline
	apart    bool // the baseline is not on the line: none does
	commits  map[string]*git.CommitInfo
}

var _ history.Ancestry = (*since)(nil)

func (m *maker) since(ctx context.Context, l *line, baseline string) (*since, error) {
	s := &since{git: m.in.Git, baseline: baseline, main: l == m.main, commits: map[string]*git.CommitInfo{}}
	if s.main {
		return s, nil
	}
	on, err := m.in.Git.IsAncestor(ctx, baseline, l.commit)
	s.apart = !on
	return s, err
}

// IsAncestor is asked of a commit and the baseline, one way and the other.
func (s *since) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	if descendant == s.baseline || s.main || s.apart {
		return descendant != s.baseline && s.main, nil
	}
	return s.git.IsAncestor(ctx, ancestor, descendant)
}

// Commit reads a commit once.
func (s *since) Commit(ctx context.Context, sha string) (*git.CommitInfo, error) {
	if c := s.commits[sha]; c != nil {
		return c, nil
	}
	c, err := s.git.Commit(ctx, sha)
	if err == nil {
		s.commits[sha] = c
	}
	return c, err
}
