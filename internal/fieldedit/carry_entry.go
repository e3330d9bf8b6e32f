package fieldedit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
)

// Overlay says where one environment of one component has its carried fields.
// Folders are from the repository's root ("." for itself); one that doesn't
// exist holds nothing.
type Overlay struct {
	Roots []string // folders that nobody else has
	// Bases are folders of kustomizations that those of the roots build on, and nobody else's. They are roots, too, but
	// that no whole files are carried there, and other files' fields only where no other root is in one or around it.
	Bases []string
	// Shared are folders that other environments or components have, too, and
	// Files single files, each below its folder as a root. In them only what has
	// a placeholder is carried: the other fields are theirs as well.
	Shared, Files []string
	// Layers are lists of Helm's values files and globs of such, each after those over which it is
	// laid. Or they are lists of kustomizations' folders, each after those that it builds on. Where
	// several of them have a field at one place, the last one's is carried. A file that is in a
	// list by its name isn't among the matches of its globs.
	Layers [][]string
	Carry  []pipeline.Carry
	// Environment and Component are what the placeholders stand for.
	Environment, Component string
	// ParseCache is what Read and Locate remember of files over calls; nil: nothing.
	ParseCache *ParseCache `json:"-"`
}

// resolvedOverlay is an overlay with its placeholders filled in.
type resolvedOverlay struct {
	roots        []string        // its own, then its bases, then the shared ones
	bases        map[string]bool // of each, whether there is another root in it or around it
	shared       map[string]bool
	allowedFiles map[string][]string // the files of a shared root that count; none: all
	entries      []carryEntry
	layers       [][]string
	parseCache   *ParseCache
}

// resolvePlaceholders checks an overlay. The error is that of a root which isn't a folder of
// the repository, or of an entry that can't be understood.
func (o Overlay) resolvePlaceholders() (*resolvedOverlay, error) {
	own, err := cleanRoots(o.Roots)
	if err != nil {
		return nil, err
	}
	ownAndBases, err := cleanRoots(slices.Concat(own, o.Bases))
	if err != nil {
		return nil, err
	}
	folders, err := cleanRoots(slices.Concat(ownAndBases, o.Shared))
	if err != nil {
		return nil, err
	}
	b := &resolvedOverlay{bases: map[string]bool{}, shared: map[string]bool{}, allowedFiles: map[string][]string{}, layers: o.Layers,
		parseCache: o.ParseCache}
	b.roots = folders
	for _, file := range o.Files {
		folder := path.Dir(file)
		if slices.Contains(folders, folder) {
			continue
		}
		b.allowedFiles[folder] = append(b.allowedFiles[folder], path.Base(file))
		b.roots = append(b.roots, folder)
	}
	if b.roots, err = cleanRoots(b.roots); err != nil {
		return nil, err
	}
	for _, base := range ownAndBases[len(own):] {
		b.bases[base] = slices.ContainsFunc(ownAndBases, func(root string) bool {
			return root != base && (isUnderRoot(base, root) || isUnderRoot(root, base))
		})
	}
	for _, root := range b.roots[len(ownAndBases):] {
		b.shared[root] = true
	}
	for i, c := range o.Carry {
		e, err := newCarryEntry(c, placeholder.Values{Environment: o.Environment, Component: o.Component})
		if err != nil {
			return nil, fmt.Errorf("carry[%d]: %w", i, err)
		}
		b.entries = append(b.entries, e)
	}
	return b, nil
}

// carryEntry is one of the carry entries.
type carryEntry struct {
	images, refs  []string
	format        fileFormat // of fields
	files         []glob
	exclude       []glob // of whole files
	paths         []pathTemplate
	fields, whole bool
	whenAbsent    string
	values        placeholder.Values
}

// isKustomization says that the entry's fields are those that a kustomization alone has.
func (c *carryEntry) isKustomization() bool { return len(c.images)+len(c.refs) > 0 }

// glob picks files; filled has no placeholders any more.
type glob struct{ text, filled string }

func (g glob) hasPlaceholders() bool { return placeholder.IsIn(g.text) }

func (g glob) matchesName(name string) bool {
	ok, err := doublestar.Match(g.filled, name)
	return ok && err == nil
}

func newCarryEntry(c pipeline.Carry, v placeholder.Values) (e carryEntry, err error) {
	e = carryEntry{images: c.KustomizeImages, refs: c.KustomizeRefs, whenAbsent: c.WhenAbsent, values: v}
	if e.whenAbsent == "" {
		e.whenAbsent = pipeline.WhenAbsentRefuse
	}
	pick := c.YAML
	if c.JSON != nil {
		pick, e.format = c.JSON, formatJSON
	}
	var files, exclude []string
	switch {
	case e.isKustomization():
		for _, g := range slices.Concat(e.images, e.refs) {
			if !doublestar.ValidatePattern(g) {
				return carryEntry{}, fmt.Errorf("%q isn't a glob", g)
			}
		}
	case pick != nil:
		e.fields, files = true, pick.Files
		for _, text := range pick.Paths {
			t, err := newPathTemplate(text, v)
			if err != nil {
				return carryEntry{}, err
			}
			e.paths = append(e.paths, t)
		}
	case c.Files != nil:
		e.whole, files, exclude = true, c.Files.Include, c.Files.Exclude
	default:
		return carryEntry{}, fmt.Errorf("the entry has no kind")
	}
	if e.files, err = newGlobs(files, v); err != nil {
		return carryEntry{}, err
	}
	e.exclude, err = newGlobs(exclude, v)
	return e, err
}

// newGlobs are the globs, those with placeholders first: what they pick is
// named by them.
func newGlobs(texts []string, v placeholder.Values) ([]glob, error) {
	var out []glob
	for _, text := range texts {
		text = strings.TrimPrefix(text, "./")
		if !doublestar.ValidatePattern(text) || strings.HasPrefix(text, "/") || path.Clean(text) != text || strings.HasPrefix(text, "../") {
			return nil, fmt.Errorf("the pattern %q isn't one for files under a root", text)
		}
		if err := placeholder.CheckGlob(text); err != nil {
			return nil, err
		}
		filled, err := v.FillGlob(text)
		if err != nil {
			return nil, err
		}
		out = append(out, glob{text, filled})
	}
	slices.SortStableFunc(out, func(a, b glob) int {
		switch {
		case a.hasPlaceholders() == b.hasPlaceholders():
			return 0
		case a.hasPlaceholders():
			return -1
		}
		return 1
	})
	return out, nil
}

// pathTemplate is the path of a carried field; filled has no placeholders any more.
type pathTemplate struct{ path, filled fieldpath.Pattern }

func newPathTemplate(text string, v placeholder.Values) (pathTemplate, error) {
	p, err := placeholder.ParsePattern(text)
	if err != nil {
		return pathTemplate{}, err
	}
	return pathTemplate{path: p, filled: p.Fill(v.Fill)}, nil
}

func (p pathTemplate) hasPlaceholders() bool { return placeholder.IsIn(p.path.String()) }

// hasPlaceholders says that an entry has some.
func (c *carryEntry) hasPlaceholders() bool {
	return slices.ContainsFunc(c.files, glob.hasPlaceholders) || slices.ContainsFunc(c.paths, pathTemplate.hasPlaceholders)
}

// pickedFile is a file that an entry picks below a root.
type pickedFile struct {
	name            string // relative to the root
	placeholderName string // the same in every environment: with placeholders
}

// matchFile says whether a root-relative file is picked, and as what.
func (c *carryEntry) matchFile(name string) (pickedFile, bool) {
	if slices.ContainsFunc(c.exclude, func(g glob) bool { return g.matchesName(name) }) {
		return pickedFile{}, false
	}
	for _, g := range c.files {
		if g.matchesName(name) {
			return pickedFile{name, placeholder.NameWithPlaceholders(g.text, name)}, true
		}
	}
	return pickedFile{}, false
}

// fillFileName is the file at a place, relative to a root; "" where an environment or
// component of that name can't have one.
func (c *carryEntry) fillFileName(place string) string {
	if !c.hasPlaceholders() {
		return place
	}
	name, err := c.values.FillName(place)
	if err != nil {
		return ""
	}
	return name
}

// carriesField says that a field is one of the entry's.
func (c *carryEntry) carriesField(f Field) bool {
	switch {
	case f.Kind == KindImage:
		image, _, err := parseImagePath(f.Path)
		return err == nil && slices.Contains(kustomizations, f.File) && matchesAny(c.images, image)
	case f.Kind == KindRef:
		_, remote, err := parseRefPath(f.Path)
		return err == nil && slices.Contains(kustomizations, f.File) && matchesAny(c.refs, remote)
	case f.Kind == KindFile && !c.whole, f.Kind != KindFile && (!c.fields || c.format.fieldKind() != f.Kind):
		return false
	}
	if p, ok := c.matchFile(c.fillFileName(f.File)); !ok || p.placeholderName != f.File {
		return false
	}
	return c.whole || slices.ContainsFunc(c.paths, func(t pathTemplate) bool { return t.matchesPath(f.Path) })
}

func (p pathTemplate) matchesPath(at string) bool {
	path, err := fieldpath.Parse(at)
	return err == nil && p.path.Matches(path)
}

// entryOf is the first entry that picks a field; nil where none does.
func (r *resolvedOverlay) entryOf(f Field) *carryEntry {
	for i := range r.entries {
		if r.entries[i].carriesField(f) {
			return &r.entries[i]
		}
	}
	return nil
}

// mayHoldFile says that a file (relative to a root) may hold carried fields at all.
func (r *resolvedOverlay) mayHoldFile(root, name string) bool {
	return r.allowedFiles[root] == nil || slices.Contains(r.allowedFiles[root], name)
}

func (r *resolvedOverlay) isBase(root string) bool {
	_, is := r.bases[root]
	return is
}

// mayHoldEntry says that an entry's fields may be below a root at all.
func (r *resolvedOverlay) mayHoldEntry(root string, e *carryEntry) bool {
	switch {
	case e.isKustomization():
		return !r.shared[root]
	case r.isBase(root):
		return e.fields && !r.bases[root] // nested in another root, those are that one's
	}
	return !r.shared[root] || e.hasPlaceholders()
}

// mayHoldField says that a field of the entry may be below a root: in a shared one
// only with a placeholder.
func (r *resolvedOverlay) mayHoldField(root string, e *carryEntry, f Field) bool {
	if !r.mayHoldEntry(root, e) || !r.mayHoldFile(root, e.fillFileName(f.File)) {
		return false
	}
	return !r.shared[root] || placeholder.IsIn(f.File) || placeholder.IsIn(f.Path)
}

// whenAbsent is what the first carry entry that picks a field says about its
// absence; "" where none picks it.
func (r *resolvedOverlay) whenAbsent(f Field) string {
	if e := r.entryOf(f); e != nil {
		return e.whenAbsent
	}
	return ""
}
