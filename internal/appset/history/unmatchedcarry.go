package history

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// UnmatchedCarry says which entries of a pipeline's carry pick nothing in any environment of any
// component, as one with a typo does, and what is there instead. tree is an environment's
// files; nil where its branch isn't there. None where there is no component.
func UnmatchedCarry(p *pipeline.Pipeline, components map[string]map[string]*Environment,
	tree func(environment string) fs.FS) []appset.Problem {
	var out []appset.Problem
	for i := range p.Spec.Carry {
		hint, picked := "", len(components) == 0
		for _, component := range slices.Sorted(maps.Keys(components)) {
			for _, name := range slices.Sorted(maps.Keys(components[component])) {
				files := tree(name)
				if picked || files == nil {
					continue
				}
				o := components[component][name].Overlay(p)
				o.Carry = p.Spec.Carry[i : i+1]
				found, err := fieldedit.Locate(files, o)
				picked = len(found) > 0 || err != nil // what can't be read is said of its environment
				if !picked && hint == "" {
					hint = fieldedit.ExplainEmpty(files, o)
				}
			}
		}
		if picked {
			continue
		}
		message := fmt.Sprintf("carry[%d] picks nothing in any environment", i)
		if hint != "" {
			message += ": " + hint
		}
		out = append(out, appset.Problem{File: p.File, Message: message})
	}
	return out
}
