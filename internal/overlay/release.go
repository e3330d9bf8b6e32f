package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/fieldpath"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// maxFiles bounds the files that one carry entry may match under one root.
const maxFiles = 5000

// kustomizations are the names that kustomize knows, in its order.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Location is one concrete place of a carried field.
type Location struct {
	Root  string // from the repository's root; "." for itself
	File  string // likewise
	Line  int    // from 1
	Field Field  // its File is relative to Root
}

// Read reads the release that the overlays under roots carry. Roots are
// folders from the repository's root ("." for itself); one that doesn't exist
// carries nothing. Roots that hold the same place must agree, otherwise the
// error is a *MixedError; what can't be read surely is a *RefusedError.
// Nothing carried is the empty release.
func Read(tree fs.FS, roots []string, carry []pipeline.Carry) (Release, error) {
	found, err := Locate(tree, roots, carry)
	if err != nil {
		return Release{}, err
	}
	return releaseOf(found)
}

// Locate lists every concrete place of the carried fields under roots, sorted
// by file and line. It doesn't compare them; the other errors are Read's.
func Locate(tree fs.FS, roots []string, carry []pipeline.Carry) ([]Location, error) {
	return newFiles(tree, nil).locate(roots, carry)
}

func releaseOf(found []Location) (Release, error) {
	at := map[string][]Location{}
	var order []string
	for _, l := range found {
		p := l.Field.Place()
		if at[p] == nil {
			order = append(order, p)
		}
		at[p] = append(at[p], l)
	}
	sort.Strings(order)
	var r Release
	for _, p := range order {
		first := at[p][0]
		for _, l := range at[p][1:] {
			if l.Field.Value != first.Field.Value {
				return Release{}, &MixedError{Kind: first.Field.Kind, Path: first.Field.Path, Found: at[p]}
			}
		}
		r.Fields = append(r.Fields, first.Field)
	}
	return r, nil
}

func (f *files) locate(roots []string, carry []pipeline.Carry) ([]Location, error) {
	roots, err := cleanRoots(roots)
	if err != nil {
		return nil, err
	}
	var all []Location
	seen := map[string]bool{}
	for _, root := range roots {
		for i, c := range carry {
			found, err := f.locateEntry(root, c)
			if err != nil {
				return nil, fmt.Errorf("carry[%d]: %w", i, err)
			}
			for _, l := range found {
				key := l.Root + "\x00" + l.Field.Place()
				if !seen[key] {
					seen[key] = true
					all = append(all, l)
				}
			}
		}
	}
	if err := oneWay(all); err != nil {
		return nil, err
	}
	if err := f.overridden(roots, all); err != nil {
		return nil, err
	}
	sort.SliceStable(all, func(i, j int) bool {
		if all[i].File != all[j].File {
			return all[i].File < all[j].File
		}
		return all[i].Line < all[j].Line
	})
	return all, nil
}

// locateEntry finds the fields of one carry entry under one root.
func (f *files) locateEntry(root string, c pipeline.Carry) ([]Location, error) {
	info, err := fs.FileInfo(nil), error(nil)
	if root != "." {
		info, err = f.stat(root)
	}
	switch {
	case errors.Is(err, errAbsent):
		return nil, nil
	case err != nil:
		return nil, err
	case info != nil && !info.IsDir():
		return nil, &RefusedError{File: root, Reason: "it is given as a root but is a file"}
	case len(c.KustomizeImages) > 0:
		return f.locateImages(root, c.KustomizeImages)
	case c.YAML != nil:
		return f.locatePaths(root, formatYAML, *c.YAML)
	case c.JSON != nil:
		return f.locatePaths(root, formatJSON, *c.JSON)
	case c.Files != nil:
		return f.locateWhole(root, *c.Files)
	}
	return nil, fmt.Errorf("the entry has no kind")
}

func (f *files) locateImages(root string, globs []string) ([]Location, error) {
	name, err := f.kustomization(root)
	if err != nil || name == "" {
		return nil, err
	}
	file := join(root, name)
	if f.skips(file) {
		return nil, nil
	}
	d, err := f.document(file, formatYAML)
	if err != nil {
		return nil, err
	}
	names, err := d.images()
	if err != nil {
		return nil, in(err, file, "images")
	}
	var found []Location
	for _, image := range names {
		picked, err := matchAny(globs, image)
		if err != nil {
			return nil, err
		}
		if !picked {
			continue
		}
		for _, key := range imageKeys {
			l, ok, err := locateField(d, root, name, address{kind: KindImage, image: image, key: key})
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, l)
			}
		}
	}
	return found, nil
}

// kustomization is the name of a root's kustomization; "" where it has none.
func (f *files) kustomization(root string) (string, error) {
	have := ""
	for _, name := range kustomizations {
		_, err := f.stat(join(root, name))
		switch {
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return "", err
		case have != "":
			return "", &RefusedError{File: join(root, name), Reason: "the folder also has a " + have + ", and kustomize takes only one: remove one"}
		}
		have = name
	}
	return have, nil
}

func (f *files) locatePaths(root string, as format, pick pipeline.FieldPick) ([]Location, error) {
	patterns, err := parsePatterns(pick.Paths)
	if err != nil {
		return nil, err
	}
	names, err := f.glob(root, pick.Files)
	if err != nil {
		return nil, err
	}
	var found []Location
	for _, name := range names {
		if f.skips(join(root, name)) {
			continue
		}
		d, err := f.document(join(root, name), as)
		if err != nil {
			return nil, err
		}
		for _, p := range patterns {
			paths, err := d.expand(p)
			if err != nil {
				return nil, in(err, join(root, name), p.String())
			}
			for _, one := range paths {
				l, ok, err := locateField(d, root, name, address{kind: as.kind(), path: one})
				if err != nil {
					return nil, err
				}
				if ok {
					found = append(found, l)
				}
			}
		}
	}
	return found, nil
}

func parsePatterns(texts []string) ([]fieldpath.Pattern, error) {
	var out []fieldpath.Pattern
	for _, t := range texts {
		p, err := fieldpath.ParsePattern(t)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func locateField(d *document, root, name string, a address) (Location, bool, error) {
	v, err := d.get(a)
	if err != nil {
		return Location{}, false, in(err, join(root, name), "")
	}
	field := Field{Kind: a.kind, File: name, Path: a.String(), Value: v.value, Type: v.typ}
	return Location{Root: root, File: join(root, name), Line: v.line, Field: field}, v.ok, nil
}

// glob lists the files under root that one of the patterns matches, sorted,
// relative to root. Symlinks aren't followed; one that matches is refused when
// it is read.
func (f *files) glob(root string, patterns []string) ([]string, error) {
	sub, err := fs.Sub(f.tree, root)
	if err != nil {
		return nil, fmt.Errorf("entering %s: %w", root, err)
	}
	seen := map[string]bool{}
	var names []string
	for _, pattern := range patterns {
		pattern = strings.TrimPrefix(pattern, "./")
		if !doublestar.ValidatePattern(pattern) || strings.HasPrefix(pattern, "/") || path.Clean(pattern) != pattern || strings.HasPrefix(pattern, "../") {
			return nil, fmt.Errorf("the pattern %q isn't one for files under a root", pattern)
		}
		err := doublestar.GlobWalk(sub, pattern, func(name string, e fs.DirEntry) error {
			if e.IsDir() || seen[name] {
				return nil
			}
			if len(names) == maxFiles {
				return fmt.Errorf("the patterns match more than %d files under %s: narrow them", maxFiles, root)
			}
			seen[name] = true
			names = append(names, name)
			return nil
		}, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return nil, fmt.Errorf("looking for %q under %s: %w", pattern, root, err)
		}
	}
	sort.Strings(names)
	return names, nil
}

// matchAny matches an image's name: * stays within a path segment, ** crosses.
func matchAny(globs []string, name string) (bool, error) {
	for _, g := range globs {
		ok, err := doublestar.Match(g, name)
		if err != nil {
			return false, fmt.Errorf("the glob %q: %w", g, err)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
