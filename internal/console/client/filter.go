package client

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/wording"
)

// Filter chooses components of pipelines, and which of their environments are shown. The zero value
// chooses all. A component is chosen where one of its shown environments fits all that is said.
type Filter struct {
	Component   string
	Environment string          // a name, or a pattern with *; empty: all
	Labels      labels.Selector // of the Applications of targets; nil: any
	NeedsLook   bool
}

// IsZero says that all is chosen.
func (f *Filter) IsZero() bool {
	return f.Component == "" && f.Environment == "" && f.Labels == nil && !f.NeedsLook
}

// Shows says whether an environment of that name is shown.
func (f *Filter) Shows(environment string) bool {
	ok, err := path.Match(f.Environment, environment)
	return f.Environment == "" || f.Environment == environment || err == nil && ok
}

// Apply takes out of a pipeline what isn't chosen, and counts what is left.
func (f *Filter) Apply(p *api.Pipeline) {
	if f.IsZero() {
		return
	}
	p.Environments = slices.DeleteFunc(p.Environments, func(name string) bool { return !f.Shows(name) })
	p.Graph = slices.DeleteFunc(p.Graph, func(e api.PipelineEnvironment) bool { return !f.Shows(e.Name) })
	var kept []api.Component
	counts := api.Counts{}
	for _, c := range p.Components {
		c.Environments = slices.DeleteFunc(c.Environments, func(e api.Environment) bool { return !f.Shows(e.Environment) })
		if f.Component != "" && c.Component != f.Component || !slices.ContainsFunc(c.Environments, f.fits) {
			continue
		}
		kept = append(kept, c)
		counts.Add(c.Urgency())
	}
	p.Components, p.Counts = kept, counts
}

// fits says whether a shown environment is as it is said.
func (f *Filter) fits(e api.Environment) bool {
	if f.NeedsLook && !e.Attention() {
		return false
	}
	return f.Labels == nil || slices.ContainsFunc(e.Targets, func(t api.Target) bool { return f.Labels.Matches(labels.Set(t.Labels)) })
}

// Problems groups what needs a look in a pipeline that the filter was applied to, by cause.
func (f *Filter) Problems(pipelines []api.Pipeline) []api.ProblemGroup {
	var all []*api.Component
	for i := range pipelines {
		for k := range pipelines[i].Components {
			c := pipelines[i].Components[k]
			c.Environments = slices.DeleteFunc(slices.Clone(c.Environments), func(e api.Environment) bool { return !f.fits(e) })
			all = append(all, &c)
		}
	}
	return api.GroupProblems(all)
}

// fewComponents is how many components of a cause are named.
const fewComponents = 5

// PrintProblems writes what needs a look, a cause after the other; a wide list names all components.
func PrintProblems(w io.Writer, groups []api.ProblemGroup, wide bool) error {
	if len(groups) == 0 {
		_, err := fmt.Fprintln(w, "nothing needs a look")
		return err
	}
	for i := range groups {
		g := &groups[i]
		few := fewComponents
		if wide {
			few = len(g.Components)
		}
		line := fmt.Sprintf("%s in %s: %s", wording.Count(len(g.Components), "component"), strings.Join(g.Environments, ", "), g.State)
		if g.Cause != "" {
			line += ": " + g.Cause
		}
		where := g.Pipeline
		if g.ApplicationSet != "" {
			where += ", ApplicationSet " + g.ApplicationSet
		}
		if _, err := fmt.Fprintf(w, "%s\n    %s: %s\n", replaceUnprintable(line), replaceUnprintable(where),
			replaceUnprintable(wording.JoinFew(g.Components, few))); err != nil {
			return err
		}
	}
	return nil
}
