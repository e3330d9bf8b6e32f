package impact

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Input is a change: what the tree stands for before and after it, evaluated
// with Manifests and with Changed.
type Input struct {
	// Pipelines are those that the worlds were evaluated with, by whose
	// environments the report is ordered.
	Pipelines []*pipeline.Pipeline
	Before    *evaluate.World
	After     *evaluate.World
	Changed   []string // the files that differ, from the root
	// On is the branch that they are on, where it isn't the one that has the rules
	// and the ApplicationSets but one that an environment lives on.
	On string
}

// Compare says what a change does. A pipeline that one of the worlds lacks has
// no targets there.
func Compare(in Input) (*Report, error) {
	r := &Report{Pipelines: []Pipeline{}, Unread: []string{}, Rules: []string{}, Files: len(in.Changed)}
	read := map[string]bool{}
	for _, p := range in.Pipelines {
		before, after := side(in.Before, p.Name()), side(in.After, p.Name())
		c := comparison{pipeline: p, on: in.On, before: before, after: after, environments: map[string][]Target{}, doubted: map[string]bool{}}
		for _, d := range slices.Concat(before.Doubts, after.Doubts) {
			c.doubted[d.Reader] = true
		}
		if err := c.targets(); err != nil {
			return nil, fmt.Errorf("comparing pipeline %s: %w", cmp.Or(p.Name(), "(none)"), err)
		}
		r.Pipelines = append(r.Pipelines, c.report())
		for _, part := range []*evaluate.Pipeline{before, after} {
			for _, files := range part.Touched {
				for _, f := range files {
					read[f] = true
				}
			}
			if in.On != "" {
				continue // what lies there under the name of a set is none
			}
			for i := range part.Fleet.Targets {
				read[part.Fleet.Targets[i].ApplicationSetFile] = true
			}
			for _, problem := range part.Fleet.Problems {
				read[problem.File] = true
			}
		}
	}
	for _, f := range in.Changed {
		switch {
		case in.On == "" && pipeline.IsPipelinePath(f):
			r.Rules = append(r.Rules, f)
		case !read[f]:
			r.Unread = append(r.Unread, f)
		}
	}
	slices.Sort(r.Rules)
	slices.Sort(r.Unread)
	return r, nil
}

// side is a pipeline's part of a world.
func side(w *evaluate.World, name string) *evaluate.Pipeline {
	if w != nil && w.Pipelines[name] != nil {
		return w.Pipelines[name]
	}
	return &evaluate.Pipeline{Fleet: &appset.Fleet{}}
}

// comparison is that of one pipeline.
type comparison struct {
	pipeline      *pipeline.Pipeline
	on            string // Input.On
	before, after *evaluate.Pipeline
	environments  map[string][]Target // by name
	doubted       map[string]bool     // targets whose files could not all be followed, by ID
}

// targets compares all targets of both sides.
func (c *comparison) targets() error {
	was, is := byID(c.before), byID(c.after)
	for i := range c.before.Fleet.Targets {
		t := &c.before.Fleet.Targets[i]
		if is[t.ID()] == nil {
			c.gone(t)
		}
	}
	for i := range c.after.Fleet.Targets {
		t := &c.after.Fleet.Targets[i]
		if old := was[t.ID()]; old == nil {
			c.come(t)
		} else if err := c.both(old, t); err != nil {
			return fmt.Errorf("target %s: %w", t.ID(), err)
		}
	}
	return nil
}

func byID(p *evaluate.Pipeline) map[string]*appset.Target {
	out := make(map[string]*appset.Target, len(p.Fleet.Targets))
	for i := range p.Fleet.Targets {
		out[p.Fleet.Targets[i].ID()] = &p.Fleet.Targets[i]
	}
	return out
}

// gone reports a target that is only there before.
func (c *comparison) gone(t *appset.Target) {
	out := c.describe(t, Deleted)
	switch {
	case concerns(c.after.Fleet.Problems, t):
		out.What = Unknown
	case t.Policy.NoDelete:
		out.Kept = "the ApplicationSet's applicationsSync doesn't let Argo CD delete it"
	case t.Policy.PreserveResources:
		out.Kept = "its resources stay: the ApplicationSet has preserveResourcesOnDeletion"
	}
	c.add(t.Environment, out)
}

// come reports a target that is only there after.
func (c *comparison) come(t *appset.Target) {
	out := c.describe(t, Created)
	if concerns(c.before.Fleet.Problems, t) {
		out.What = Unknown
	}
	c.add(t.Environment, out)
}

// both reports a target that is there before and after, if it changes.
func (c *comparison) both(old, t *appset.Target) error {
	out := c.describe(t, Changed)
	if !bytes.Equal(old.Application, t.Application) {
		fields, more, err := appset.ChangedFields(old.Application, t.Application)
		if err != nil {
			return err
		}
		for _, f := range fields {
			out.Fields = append(out.Fields, Field{Path: f.Path, Before: f.Live, After: f.Resolved})
		}
		out.More = more
		if t.Policy.NoUpdate && len(fields) > 0 {
			out.Kept = "the ApplicationSet's applicationsSync doesn't let Argo CD update it"
		}
	}
	moves := old.Environment != t.Environment || old.Component != t.Component
	if len(out.Fields) == 0 && len(out.Files) == 0 && !moves {
		return nil
	}
	if moves {
		out.From, out.To = place(old), place(t)
		if old.Environment != t.Environment {
			c.add(old.Environment, out)
		}
	}
	c.add(t.Environment, out)
	return nil
}

// place names where a target belongs.
func place(t *appset.Target) string {
	if !t.Managed() {
		return "no environment"
	}
	return t.Component + " in " + t.Environment
}

// describe is what is the same for every kind of report on a target.
func (c *comparison) describe(t *appset.Target, what string) Target {
	id := t.ID()
	out := Target{
		Name: t.Name, Namespace: t.Namespace, ArgoCD: t.ArgoCD, Component: t.Component,
		Cluster: cmp.Or(t.Cluster, t.Server), ApplicationSet: t.ApplicationSet, What: what,
	}
	out.Files = slices.Concat(c.before.Touched[id], c.after.Touched[id])
	slices.Sort(out.Files)
	out.Files = slices.Compact(out.Files)
	for _, f := range out.Files {
		if c.on == "" && slices.Contains(t.GeneratorFiles, f) || slices.Contains(t.BranchFiles, appset.BranchFile{Branch: c.on, File: f}) {
			out.Generators = append(out.Generators, f)
		}
	}
	out.Unsure = len(out.Files) > 0 && c.doubted[id]
	return out
}

// concerns says that one of the problems may be why a target isn't there.
func concerns(problems []appset.Problem, t *appset.Target) bool {
	return slices.ContainsFunc(problems, func(p appset.Problem) bool {
		switch {
		case p.Application != "" && p.Application != t.Name:
			return false
		case p.ApplicationSet != "":
			return p.ApplicationSet == t.ApplicationSet && p.File == t.ApplicationSetFile
		default: // of a whole file, or of the pipeline itself
			return p.File == "" || p.File == t.ApplicationSetFile || pipeline.IsPipelinePath(p.File)
		}
	})
}

func (c *comparison) add(environment string, t Target) {
	c.environments[environment] = append(c.environments[environment], t)
}

// report puts the environments into the pipeline's order.
func (c *comparison) report() Pipeline {
	out := Pipeline{Name: c.pipeline.Name(), Environments: []Environment{}, Problems: []appset.Problem{}, Standing: []appset.Problem{}, Mended: []appset.Problem{}}
	var order []string
	for _, e := range c.pipeline.Spec.Environments {
		order = append(order, e.Name)
	}
	for _, name := range append(order, "") {
		list := c.environments[name]
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b Target) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ArgoCD, b.ArgoCD))
		})
		out.Environments = append(out.Environments, Environment{Name: name, Targets: list})
	}
	for _, p := range c.after.Fleet.Problems {
		if slices.Contains(c.before.Fleet.Problems, p) {
			out.Standing = append(out.Standing, p)
		} else {
			out.Problems = append(out.Problems, p)
		}
	}
	for _, p := range c.before.Fleet.Problems {
		if !slices.Contains(c.after.Fleet.Problems, p) {
			out.Mended = append(out.Mended, p)
		}
	}
	return out
}
