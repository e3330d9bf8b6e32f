package checkout

import (
	"cmp"
	"context"
	"io/fs"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Findings are what is wrong with what the working tree's pipelines come to.
type Findings struct {
	// Problems are the pipelines' own: templates that fit no target, carry entries that pick
	// nothing, targets that no merge reaches.
	Problems []appset.Problem
	// Unresolved are sets of which a checkout alone can't tell, as it knows no clusters and no
	// network, or that are wrong by themselves.
	Unresolved []appset.Problem
}

// Check resolves the working tree's pipelines as far as the checkout and what is known beside it
// tell, and says what is wrong with that. The error is for pipeline files that can't be used.
func (r *Repository) Check(ctx context.Context, beside Known) (*Findings, error) {
	t, err := r.At(ctx, "")
	if err != nil {
		return nil, err
	}
	pipes, err := pipeline.Load(t.FS)
	if err != nil {
		return nil, err
	}
	known, err := beside.resolverInput(t.FS, pipes)
	if err != nil {
		return nil, err
	}
	heads, err := r.git.Branches(ctx)
	if err != nil {
		return nil, err
	}
	files, _ := r.overlayFiles(t, nil)
	if err := r.refuseUnread(ctx, files, t, known, pipes); err != nil {
		return nil, err
	}
	resolver := appset.New(appset.Options{})
	out := &Findings{Problems: known.problems}
	for _, p := range pipes {
		set, err := r.resolvePipeline(ctx, resolver, files, t, known.forPipeline(p), false)
		if err != nil {
			return nil, err
		}
		for _, found := range set.Problems {
			if found.Application != "" || found.File == p.File && found.ApplicationSet == "" && !takesLiveApplications(p) {
				out.Problems = append(out.Problems, found)
			} else {
				out.Unresolved = append(out.Unresolved, found)
			}
		}
		if generatesNothing(set) {
			out.Problems = append(out.Problems, nothingGenerated(p))
		}
		out.Problems = append(out.Problems, appset.UnreachedTargets(p, set.Targets, r.main)...)
		out.Problems = append(out.Problems, history.MissingFolders(set.Targets, r.main, r.branchFiles(t, heads))...)
		if len(set.Problems) == 0 {
			bases, err := readBases(ctx, set, r.main, r.branchFiles(t, heads))
			if err != nil {
				return nil, err
			}
			components, files := history.Components(set, r.main, bases), r.environmentFiles(t, p, heads)
			out.Problems = append(out.Problems, history.UnmatchedCarry(p, components, files)...)
			out.Problems = append(out.Problems, history.IdentityCarry(p, components, files)...)
			out.Problems = append(out.Problems, history.MovingRefs(p, components, files)...)
		}
	}
	out.Problems, out.Unresolved = distinctProblems(out.Problems), distinctProblems(out.Unresolved)
	return out, nil
}

// readBases reads what the kustomizations of targets build on, by branch. tree is a branch's files, nil where they
// aren't known.
func readBases(ctx context.Context, set *appset.TargetSet, main string, tree func(branch string) fs.FS) (map[string]*history.Bases, error) {
	out := map[string]*history.Bases{}
	for branch, folders := range history.BaseFolders(set, main) {
		files := tree(branch)
		if files == nil {
			continue
		}
		var err error
		if out[branch], err = history.ReadBases(ctx, files, folders, nil, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// environmentFiles are an environment's files: the working tree's, or those of the head of its
// own branch; nil where that isn't here.
func (r *Repository) environmentFiles(t *Tree, p *pipeline.Pipeline, heads map[string]string) func(environment string) fs.FS {
	files := r.branchFiles(t, heads)
	return func(environment string) fs.FS { return files(cmp.Or(p.BranchOf(environment), r.main)) }
}

// branchFiles are a branch's files: of the tracked one a tree's.
func (r *Repository) branchFiles(t *Tree, heads map[string]string) func(branch string) fs.FS {
	return func(branch string) fs.FS {
		if branch == r.main {
			return t.FS
		}
		if heads[branch] == "" {
			return nil
		}
		return r.git.Tree(heads[branch])
	}
}

// ErrNoRepository is that a folder is in no Git repository.
var ErrNoRepository = git.ErrNoRepository

// takesLiveApplications says that some of the pipeline's Applications are those that run, which a
// checkout doesn't tell.
func takesLiveApplications(p *pipeline.Pipeline) bool {
	return slices.ContainsFunc(p.Spec.Applications, func(a pipeline.ApplicationSource) bool { return a.Live != nil })
}
