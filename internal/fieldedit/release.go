package fieldedit

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
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
	Field Field  // its File is relative to Root, and has the placeholders of its entry
	at    address
}

// Path is the field's address in the file, without placeholders; "" for a whole file.
func (l Location) Path() string {
	if l.Field.Kind == KindFile {
		return ""
	}
	return l.at.String()
}

// Read reads the release that an overlay carries. Folders that hold the same
// place must agree, otherwise the error is a *MixedError; what can't be read
// surely is a *RefusedError. Nothing carried is the empty release.
func Read(tree fs.FS, o Overlay) (Release, error) {
	found, err := Locate(tree, o)
	if err != nil {
		return Release{}, err
	}
	return releaseOf(found)
}

// Locate lists every concrete place of an overlay's carried fields, sorted by
// file and line. It doesn't compare them; the other errors are Read's.
func Locate(tree fs.FS, o Overlay) ([]Location, error) {
	b, err := o.bind()
	if err != nil {
		return nil, err
	}
	return newFiles(tree, b.parsed).locate(b)
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

func (f *files) locate(b *bound) ([]Location, error) {
	var all []Location
	seen := map[string]bool{}
	for _, root := range b.roots {
		for i := range b.entries {
			e := &b.entries[i]
			if b.shared[root] && !e.placeholders() {
				continue
			}
			found, err := f.locateEntry(b, root, e)
			if err != nil {
				return nil, fmt.Errorf("carry[%d]: %w", i, err)
			}
			for _, l := range found {
				key := l.Root + "\x00" + l.Field.Place() + "\x00" + l.Path()
				if !seen[key] && b.holds(root, e, l.Field) {
					seen[key] = true
					all = append(all, l)
				}
			}
		}
	}
	if err := oneWay(all); err != nil {
		return nil, err
	}
	if err := f.overridden(b, all); err != nil {
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
func (f *files) locateEntry(b *bound, root string, e *entry) ([]Location, error) {
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
	case e.fields:
		return f.locatePaths(b, root, e)
	case e.whole:
		return f.locateWhole(b, root, e)
	}
	return f.locateImages(root, e.images)
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
		if !matchesAny(globs, image) {
			continue
		}
		for _, key := range imageKeys {
			at := address{kind: KindImage, image: image, key: key}
			l, ok, err := locateField(d, root, picked{name, name}, at, at.String())
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

func (f *files) locatePaths(b *bound, root string, e *entry) ([]Location, error) {
	files, err := f.glob(b, root, e)
	if err != nil {
		return nil, err
	}
	var found []Location
	for _, file := range files {
		at := join(root, file.name)
		if f.skips(at) {
			continue
		}
		d, err := f.document(at, e.format)
		if err != nil {
			return nil, err
		}
		for _, t := range e.paths {
			places, err := d.expand(t)
			if err != nil {
				return nil, in(err, at, t.filled.String())
			}
			for _, p := range places {
				l, ok, err := locateField(d, root, file, address{kind: e.format.kind(), path: p.at}, p.place.String())
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

func locateField(d *document, root string, file picked, a address, place string) (Location, bool, error) {
	v, err := d.get(a)
	if err != nil {
		return Location{}, false, in(err, join(root, file.name), "")
	}
	field := Field{Kind: a.kind, File: file.place, Path: place, Value: v.value, Type: v.typ}
	return Location{Root: root, File: join(root, file.name), Line: v.line, Field: field, at: a}, v.ok, nil
}

// glob lists the files under root that an entry picks, sorted. Symlinks aren't
// followed; one that matches is refused when it is read.
func (f *files) glob(b *bound, root string, e *entry) ([]picked, error) {
	sub, err := fs.Sub(f.tree, root)
	if err != nil {
		return nil, fmt.Errorf("entering %s: %w", root, err)
	}
	seen := map[string]bool{}
	var out []picked
	for _, g := range e.files {
		err := doublestar.GlobWalk(sub, g.filled, func(name string, entry fs.DirEntry) error {
			if entry.IsDir() || seen[name] || !b.has(root, name) {
				return nil
			}
			if len(seen) == maxFiles {
				return fmt.Errorf("the patterns match more than %d files under %s: narrow them", maxFiles, root)
			}
			seen[name] = true
			p, ok := e.picksFile(name)
			if !ok {
				return nil // excluded
			}
			if e.name(p.place) != name {
				return &RefusedError{File: join(root, name), Reason: "its name has {{, which would be taken for a placeholder: rename the file"}
			}
			out = append(out, p)
			return nil
		}, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return nil, fmt.Errorf("looking for %q under %s: %w", g.filled, root, err)
		}
	}
	slices.SortFunc(out, func(a, b picked) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// matchesAny matches an image's name: * stays within a path segment, ** crosses.
func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := doublestar.Match(g, name)
		return ok && err == nil
	})
}
