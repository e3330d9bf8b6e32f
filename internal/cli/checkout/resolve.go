package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
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

// Answer is what the ApplicationSets come to.
type Answer struct {
	Tree   string // what was looked at, for people
	Fleets []Fleet
	// Problems kept something from being resolved: with one, the answer is not
	// all there is. Notes should be known.
	Problems, Notes []appset.Problem
}

// Fleet is one pipeline's targets, or those of sets without one.
type Fleet struct {
	Pipeline string // its name; "" for sets without one
	Targets  []appset.Target
}

// Resolve turns ApplicationSets into Applications, as the controller would.
// What is wrong with the files is in the answer; the error is for what is
// asked: a revision, a pipeline or a tree that isn't there.
func (r *Repository) Resolve(ctx context.Context, q Query) (*Answer, error) {
	t, err := r.At(ctx, q.Rev)
	if err != nil {
		return nil, err
	}
	defer t.Close() //nolint:errcheck // only read
	a := &Answer{Tree: t.Name, Notes: q.Known.notes()}
	g, pipes, err := r.asked(ctx, t, q, a)
	if err != nil {
		return nil, err
	}
	in, err := q.Known.input(pipes)
	if err != nil {
		return nil, err
	}
	resolver := appset.New(appset.Options{})
	for _, p := range pipes {
		in.Pipeline = p
		f, err := r.resolve(ctx, resolver, g, t, in, q.Manifests)
		if err != nil {
			return nil, err
		}
		a.take(p.Name(), g.rename(f))
	}
	a.once()
	return a, nil
}

// asked are the pipelines that a query is about, and the tree with the files
// that it names.
func (r *Repository) asked(ctx context.Context, t *Tree, q Query, a *Answer) (*given, []*pipeline.Pipeline, error) {
	pipes, err := a.pipelines(t, q.Pipeline)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range q.Files {
		if !mayHoldSet(f.Data) {
			return nil, nil, fmt.Errorf("%s holds no ApplicationSet", f.Name)
		}
	}
	g, files := r.with(t, q.Files)
	switch {
	case len(files) > 0:
		pipes = only(pipes, files)
	case len(pipes) == 0:
		pipes, err = a.all(ctx, t)
	}
	return g, pipes, err
}

// resolve resolves one pipeline's sets.
func (r *Repository) resolve(ctx context.Context, resolver *appset.Resolver, g *given, t *Tree, in appset.Input, manifests bool) (*appset.Fleet, error) {
	in.Tree, in.Revision, in.Branch, in.RepoURLs, in.Other = g, t.Commit, r.main, r.urls, r.other(t.FS, t.Commit)
	in.Manifests = manifests
	return resolver.Resolve(ctx, in)
}

func (a *Answer) take(pipeline string, f *appset.Fleet) {
	a.Fleets = append(a.Fleets, Fleet{Pipeline: pipeline, Targets: f.Targets})
	a.Problems = append(a.Problems, f.Problems...)
	a.Notes = append(a.Notes, f.Notes...)
}

// pipelines are those of the tree. Broken files are a problem, and then there
// are none.
func (a *Answer) pipelines(t *Tree, name string) ([]*pipeline.Pipeline, error) {
	pipes, err := pipeline.Load(t.FS)
	switch {
	case errors.Is(err, pipeline.ErrNoPipeline) && name == "":
		return nil, nil
	case err != nil && name == "":
		for line := range strings.Lines(err.Error()) {
			a.Problems = append(a.Problems, appset.Problem{Message: strings.TrimSuffix(line, "\n")})
		}
		a.Notes = append(a.Notes, appset.Problem{Message: "without pipeline files that can be used, components and environments are not known"})
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the pipeline %q in %s: %w", name, t.Name, err)
	}
	if name == "" {
		return pipes, nil
	}
	p, err := named(pipes, name)
	if err != nil {
		return nil, fmt.Errorf("%s %w", t.Name, err)
	}
	return []*pipeline.Pipeline{p}, nil
}

// named finds a pipeline by its name; the error says which there are.
func named(pipes []*pipeline.Pipeline, name string) (*pipeline.Pipeline, error) {
	var names []string
	for _, p := range pipes {
		if p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, fmt.Errorf("has no pipeline %q; it has %s", name, strings.Join(names, ", "))
}

// all is a pipeline over every ApplicationSet in the tree.
func (a *Answer) all(ctx context.Context, t *Tree) ([]*pipeline.Pipeline, error) {
	sets, templates, err := t.findSets(ctx)
	if err != nil {
		return nil, err
	}
	a.Notes = append(a.Notes, chartNotes(templates)...)
	if len(sets) == 0 {
		a.Notes = append(a.Notes, noSets(t))
		return nil, nil
	}
	return []*pipeline.Pipeline{everySet(sets)}, nil
}

func chartNotes(templates []string) []appset.Problem {
	var out []appset.Problem
	for _, name := range templates {
		out = append(out, appset.Problem{File: name, Message: "left out, because it is a template of a Helm chart: render it and name the result with -f"})
	}
	return out
}

func noSets(t *Tree) appset.Problem {
	return appset.Problem{Message: fmt.Sprintf("no ApplicationSet is in any YAML or JSON file of %s", t.Name)}
}

// only narrows the pipelines to some files, and adds what none of them has.
func only(pipes []*pipeline.Pipeline, files []string) []*pipeline.Pipeline {
	var out []*pipeline.Pipeline
	taken := map[string]bool{}
	for _, p := range pipes {
		n := narrowed(p, files)
		if n == nil {
			continue
		}
		out = append(out, n)
		for _, entry := range n.Spec.ApplicationSets {
			taken[entry.Path] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return taken[escape(name)] })
	if len(rest) > 0 {
		out = append(out, everySet(rest))
	}
	return out
}

// once drops what several pipelines say alike: problems, and the Applications
// that a pipeline doesn't manage, where they are shown already.
func (a *Answer) once() {
	if len(a.Fleets) < 2 {
		return
	}
	managed := map[string]bool{}
	for _, f := range a.Fleets {
		for i := range f.Targets {
			if f.Targets[i].Managed() {
				managed[f.Targets[i].ID()] = true
			}
		}
	}
	shown := map[string]bool{}
	for i := range a.Fleets {
		f := &a.Fleets[i]
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
	a.Problems, a.Notes = distinct(a.Problems), distinct(a.Notes)
}

func distinct(list []appset.Problem) []appset.Problem {
	seen := map[appset.Problem]bool{}
	return slices.DeleteFunc(list, func(p appset.Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
}
