package overlay

import (
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// Scope is where an environment's carried fields may be: what a commit must
// touch to change its release, files that come or go among it.
type Scope struct {
	roots []string
	carry []pipeline.Carry
}

// ScopeOf is the scope of an environment. The error is that of a root which
// isn't a folder of the repository.
func ScopeOf(roots []string, carry []pipeline.Carry) (Scope, error) {
	cleaned, err := cleanRoots(roots)
	return Scope{cleaned, carry}, err
}

// Covers says that a file (from the repository's root) is in the scope,
// existing or not.
func (s Scope) Covers(file string) bool {
	for _, root := range s.roots {
		if !under(root, file) {
			continue
		}
		name := file[len(join(root, "")):]
		for _, c := range s.carry {
			switch {
			case len(c.KustomizeImages) > 0 && slices.Contains(kustomizations, name),
				c.YAML != nil && picksFile(c.YAML.Files, name),
				c.JSON != nil && picksFile(c.JSON.Files, name),
				picksWhole(c.Files, name):
				return true
			}
		}
	}
	return false
}

// Paths lists files and folders that together hold all that the scope covers,
// sorted, none below another. nil is the whole repository.
func (s Scope) Paths() []string {
	var all []string
	for _, root := range s.roots {
		for _, c := range s.carry {
			var globs []string
			if len(c.KustomizeImages) > 0 {
				globs = kustomizations
			}
			for _, pick := range []*pipeline.FieldPick{c.YAML, c.JSON} {
				if pick != nil {
					globs = append(globs[:len(globs):len(globs)], pick.Files...)
				}
			}
			if c.Files != nil {
				globs = append(globs[:len(globs):len(globs)], c.Files.Include...)
			}
			for _, glob := range globs {
				at := root
				if base, pattern := doublestar.SplitPattern(glob); base != "." {
					at = join(root, base)
					if !meta(pattern) {
						at = join(at, pattern)
					}
				} else if !meta(pattern) {
					at = join(root, pattern)
				}
				if at == "." {
					return nil
				}
				all = append(all, at)
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(p string) bool {
		return slices.ContainsFunc(all, func(o string) bool { return o != p && under(o, p) })
	})
}

// meta says that a glob matches more than its own text.
func meta(glob string) bool {
	for _, r := range glob {
		switch r {
		case '*', '?', '[', '{', '\\':
			return true
		}
	}
	return false
}
