package pipeline

import (
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
)

// MayCarryFrom says whether some entry of carry is about a file, given from the repository's root,
// of an environment of a component. The names decide, whichever folder above the file is the root
// that the entry's globs are relative to. Kustomizations don't count, nor do fields under other
// keys than the given ones, where there are any.
func (p *Pipeline) MayCarryFrom(file, environment, component string, keys ...string) bool {
	at := placeholder.Values{Environment: environment, Component: component}
	matches := func(glob string) bool {
		filled, err := at.FillGlob(glob)
		if err != nil {
			return false
		}
		ok, err := doublestar.Match("**/"+filled, file)
		return err == nil && ok
	}
	return slices.ContainsFunc(p.Spec.Carry, func(c Carry) bool {
		var globs []string
		for _, pick := range []*FieldPick{c.YAML, c.JSON} {
			if pick != nil && (len(keys) == 0 || slices.ContainsFunc(pick.Paths,
				func(path string) bool { return placeholder.EndsIn(path, keys) })) {
				globs = append(globs, pick.Files...)
			}
		}
		if c.Files != nil {
			globs = append(globs, c.Files.Include...)
		}
		return slices.ContainsFunc(globs, matches)
	})
}
