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
	// Pipelines are those that both were evaluated with, by whose
	// environments the report is ordered.
	Pipelines []*pipeline.Pipeline
	Before    *evaluate.Resolution
	After     *evaluate.Resolution
	Changed   []string // the files that differ, from the root
	// On is the branch that they are on, where it isn't the one that has the rules
	// and the ApplicationSets but one that an environment lives on.
	On string
}

// Compare says what a change does. A pipeline that one of the resolutions lacks has
// no targets there.
func Compare(in Input) (*Report, error) {
	r := &Report{Pipelines: []Pipeline{}, Unread: []string{}, Rules: []string{}, Files: len(in.Changed)}
	read := map[string]bool{}
	for _, p := range in.Pipelines {
		before, after := pipelineOf(in.Before, p.Name()), pipelineOf(in.After, p.Name())
		c := comparison{pipeline: p, on: in.On, before: before, after: after, environments: map[string][]Target{},
			doubted: map[string]bool{}}
		for _, d := range slices.Concat(before.Doubts, after.Doubts) {
			c.doubted[d.Reader] = true
		}
		if err := c.compareTargets(); err != nil {
			return nil, fmt.Errorf("comparing pipeline %s: %w", cmp.Or(p.Name(), "(none)"), err)
		}
		r.Pipelines = append(r.Pipelines, c.buildReport())
		for _, part := range []*evaluate.Pipeline{before, after} {
			for _, files := range part.ChangedFiles {
				for _, f := range files {
					read[f] = true
				}
			}
			if in.On != "" {
				continue // what lies there under the name of a set is none
			}
			for i := range part.TargetSet.Targets {
				t := &part.TargetSet.Targets[i]
				for _, file := range append(slices.Clip(t.SetFiles), t.ApplicationSetFile) {
					read[file] = true
				}
			}
			for _, problem := range part.TargetSet.Problems {
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

// pipelineOf is a pipeline's part of a resolution.
func pipelineOf(w *evaluate.Resolution, name string) *evaluate.Pipeline {
	if w != nil && w.Pipelines[name] != nil {
		return w.Pipelines[name]
	}
	return &evaluate.Pipeline{TargetSet: &appset.TargetSet{}}
}

// comparison is that of one pipeline.
type comparison struct {
	pipeline      *pipeline.Pipeline
	on            string // Input.On
	before, after *evaluate.Pipeline
	environments  map[string][]Target // by name
	doubted       map[string]bool     // targets whose files could not all be followed, by ID
}

// compareTargets compares all targets of both sides.
func (c *comparison) compareTargets() error {
	was, is := byID(c.before), byID(c.after)
	for i := range c.before.TargetSet.Targets {
		t := &c.before.TargetSet.Targets[i]
		if is[t.ID()] == nil {
			c.reportDeleted(t)
		}
	}
	for i := range c.after.TargetSet.Targets {
		t := &c.after.TargetSet.Targets[i]
		if old := was[t.ID()]; old == nil {
			c.reportCreated(t)
		} else if err := c.compareExisting(old, t); err != nil {
			return fmt.Errorf("target %s: %w", t.ID(), err)
		}
	}
	return nil
}

func byID(p *evaluate.Pipeline) map[string]*appset.Target {
	out := make(map[string]*appset.Target, len(p.TargetSet.Targets))
	for i := range p.TargetSet.Targets {
		out[p.TargetSet.Targets[i].ID()] = &p.TargetSet.Targets[i]
	}
	return out
}

// reportDeleted reports a target that is only there before.
func (c *comparison) reportDeleted(t *appset.Target) {
	out := c.describeTarget(t, Deleted)
	switch {
	case mayConcern(c.after.TargetSet.Problems, t):
		out.What = Unknown
	case t.Policy.NoDelete:
		out.Kept = "the ApplicationSet's applicationsSync doesn't let Argo CD delete it"
	case t.Policy.PreserveResources:
		out.Kept = "its resources stay: the ApplicationSet has preserveResourcesOnDeletion"
	}
	c.addTarget(t.Environment, out)
}

// reportCreated reports a target that is only there after.
func (c *comparison) reportCreated(t *appset.Target) {
	out := c.describeTarget(t, Created)
	if mayConcern(c.before.TargetSet.Problems, t) {
		out.What = Unknown
	}
	c.addTarget(t.Environment, out)
}

// compareExisting reports a target that is there before and after, if it changes.
func (c *comparison) compareExisting(old, t *appset.Target) error {
	out := c.describeTarget(t, Changed)
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
		out.From, out.To = locationText(old), locationText(t)
		if old.Environment != t.Environment {
			c.addTarget(old.Environment, out)
		}
	}
	c.addTarget(t.Environment, out)
	return nil
}

// locationText names where a target belongs.
func locationText(t *appset.Target) string {
	if !t.Managed() {
		return "no environment"
	}
	return t.Component + " in " + t.Environment
}

// describeTarget is what is the same for every kind of report on a target.
func (c *comparison) describeTarget(t *appset.Target, what string) Target {
	id := t.ID()
	out := Target{
		Name: t.Name, Namespace: t.Namespace, ArgoCD: t.ArgoCD, Component: t.Component,
		Cluster: cmp.Or(t.Cluster, t.Server), ApplicationSet: t.ApplicationSet, What: what,
	}
	out.Files = appset.SortedUnique(slices.Concat(c.before.ChangedFiles[id], c.after.ChangedFiles[id]))
	for _, f := range out.Files {
		if c.on == "" && slices.Contains(t.GeneratorFiles, f) || slices.Contains(t.BranchFiles, appset.BranchFile{Branch: c.on, File: f}) {
			out.Generators = append(out.Generators, f)
		}
	}
	out.Unsure = len(out.Files) > 0 && c.doubted[id]
	return out
}

// mayConcern says that one of the problems may be why a target isn't there.
func mayConcern(problems []appset.Problem, t *appset.Target) bool {
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

func (c *comparison) addTarget(environment string, t Target) {
	c.environments[environment] = append(c.environments[environment], t)
}

// buildReport puts the environments into the pipeline's order.
func (c *comparison) buildReport() Pipeline {
	out := Pipeline{Name: c.pipeline.Name(), OneEnvironment: c.pipeline.Spec.Impact.FailOn == pipeline.FailOnSeveral,
		Environments: []Environment{}, Problems: []appset.Problem{}, Preexisting: []appset.Problem{}, Fixed: []appset.Problem{}}
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
	for _, p := range c.after.TargetSet.Problems {
		if slices.Contains(c.before.TargetSet.Problems, p) {
			out.Preexisting = append(out.Preexisting, p)
		} else {
			out.Problems = append(out.Problems, p)
		}
	}
	for _, p := range c.before.TargetSet.Problems {
		if !slices.Contains(c.after.TargetSet.Problems, p) {
			out.Fixed = append(out.Fixed, p)
		}
	}
	return out
}
