package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/sandbox"
)

// Change is what somebody's pull request would do to the targets.
type Change struct {
	Line Line   // what it is to be merged into
	Base string // the newest commit that it has in common with it; empty: none
	Head string
	Key  string // everything that the answer depends on: the same key, the same answer

	changed   []string // files
	pipelines []*pipeline.Pipeline
	rules     bool     // pipeline files are among them
	Moved     []string // those that the branch has changed since, too
}

// Verdict is what was found out about a change.
type Verdict struct {
	Report      *impact.Report // nil: Failed says why there is none
	Failed      string
	PipelineErr string
	Unknown     []string // what is not known of the running Argo CDs
}

// LineOf finds the branch that a pull request is to be merged into among those
// that are judged: the tracked one and the environments' own.
func (s *Snapshot) LineOf(pr *forge.PullRequest) (Line, bool) {
	for _, l := range s.Lines() {
		if l.Branch == pr.Base && l.Commit != "" {
			return l, true
		}
	}
	return Line{}, false
}

// LookAtChange fetches the head of a pull request into a line and says what
// there is to judge.
func (o *Observer) LookAtChange(ctx context.Context, s *Snapshot, l Line, pr *forge.PullRequest) (*Change, error) {
	m := s.Repo.Mirror
	if err := m.FetchRef(ctx, pr.Ref, pr.Head); err != nil {
		return nil, fmt.Errorf("fetch #%d: %w", pr.Number, err)
	}
	c := &Change{Line: l, Head: pr.Head}
	base, common, err := m.MergeBase(ctx, l.Commit, pr.Head)
	if err != nil {
		return nil, fmt.Errorf("find what #%d is based on: %w", pr.Number, err)
	}
	if common {
		c.Base = base
	}
	since, err := changedPaths(ctx, m, c.Base, l.Commit)
	if err != nil {
		return nil, err
	}
	if c.changed, err = changedPaths(ctx, m, c.Base, pr.Head); err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(since))
	for _, f := range since {
		there[f] = true
	}
	for _, f := range c.changed {
		c.rules = c.rules || l.Branch == s.Repo.Branch && pipeline.IsPipelinePath(f)
		if there[f] && common {
			c.Moved = append(c.Moved, f)
		}
	}
	for _, p := range s.Pipelines {
		c.pipelines = append(c.pipelines, p.Pipeline)
	}
	sets := "" // elsewhere they are not part of the change
	if l.Branch != s.Repo.Branch {
		sets = l.Branch + " " + s.Commit
	}
	raw, err := json.Marshal([]any{c.Base, c.Head, c.pipelines, c.Moved, s.None, sets})
	if err != nil {
		return nil, fmt.Errorf("write down what #%d is judged by: %w", pr.Number, err)
	}
	sum := sha256.Sum256(raw)
	c.Key = hex.EncodeToString(sum[:16])
	return c, nil
}

// changedPaths are the files that differ between two commits; from is empty for nothing.
func changedPaths(ctx context.Context, m *git.Mirror, from, to string) ([]string, error) {
	list, err := m.Changed(ctx, from, to)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(list))
	for _, f := range list {
		out = append(out, f.Path)
	}
	return out, nil
}

// Judge works out what a change does. Its base is a judged branch's history and
// is evaluated here; its head is whatever a stranger wrote, and is evaluated in a
// child process with limits. The error is for what may go well another time;
// a head that can't be evaluated is a verdict.
func (o *Observer) Judge(ctx context.Context, s *Snapshot, c *Change) (*Verdict, error) {
	m := s.Repo.Mirror
	v := &Verdict{}
	if c.rules {
		if _, err := pipeline.Load(m.Tree(c.Head)); err != nil && !errors.Is(err, pipeline.ErrNoPipeline) {
			v.PipelineErr = err.Error()
		}
	}
	if c.Base == "" {
		v.Failed = "it has no commit in common with " + c.Line.Branch
		return v, nil
	}
	sur := o.surroundings(s.Repo)
	in, err := sur.evaluation(ctx, c.pipelines)
	if err != nil {
		return nil, err
	}
	for name, why := range in.Live.Unknown {
		v.Unknown = append(v.Unknown, fmt.Sprintf("the Argo CD %s: %s", name, why))
	}
	slices.Sort(v.Unknown)
	in.Changed = c.changed
	at := func(commit string) fs.FS {
		if c.Line.Branch == s.Repo.Branch {
			in.Revision = commit
			return m.Tree(commit)
		}
		in.Revision, in.On, in.Edited = s.Commit, c.Line.Branch, appset.Elsewhere{Tree: m.Tree(commit), Commit: commit}
		return m.Tree(s.Commit)
	}
	tree := at(c.Base)
	before, err := evaluate.Here(ctx, o.o.Resolver, tree, in)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", c.Base, err)
	}
	tree = at(c.Head)
	after, err := evaluate.InChild(ctx, o.o.Sandbox, tree, in)
	var limit *sandbox.Error
	var refused *sandbox.HandlerError
	switch {
	case errors.As(err, &limit), errors.As(err, &refused):
		v.Failed = err.Error()
		return v, nil
	case err != nil:
		return nil, fmt.Errorf("evaluate %s: %w", c.Head, err)
	}
	if v.Report, err = impact.Compare(impact.Input{Pipelines: c.pipelines, Before: before, After: after, Changed: c.changed, On: in.On}); err != nil {
		return nil, err
	}
	return v, nil
}

// evaluation is what trees of this repository are evaluated with, under some pipelines.
func (s *surroundings) evaluation(ctx context.Context, pipes []*pipeline.Pipeline) (evaluate.Input, error) {
	known := appset.Input{ArgoCDs: map[string]appset.ArgoCD{}, Live: &appset.Live{Unknown: map[string]string{}, Applications: s.owned, Selected: s.selected}}
	seen := map[string]bool{}
	for _, p := range pipes {
		for _, name := range s.o.argocdsOf(p) {
			if seen[name] {
				continue
			}
			seen[name] = true
			if err := s.know(ctx, name, &known); err != nil {
				return evaluate.Input{}, err
			}
		}
	}
	return evaluate.Input{
		Pipelines: pipes, Branch: s.repo.Branch, RepoURLs: s.repo.URLs, Manifests: true,
		ArgoCDs: known.ArgoCDs, Main: s.o.o.MainArgoCD, Live: known.Live, Other: s.other,
	}, nil
}
