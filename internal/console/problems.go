package console

import (
	"github.com/liftlock/liftlock/internal/console/api"
)

const (
	// fewProblems is up to how many components that need a look speak for themselves.
	fewProblems = 5
	// maxProblemGroups bounds the causes that are listed.
	maxProblemGroups = 12
	// maxExamples is how many of each are named.
	maxExamples = 5
)

// problemGroup is what needs a look for the same cause.
type problemGroup struct {
	api.ProblemGroup
	ID       string           // on the page
	Examples []problemExample // the first components
	More     int              // how many that aren't named
	Link     string           // to all of the pipeline that need a look
}

type problemExample struct{ Name, Link string }

// groupProblems groups what needs a look by pipeline, ApplicationSet and cause, the most
// frequent first; nil where it is little enough to be seen without.
func (se *server) groupProblems(b *gridBody, all []pipelineUnits) []problemGroup {
	if b.Counts.Attention <= fewProblems {
		return nil
	}
	var shown []*api.Component
	for i := range all {
		for _, u := range all[i].units {
			if u.urgency == api.UrgencyBroken || u.urgency == api.UrgencyHeld {
				shown = append(shown, &u.component)
			}
		}
	}
	var out []problemGroup
	groups := api.GroupProblems(shown)
	for _, g := range groups[:min(len(groups), maxProblemGroups)] {
		q := gridQuery{Show: "attention", Sort: sortByNeed, Page: 1}
		owner := ""
		if se.reader.isAmbiguous(g.Pipeline) {
			owner = g.Repository
		}
		p := problemGroup{ProblemGroup: g, ID: hashID("problem", g.Repository, g.Pipeline, g.ApplicationSet, g.State+g.Cause),
			Link: gridURL(se.pages.pageURL("pipelines", g.Pipeline), owner, &q)}
		for _, name := range g.Components[:min(len(g.Components), maxExamples)] {
			p.Examples = append(p.Examples, problemExample{name, se.pages.componentURL(g.Repository, g.Pipeline, name)})
		}
		p.More = len(g.Components) - len(p.Examples)
		out = append(out, p)
	}
	return out
}

// Count is how many components need a look for this.
func (p *problemGroup) Count() int { return len(p.Components) }
