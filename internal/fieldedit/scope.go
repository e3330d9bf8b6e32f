package fieldedit

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
)

// Scope is where an environment's carried fields may be: what a commit must
// touch to change its release, files that come or go among it.
type Scope struct{ *resolvedOverlay }

// NewScope is the scope of an overlay. The error is that of an overlay which
// can't be read either.
func NewScope(o Overlay) (Scope, error) {
	b, err := o.resolvePlaceholders()
	return Scope{b}, err
}

// Shared says that the scope has files which other environments or components
// may have as well, so that commits touch it that are none of this one's.
func (s Scope) Shared() bool {
	return len(s.shared) > 0 && slices.ContainsFunc(s.entries, func(e carryEntry) bool { return e.hasPlaceholders() })
}

// Covers says that a file (from the repository's root) is in the scope,
// existing or not.
func (s Scope) Covers(file string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool { return isUnderRoot(root, file) && s.coversFile(root, file) })
}

// coversFile says that a file under a root may hold carried fields.
func (r *resolvedOverlay) coversFile(root, file string) bool {
	name := file[len(joinRoot(root, "")):]
	return slices.ContainsFunc(r.entries, func(e carryEntry) bool {
		if !r.mayHoldEntry(root, &e) {
			return false
		}
		if e.isKustomization() {
			return slices.Contains(kustomizations, name)
		}
		p, ok := e.matchFile(name)
		if !ok || !r.mayHoldFile(root, name) {
			return false
		}
		return !r.shared[root] || placeholder.IsIn(p.placeholderName) || slices.ContainsFunc(e.paths, pathTemplate.hasPlaceholders)
	})
}

// picksWhole says that a file (relative to a root) is carried as a whole.
func (r *resolvedOverlay) picksWhole(root, name string) bool {
	return slices.ContainsFunc(r.entries, func(e carryEntry) bool {
		p, ok := e.matchFile(name)
		return ok && e.whole && r.mayHoldField(root, &e, Field{Kind: KindFile, File: p.placeholderName})
	})
}

// MayRead says that Read may look into a file (from the repository's root): those
// that the scope covers, and those that Argo CD would lay over them.
func (s Scope) MayRead(file string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool {
		return isUnderRoot(root, file) && (s.isOverrideFile(root, file[len(joinRoot(root, "")):]) || s.coversFile(root, file))
	})
}

// Inputs lists the files and folders, existing or not, that Read's answer depends on. As long as
// neither they nor anything on the way to them changes, the answer is the same. In a shared folder
// they are no more than the environment has in it.
func (s Scope) Inputs() []string {
	var out []string
	for _, root := range s.roots {
		if !s.shared[root] {
			out = append(out, root)
			continue
		}
		out = append(out, joinRoot(root, sharedOverrideFile))
		for i := range s.entries {
			if e := &s.entries[i]; e.hasPlaceholders() {
				for _, g := range e.files {
					out = append(out, path.Join(root, globBase(g.filled)))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Paths lists files and folders that together hold all that the scope covers,
// sorted, none below another. nil is the whole repository.
func (s Scope) Paths() []string {
	var all []string
	for _, root := range s.roots {
		for i := range s.entries {
			e := &s.entries[i]
			if !s.mayHoldEntry(root, e) {
				continue
			}
			var globs []string
			for _, g := range e.files {
				globs = append(globs, g.filled)
			}
			if e.isKustomization() {
				globs = kustomizations
			}
			if only := s.allowedFiles[root]; len(globs) > 0 && only != nil {
				for _, name := range only {
					if s.coversFile(root, joinRoot(root, name)) {
						all = append(all, joinRoot(root, name))
					}
				}
				continue
			}
			for _, glob := range globs {
				at := path.Join(root, globBase(glob))
				if at == "." {
					return nil
				}
				all = append(all, at)
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(p string) bool {
		return slices.ContainsFunc(all, func(o string) bool { return o != p && isUnderRoot(o, p) })
	})
}

// globBase is the file or folder that all which a glob matches is in; "." for any.
func globBase(glob string) string {
	base, pattern := doublestar.SplitPattern(glob)
	if !hasGlobMeta(pattern) {
		base = path.Join(base, pattern)
	}
	var b strings.Builder // without the backslashes of escaped characters
	for i := 0; i < len(base); i++ {
		if base[i] == '\\' && i+1 < len(base) {
			i++
		}
		b.WriteByte(base[i])
	}
	return b.String()
}

// hasGlobMeta says that a glob matches more than its own text.
func hasGlobMeta(glob string) bool {
	for _, r := range glob {
		switch r {
		case '*', '?', '[', '{', '\\':
			return true
		}
	}
	return false
}
