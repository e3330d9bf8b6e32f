package history

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// movingRefs are what people call a revision that is another one tomorrow.
var movingRefs = []string{"HEAD", "main", "master", "trunk", "develop"}

// MovingRefs says which carried refs of remote bases follow a branch in one environment of a
// component and not in another. A promotion would have the other one follow it too. tree is an
// environment's files; nil where its branch isn't there.
func MovingRefs(p *pipeline.Pipeline, components map[string]map[string]*Environment, tree func(environment string) fs.FS) []appset.Problem {
	var out []appset.Problem
	for _, component := range slices.Sorted(maps.Keys(components)) {
		moving := map[string]fieldedit.Location{} // by place
		fixed := map[string]string{}              // by place: an environment with a revision
		for _, name := range slices.Sorted(maps.Keys(components[component])) {
			files := tree(name)
			if files == nil {
				continue
			}
			found, err := fieldedit.Locate(files, components[component][name].Overlay(p))
			if err != nil {
				continue // what can't be read is said of its environment
			}
			for _, place := range found {
				key := place.Field.Key()
				if place.Field.Kind != fieldedit.KindRef {
					continue
				}
				if slices.Contains(movingRefs, strings.TrimPrefix(place.Field.Value, "refs/heads/")) {
					moving[key] = place
				} else {
					fixed[key] = name
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(moving)) {
			if fixed[key] == "" {
				continue // all follow a branch, and none will follow another one
			}
			m := moving[key]
			out = append(out, appset.Problem{File: m.File, Message: fmt.Sprintf("line %d: %s is carried, and it is the branch %s: a "+
				"promotion would have %s follow it too; name a revision here, or take the base out of kustomizeRefs",
				m.Line, m.Path(), m.Field.Value, fixed[key])})
		}
	}
	return out
}
