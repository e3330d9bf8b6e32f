package impact

import (
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
)

// Report is what a change does. Lists are sorted, and never nil.
type Report struct {
	Pipelines []Pipeline `json:"pipelines"` // in the order in which they were given
	// Unread are the changed files that no target reads, before or after.
	Unread []string `json:"unread"`
	// Rules are the changed pipeline files: what they change is not judged here.
	Rules []string `json:"rules"`
	// Files counts all changed files.
	Files int `json:"files"`
	// Rendered is what becomes of the manifests of the targets that are touched, where that was asked for.
	Rendered []Rendered `json:"rendered,omitempty"`
}

// Rendered is what a change does to one target's rendered manifests.
type Rendered struct {
	Pipeline    string `json:"pipeline,omitempty"`
	Environment string `json:"environment,omitempty"`
	Target      string `json:"target"`
	Summary     string `json:"summary"`
	Diff        string `json:"diff,omitempty"` // secrets are hidden in it
	Why         string `json:"why,omitempty"`  // they can't be rendered
}

// Pipeline is one pipeline's part of a report.
type Pipeline struct {
	Name string `json:"name"` // empty for ApplicationSets without a pipeline
	// OneEnvironment says that its file wants no change to reach several environments.
	OneEnvironment bool `json:"oneEnvironment,omitempty"`
	// Environments are those that the change touches, in the pipeline's order;
	// last, with an empty name, the targets that are in none.
	Environments []Environment `json:"environments"`
	// Problems are new: they stand after the change and did not before.
	Problems []appset.Problem `json:"problems"`
	// Preexisting are problems that the change doesn't bring, and maybe doesn't mend.
	Preexisting []appset.Problem `json:"standing"`
	// Fixed are problems that stood before the change and don't after it.
	Fixed []appset.Problem `json:"mended"`
}

// Environment is what a change does in one environment.
type Environment struct {
	Name    string   `json:"name"`
	Targets []Target `json:"targets"` // by name
}

// These are the effects of a change on a target.
const (
	Created = "created" // there was no such Application
	Changed = "changed" // its specification, or a file that it reads
	Deleted = "deleted" // there is none any more
	Unknown = "unknown" // it could not be resolved before or after
)

// Target is one Application that a change touches.
type Target struct {
	Name           string `json:"name"`
	Namespace      string `json:"namespace,omitempty"`
	ArgoCD         string `json:"argocd,omitempty"`
	Component      string `json:"component,omitempty"`
	Cluster        string `json:"cluster,omitempty"` // its destination's name, else its server
	ApplicationSet string `json:"applicationSet,omitempty"`
	What           string `json:"what"`

	// From says where a target was that this change moves to another
	// environment or component; it is reported in both environments.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`

	Fields []Field `json:"fields,omitempty"` // of the Application, that change
	More   int     `json:"more,omitempty"`   // fields beyond those
	// Files are the changed files that it reads, before or after; Generators are
	// those of them that its ApplicationSet's generator reads.
	Files      []string `json:"files,omitempty"`
	Generators []string `json:"generators,omitempty"`
	// Unsure says that it reads something that could not be followed, so that
	// not all of Files may matter to it.
	Unsure bool `json:"unsure,omitempty"`
	// Kept says why Argo CD leaves the Application as it is meanwhile.
	Kept string `json:"kept,omitempty"`
}

// Field is a field of an Application. A value is empty where there is none, cut where it is long,
// and hidden where its name says that it is a secret.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Reached are the names of the environments that the change certainly touches,
// in the pipeline's order.
func (p *Pipeline) Reached() []string {
	var out []string
	for i := range p.Environments {
		e := &p.Environments[i]
		if e.Name != "" && slices.ContainsFunc(e.Targets, func(t Target) bool { return t.What != Unknown }) {
			out = append(out, e.Name)
		}
	}
	return out
}

// Multiple lists the pipelines of which the change reaches more than one
// environment: a release moves through one at a time.
func (r *Report) Multiple() []*Pipeline {
	var out []*Pipeline
	for i := range r.Pipelines {
		if p := &r.Pipelines[i]; len(p.Reached()) > 1 {
			out = append(out, p)
		}
	}
	return out
}

// Refused lists those of Multiple whose file wants no such change.
func (r *Report) Refused() []*Pipeline {
	return slices.DeleteFunc(r.Multiple(), func(p *Pipeline) bool { return !p.OneEnvironment })
}

// Count counts the targets to which the change does something.
func (r *Report) Count(what string) int {
	type target struct{ pipeline, argocd, namespace, name string }
	seen := map[target]bool{} // one that moves is in two environments
	for _, p := range r.Pipelines {
		for _, e := range p.Environments {
			for _, t := range e.Targets {
				if t.What == what {
					seen[target{p.Name, t.ArgoCD, t.Namespace, t.Name}] = true
				}
			}
		}
	}
	return len(seen)
}

// NewProblems counts the problems that the change brings.
func (r *Report) NewProblems() int {
	n := 0
	for i := range r.Pipelines {
		n += len(r.Pipelines[i].Problems)
	}
	return n
}
