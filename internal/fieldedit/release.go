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
	Root    string // from the repository's root; "." for itself
	File    string // likewise
	Line    int    // from 1
	Field   Field  // its File is relative to Root, and has the placeholders of its entry
	address fieldAddress
}

// Path is the field's address in the file, without placeholders; "" for a whole file.
func (l Location) Path() string {
	if l.Field.Kind == KindFile {
		return ""
	}
	return l.address.String()
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
	b, err := o.resolvePlaceholders()
	if err != nil {
		return nil, err
	}
	return newFiles(tree, b.parseCache).locateFields(b)
}

func releaseOf(found []Location) (Release, error) {
	at := map[string][]Location{}
	var order []string
	for _, l := range found {
		p := l.Field.Key()
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

func (c *commitFiles) locateFields(b *resolvedOverlay) ([]Location, error) {
	var all []Location
	seen := map[string]bool{}
	for _, root := range b.roots {
		for i := range b.entries {
			e := &b.entries[i]
			if !b.mayHoldEntry(root, e) {
				continue
			}
			found, err := c.locateEntry(b, root, e)
			if err != nil {
				return nil, fmt.Errorf("carry[%d]: %w", i, err)
			}
			for _, l := range found {
				key := l.Root + "\x00" + l.Field.Key() + "\x00" + l.Path()
				if !seen[key] && b.mayHoldField(root, e, l.Field) && !b.isOfAnotherRoot(root, l.File) {
					seen[key] = true
					all = append(all, l)
				}
			}
		}
	}
	all = b.dropOverlaid(all)
	if err := checkCarriedOnce(all); err != nil {
		return nil, err
	}
	if err := c.checkOverrides(b, all); err != nil {
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

// isOfAnotherRoot says that a file of a base is one that an entry picks below the root around it.
func (r *resolvedOverlay) isOfAnotherRoot(base, file string) bool {
	return r.bases[base] && slices.ContainsFunc(r.roots, func(root string) bool {
		return root != base && isUnderRoot(root, file) &&
			r.coversFile(root, file)
	})
}

// dropOverlaid leaves out the fields that don't run. Helm lays another values file over a field at
// the same place, wherever it is read (Helm's documentation, "Values Files": the last file wins).
// Or all kustomizations that build on a kustomization change its field (kustomize's, "images": a
// kustomization's are set on the result of its bases). Remote bases add up.
func (r *resolvedOverlay) dropOverlaid(all []Location) []Location {
	if len(r.layers) == 0 {
		return all
	}
	byPlace := map[string][]Location{}
	for _, l := range all {
		byPlace[l.Field.Key()] = append(byPlace[l.Field.Key()], l)
	}
	return slices.DeleteFunc(all, func(l Location) bool {
		isRead, isLast := false, false
		for _, layers := range r.layers {
			own := layerOf(layers, l)
			if own < 0 {
				continue
			}
			isRead = true
			later := func(o Location) bool { return layerOf(layers, o) > own }
			isLast = isLast || !slices.ContainsFunc(byPlace[l.Field.Key()], later)
		}
		return isRead && !isLast && l.Field.Kind != KindFile && l.Field.Kind != KindRef
	})
}

// layerOf is where a field's file, or its root, is among some layers; -1 where it is in none. A
// file that several globs match is read where the first of them is, and one that is named there
// alone (argo-cd: the repo server's valueFiles).
func layerOf(layers []string, l Location) int {
	for _, name := range []string{l.File, l.Root} {
		if at := slices.Index(layers, name); at >= 0 {
			return at
		}
	}
	return slices.IndexFunc(layers, func(layer string) bool {
		isMatch, err := doublestar.Match(layer, l.File)
		return strings.ContainsAny(layer, "*?[") && isMatch && err == nil
	})
}

// locateEntry finds the fields of one carry entry under one root.
func (c *commitFiles) locateEntry(b *resolvedOverlay, root string, e *carryEntry) ([]Location, error) {
	info, err := fs.FileInfo(nil), error(nil)
	if root != "." {
		info, err = c.statPath(root)
	}
	switch {
	case errors.Is(err, errAbsent):
		return nil, nil
	case err != nil:
		return nil, err
	case info != nil && !info.IsDir():
		return nil, &RefusedError{File: root, Reason: "it is given as a root but is a file"}
	case e.fields:
		return c.locatePaths(b, root, e)
	case e.whole:
		return c.locateWhole(b, root, e)
	}
	return c.locateInKustomization(root, e)
}

// locateInKustomization finds an entry's images or remote bases in a root's kustomization.
func (c *commitFiles) locateInKustomization(root string, e *carryEntry) ([]Location, error) {
	name, err := c.findKustomization(root)
	if err != nil || name == "" {
		return nil, err
	}
	file := joinRoot(root, name)
	if c.skipsFile(file) {
		return nil, nil
	}
	d, err := c.readDocument(file, formatYAML)
	if err != nil {
		return nil, err
	}
	addresses, err := d.kustomizationAddresses(e)
	if err != nil {
		return nil, withLocation(err, file, "")
	}
	var found []Location
	for _, at := range addresses {
		l, ok, err := locateField(d, root, pickedFile{name, name}, at, at.String())
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, l)
		}
	}
	return found, nil
}

// kustomizationAddresses are those of what an entry picks in a kustomization, there or not.
func (d *document) kustomizationAddresses(e *carryEntry) ([]fieldAddress, error) {
	if len(e.refs) > 0 {
		return d.remoteAddresses(e.refs)
	}
	names, err := d.listImages()
	if err != nil {
		return nil, withLocation(err, "", "images")
	}
	var out []fieldAddress
	for _, image := range names {
		if !matchesAny(e.images, image) {
			continue
		}
		for _, key := range imageKeys {
			out = append(out, fieldAddress{kind: KindImage, image: image, key: key})
		}
	}
	return out, nil
}

// findKustomization is the name of a root's kustomization; "" where it has none.
func (c *commitFiles) findKustomization(root string) (string, error) {
	have := ""
	for _, name := range kustomizations {
		_, err := c.statPath(joinRoot(root, name))
		switch {
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return "", err
		case have != "":
			return "", &RefusedError{File: joinRoot(root, name), Reason: "the folder also has a " + have +
				", and kustomize takes only one: remove one"}
		}
		have = name
	}
	return have, nil
}

func (c *commitFiles) locatePaths(b *resolvedOverlay, root string, e *carryEntry) ([]Location, error) {
	files, err := c.globFiles(b, root, e)
	if err != nil {
		return nil, err
	}
	var found []Location
	for _, file := range files {
		at := joinRoot(root, file.name)
		if c.skipsFile(at) {
			continue
		}
		d, err := c.readDocument(at, e.format)
		if err != nil {
			return nil, err
		}
		for _, t := range e.paths {
			places, err := d.expandTemplate(t)
			if err != nil {
				return nil, withLocation(err, at, t.filled.String())
			}
			for _, p := range places {
				l, ok, err := locateField(d, root, file, fieldAddress{kind: e.format.fieldKind(), path: p.path}, p.placeholderPath.String())
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

func locateField(d *document, root string, file pickedFile, a fieldAddress, place string) (Location, bool, error) {
	v, err := d.readField(a)
	if err != nil {
		return Location{}, false, withLocation(err, joinRoot(root, file.name), "")
	}
	field := Field{Kind: a.kind, File: file.placeholderName, Path: place, Value: v.value, Type: v.typ}
	return Location{Root: root, File: joinRoot(root, file.name), Line: v.line, Field: field, address: a}, v.ok, nil
}

// globFiles lists the files under root that an entry picks, sorted. Symlinks aren't
// followed; one that matches is refused when it is read.
func (c *commitFiles) globFiles(b *resolvedOverlay, root string, e *carryEntry) ([]pickedFile, error) {
	sub, err := fs.Sub(c.tree, root)
	if err != nil {
		return nil, fmt.Errorf("entering %s: %w", root, err)
	}
	seen := map[string]bool{}
	var out []pickedFile
	for _, g := range e.files {
		err := doublestar.GlobWalk(sub, g.filled, func(name string, entry fs.DirEntry) error {
			if entry.IsDir() || seen[name] || !b.mayHoldFile(root, name) {
				return nil
			}
			if len(seen) == maxFiles {
				return fmt.Errorf("the patterns match more than %d files under %s: narrow them", maxFiles, root)
			}
			seen[name] = true
			p, ok := e.matchFile(name)
			if !ok {
				return nil // excluded
			}
			if e.fillFileName(p.placeholderName) != name {
				return &RefusedError{File: joinRoot(root, name),
					Reason: "its name has {{, which would be taken for a placeholder: rename the file"}
			}
			out = append(out, p)
			return nil
		}, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return nil, fmt.Errorf("looking for %q under %s: %w", g.filled, root, err)
		}
	}
	slices.SortFunc(out, func(a, b pickedFile) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// matchesAny matches an image's name or a remote base's address: * stays within a path segment, ** crosses.
func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := doublestar.Match(g, name)
		return ok && err == nil
	})
}
