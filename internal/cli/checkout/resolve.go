package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Query says what to resolve, and what is known beside the checkout.
type Query struct {
	Rev      string // "" is the working tree
	Files    []File // these manifests alone; none: the pipelines' sets or, where there is no pipeline, all that the tree has
	Pipeline string // this pipeline alone; "" is all

	Known Known
	// Manifests asks for the targets' Applications.
	Manifests bool
}

// Resolution is what the ApplicationSets come to.
type Resolution struct {
	Tree            string // what was resolved, for people
	PipelineTargets []PipelineTargets
	// Problems kept something from being resolved: with one, the answer is not
	// all there is. Notes should be known.
	Problems, Notes []appset.Problem
}

// PipelineTargets is one pipeline's targets, or those of sets without one.
type PipelineTargets struct {
	Pipeline string // its name; "" for sets without one
	Targets  []appset.Target
}

// Resolve turns ApplicationSets into Applications, as the controller would. The answer says what is
// wrong with the files. The error is for the query: a revision, a pipeline or a tree that isn't
// there.
func (r *Repository) Resolve(ctx context.Context, q Query) (*Resolution, error) {
	t, err := r.At(ctx, q.Rev)
	if err != nil {
		return nil, err
	}
	a := &Resolution{Tree: t.Name, Notes: q.Known.uncheckedNotes()}
	g, pipes, err := r.selectPipelines(ctx, t, q, a)
	if err != nil {
		return nil, err
	}
	known, err := q.Known.resolverInput(t.FS, pipes)
	if err != nil {
		return nil, err
	}
	if err := r.refuseUnread(ctx, g, t, known, pipes); err != nil {
		return nil, err
	}
	a.Problems = append(a.Problems, known.problems...)
	heads, err := r.git.Branches(ctx)
	if err != nil {
		return nil, err
	}
	resolver := appset.New(appset.Options{})
	for _, p := range pipes {
		f, err := r.resolvePipeline(ctx, resolver, g, t, known.forPipeline(p), q.Manifests)
		if err != nil {
			return nil, err
		}
		a.addTargets(p.Name(), g.restoreNames(f))
		a.Notes = append(a.Notes, history.MissingFolders(f.Targets, r.main, r.branchFiles(t, heads))...)
		if generatesNothing(f) {
			a.Notes = append(a.Notes, nothingGenerated(p))
		}
	}
	a.dropDuplicates()
	return a, nil
}

// generatesNothing says that a pipeline's sets came to no Application, and that nothing kept them from it.
func generatesNothing(f *appset.TargetSet) bool { return len(f.Targets) == 0 && len(f.Problems) == 0 }

func nothingGenerated(p *pipeline.Pipeline) appset.Problem {
	return appset.Problem{File: p.File, Message: "the ApplicationSets generate no Application: see whether their generators have " +
		"elements, and paths that are there"}
}

// selectPipelines are the pipelines that a query is about, and the tree with the files
// that it names.
func (r *Repository) selectPipelines(ctx context.Context, t *Tree, q Query, a *Resolution) (*namedFiles, []*pipeline.Pipeline, error) {
	pipes, err := a.loadPipelines(t, q.Pipeline)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range q.Files {
		if !mayHold(f.Data, kindApplicationSet) {
			return nil, nil, fmt.Errorf("%s holds no ApplicationSet", f.Name)
		}
	}
	g, files := r.overlayFiles(t, q.Files)
	switch {
	case len(files) > 0:
		pipes = narrowPipelines(pipes, files)
	case len(pipes) == 0:
		pipes, err = a.findAllSets(ctx, r, t, &q.Known)
	}
	return g, pipes, err
}

// resolvePipeline resolves one pipeline's sets.
func (r *Repository) resolvePipeline(ctx context.Context, resolver *appset.Resolver, g *namedFiles, t *Tree, in appset.Input,
	manifests bool) (*appset.TargetSet, error) {
	r.fillInput(&in, g, t)
	in.Manifests = manifests
	return resolver.Resolve(ctx, in)
}

// fillInput puts into a resolver's input what the checkout is.
func (r *Repository) fillInput(in *appset.Input, g *namedFiles, t *Tree) {
	in.Tree, in.Revision, in.Branch, in.RepoURLs, in.OpenExternal = g.FS, t.Commit, r.main, r.urls, r.openExternal(t.FS, t.Commit)
	in.Build = r.manifestBuilder(g, t)
}

func (re *Resolution) addTargets(pipeline string, f *appset.TargetSet) {
	re.PipelineTargets = append(re.PipelineTargets, PipelineTargets{Pipeline: pipeline, Targets: f.Targets})
	re.Problems = append(re.Problems, f.Problems...)
	re.Notes = append(re.Notes, f.Notes...)
}

// loadPipelines are those of the tree. Broken files are a problem, and then there
// are none.
func (re *Resolution) loadPipelines(t *Tree, name string) ([]*pipeline.Pipeline, error) {
	pipes, err := pipeline.Load(t.FS)
	switch {
	case errors.Is(err, pipeline.ErrNoPipeline) && name == "":
		return nil, nil
	case err != nil && name == "":
		for line := range strings.Lines(err.Error()) {
			re.Problems = append(re.Problems, appset.Problem{Message: strings.TrimSuffix(line, "\n")})
		}
		re.Notes = append(re.Notes, appset.Problem{Message: "without pipeline files that can be used, components and environments are " +
			"not known"})
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the pipeline %q in %s: %w", name, t.Name, err)
	}
	if name == "" {
		return pipes, nil
	}
	p, err := findPipeline(pipes, name)
	if err != nil {
		return nil, fmt.Errorf("%s %w", t.Name, err)
	}
	return []*pipeline.Pipeline{p}, nil
}

// findPipeline finds a pipeline by its name; the error says which there are.
func findPipeline(pipes []*pipeline.Pipeline, name string) (*pipeline.Pipeline, error) {
	var names []string
	for _, p := range pipes {
		if p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, fmt.Errorf("has no pipeline %q; it has %s", name, strings.Join(names, ", "))
}

// findAllSets is a pipeline over every ApplicationSet in the tree or, where there is none, over its
// plain Applications.
func (re *Resolution) findAllSets(ctx context.Context, r *Repository, t *Tree, known *Known) ([]*pipeline.Pipeline, error) {
	found, err := r.findRunning(ctx, t, known, kindApplicationSet)
	if err != nil {
		return nil, err
	}
	re.Notes, re.Problems = append(re.Notes, found.notes...), append(re.Problems, found.problems...)
	if found.isEmpty() && len(found.problems) == 0 {
		if found, err = r.findRunning(ctx, t, known, kindApplication); err != nil {
			return nil, err
		}
		re.Notes, re.Problems = append(re.Notes, found.notes...), append(re.Problems, found.problems...)
	}
	if found.isEmpty() {
		if len(found.problems) == 0 {
			re.Notes = append(re.Notes, noSetsProblem(t))
		}
		return nil, nil
	}
	return []*pipeline.Pipeline{found.pipeline()}, nil
}

func noSetsProblem(t *Tree) appset.Problem {
	return appset.Problem{Message: fmt.Sprintf("no ApplicationSet is in any YAML or JSON file of %s", t.Name)}
}

// narrowPipelines narrows the pipelines to some files, and adds what none of them has.
func narrowPipelines(pipes []*pipeline.Pipeline, files []string) []*pipeline.Pipeline {
	var out []*pipeline.Pipeline
	matched := map[string]bool{}
	for _, p := range pipes {
		n := narrowPipeline(p, files)
		if n == nil {
			continue
		}
		out = append(out, n)
		for _, entry := range n.Spec.ApplicationSets {
			matched[entry.Path] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return matched[escapeGlob(name)] })
	if len(rest) > 0 {
		out = append(out, pipelineOfSets(rest))
	}
	return out
}

// dropDuplicates drops what several pipelines say alike: problems, and the Applications
// that a pipeline doesn't manage, where they are shown already.
func (re *Resolution) dropDuplicates() {
	if len(re.PipelineTargets) < 2 {
		return
	}
	managed := map[string]bool{}
	for _, f := range re.PipelineTargets {
		for i := range f.Targets {
			if f.Targets[i].Managed() {
				managed[f.Targets[i].ID()] = true
			}
		}
	}
	shown := map[string]bool{}
	for i := range re.PipelineTargets {
		f := &re.PipelineTargets[i]
		f.Targets = slices.DeleteFunc(f.Targets, func(t appset.Target) bool {
			id := t.ID()
			if t.Managed() {
				return false
			}
			again := managed[id] || shown[id]
			shown[id] = true
			return again
		})
	}
	re.Problems, re.Notes = distinctProblems(re.Problems), distinctProblems(re.Notes)
}

func distinctProblems(list []appset.Problem) []appset.Problem {
	seen := map[appset.Problem]bool{}
	return slices.DeleteFunc(list, func(p appset.Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
}
