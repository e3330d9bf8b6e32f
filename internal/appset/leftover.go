package appset

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/liftlock/liftlock/internal/wording"
)

// leftoverPattern is a parameter that fasttemplate, by which sets without goTemplate are filled in,
// leaves as it stands: one of a name that no generator gives.
var leftoverPattern = regexp.MustCompile(`\{\{\s*([\w.\-/\[\]]+)\s*\}\}`)

// noteLeftovers says which parameters nothing filled in: Argo CD creates such Applications all the
// same, and they never sync.
func (as *appSet) noteLeftovers(kept []*builtTarget) []Problem {
	if as.spec.Spec.GoTemplate {
		return nil // there a parameter that is missing is an error, or <no value>
	}
	applications := map[string][]string{} // by parameter
	for _, m := range kept {
		for name := range m.target.leftovers() {
			applications[name] = append(applications[name], m.target.Name)
		}
	}
	var out []Problem
	for _, name := range slices.Sorted(maps.Keys(applications)) {
		out = append(out, as.newProblem("", fmt.Sprintf("no generator gives the parameter {{%s}}, so that it stays as it is written in %s",
			wording.Clip(name, maxQuoted), wording.JoinFew(applications[name], 5))))
	}
	return out
}

// leftovers are the names of parameters that nothing filled in. Values for a chart aren't searched:
// they may have templates of the chart's own.
func (t *Target) leftovers() map[string]bool {
	var out map[string]bool
	look := func(texts ...string) {
		for _, text := range texts {
			for _, found := range leftoverPattern.FindAllStringSubmatch(text, -1) {
				if out == nil {
					out = map[string]bool{}
				}
				out[found[1]] = true
			}
		}
	}
	look(t.Name, t.Namespace, t.Project, t.DestNS, t.Server, t.Cluster)
	for i := range t.Sources {
		s := &t.Sources[i]
		look(s.RepoURL, s.Path, s.Chart, s.TargetRevision)
		look(s.ValueFiles...)
	}
	return out
}
