package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/deps"
)

// InProcess evaluates a tree in this process: for trees whose authors could do worse than to keep
// it busy. The resolution's problems say what is wrong with the tree. The error is for a context
// that ended, a tree that can't be read and a call whose input makes no sense. It may be called
// concurrently.
func InProcess(ctx context.Context, resolver *appset.Resolver, tree fs.FS, in Input) (*Resolution, error) {
	if err := in.checkValid(); err != nil {
		return nil, err
	}
	w := &Resolution{Pipelines: make(map[string]*Pipeline, len(in.Pipelines))}
	argocds, live := in.offlineArgoCDs(), in.limitedLive()
	for _, p := range in.Pipelines {
		f, err := resolver.Resolve(ctx, appset.Input{
			Pipeline: p, Tree: tree, Revision: in.Revision, Branch: in.Branch, Branches: in.otherBranches(), RepoURLs: in.RepoURLs,
			Clusters: in.Clusters, Placements: in.Placements, Projects: in.Projects, Globbing: in.Globbing, Version: in.Version,
			ArgoCDs: argocds, Main: in.Main, Live: live, OpenExternal: in.OpenExternal, Scope: in.Scope, Manifests: in.Manifests,
			Build: in.Build,
		})
		if err != nil {
			return nil, err
		}
		part, err := traceReaders(ctx, tree, f, &in)
		if err != nil {
			return nil, fmt.Errorf("pipeline %s: %w", p.Name(), err)
		}
		w.Pipelines[p.Name()] = part
	}
	return w, nil
}

// checkValid refuses what can't be meant.
func (in *Input) checkValid() error {
	if in.On != "" && (in.Edited.Tree == nil || in.On == in.Branch || len(in.RepoURLs) == 0) {
		return fmt.Errorf("evaluating a tree: a change on the branch %q needs the branch's files, another branch that has the "+
			"ApplicationSets, and the repository's address", in.On)
	}
	names := map[string]bool{}
	for _, p := range in.Pipelines {
		switch {
		case p == nil:
			return errors.New("evaluating a tree: one of the pipelines is nil")
		case names[p.Name()]:
			return fmt.Errorf("evaluating a tree: two pipelines are named %q", p.Name())
		}
		names[p.Name()] = true
	}
	return nil
}

// traceReaders finds out which of the targets read the changed files, as the branch
// sees them that the change is made on.
func traceReaders(ctx context.Context, tree fs.FS, f *appset.TargetSet, in *Input) (*Pipeline, error) {
	own := *f // the resolver's is shared
	own.Targets = append([]appset.Target{}, f.Targets...)
	for i := range own.Targets {
		own.Targets[i].Params = nil
	}
	out := &Pipeline{TargetSet: &own, ChangedFiles: map[string][]string{}, Doubts: []deps.Problem{}}
	if len(in.Changed) == 0 {
		return out, nil
	}
	branch, edited := in.editedBranch(tree)
	readers := make([]deps.Reader, len(own.Targets))
	for i := range own.Targets {
		t := appset.ViewFromBranch(own.Targets[i], branch, in.Branch)
		readers[i] = Reader(&t)
	}
	ix, err := deps.Build(ctx, edited, readers)
	if err != nil {
		return nil, err
	}
	out.ChangedFiles = ix.AffectedReaders(in.Changed)
	out.Doubts = append(out.Doubts, ix.Problems()...)
	return out, nil
}

// Reader says what a target reads of this repository, under the target's ID. A
// source of a kind that isn't known reads everything below its path.
func Reader(t *appset.Target) deps.Reader {
	r := deps.Reader{ID: t.ID(), Extra: slices.Clone(t.GeneratorFiles)}
	for _, s := range t.Sources {
		files := appset.FilesOf(*t, s)
		r.Extra = append(r.Extra, files.Named...)
		if !s.Here || s.Path == "" {
			r.Extra = append(r.Extra, files.Values...)
			r.Globs = append(r.Globs, files.Globs...)
			continue
		}
		layout := deps.Detected
		if s.Type != "" {
			layout = deps.Layout(strings.ToLower(string(s.Type)))
		}
		r.Sources = append(r.Sources, deps.Source{
			Path: s.Path, Layout: layout, ValueFiles: files.Values, ValueGlobs: files.Globs, Options: files.Overrides,
			InlineReadsFiles: deps.MentionsChartFiles(s.Options),
			Recurse:          s.Recurse, Include: s.Include, Exclude: s.Exclude, Libs: files.Libs,
		})
	}
	return r
}
