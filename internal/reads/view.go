package reads

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	// maxFile bounds a file that is parsed.
	maxFile = 4 << 20
	// maxLinks bounds a chain of symbolic links, as the kernel does.
	maxLinks = 40
	// maxBelow bounds the files of one folder that count as a whole.
	maxBelow = 1_000_000
)

// kind is what lies at a path.
type kind int

const (
	missing kind = iota
	file
	folder
)

// place is a path with its symbolic links resolved.
type place struct {
	path  string
	kind  kind
	links []string // passed on the way: changing one changes what is read
}

// view answers what is where in the tree, each question once. It isn't safe
// for concurrent use.
type view struct {
	tree   fs.FS
	links  fs.ReadLinkFS // nil: the tree follows links itself, or has none
	places map[string]place
	lists  map[string]contents
}

// contents is what lies below a folder.
type contents struct {
	files []string // from the tree's root
	links []string // those of them that are symbolic links
}

func newView(tree fs.FS) *view {
	v := &view{tree: tree, places: map[string]place{}, lists: map[string]contents{}}
	v.links, _ = tree.(fs.ReadLinkFS)
	return v
}

// errOutside marks a path that leads out of the tree.
var errOutside = errors.New("it leads out of the repository")

// clean makes p relative to the tree's root, from the folder it is written in.
func clean(from, p string) (string, error) {
	if path.IsAbs(p) {
		return "", fmt.Errorf("%q: %w", p, errOutside)
	}
	c := path.Join(from, p)
	if !fs.ValidPath(c) {
		return "", fmt.Errorf("%q: %w", p, errOutside)
	}
	return c, nil
}

// find looks a cleaned path up. A path that is not there is no error.
func (v *view) find(p string) (place, error) {
	return v.findAt(p, 0)
}

// findAt is find after depth links: a link to something below itself must
// come to an end.
func (v *view) findAt(p string, depth int) (place, error) {
	if found, ok := v.places[p]; ok {
		return found, nil
	}
	found, err := v.resolve(p, depth)
	if err != nil {
		return place{}, err
	}
	v.places[p] = found
	return found, nil
}

func (v *view) resolve(p string, depth int) (place, error) {
	if depth > maxLinks {
		return place{}, fmt.Errorf("%s: more than %d symbolic links in a row", p, maxLinks)
	}
	if v.links == nil || p == "." {
		return v.stat(p, v.tree)
	}
	parent, err := v.findAt(path.Dir(p), depth)
	if err != nil || parent.kind == missing {
		return place{path: p, links: parent.links}, err
	}
	at := path.Join(parent.path, path.Base(p))
	info, err := v.links.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return place{path: at, links: parent.links}, nil
	case err != nil:
		return place{}, fmt.Errorf("looking %s up: %w", p, err)
	case info.Mode()&fs.ModeSymlink == 0:
		found := place{path: at, kind: file, links: parent.links}
		if info.IsDir() {
			found.kind = folder
		}
		return found, nil
	}
	to, err := v.links.ReadLink(at)
	if err != nil {
		return place{}, fmt.Errorf("reading the symbolic link %s: %w", p, err)
	}
	next, err := clean(path.Dir(at), to)
	if err != nil {
		return place{}, fmt.Errorf("the symbolic link %s: %w", p, err)
	}
	found, err := v.resolve(next, depth+1)
	if err != nil {
		return place{}, err
	}
	found.links = append(append([]string{at}, parent.links...), found.links...)
	return found, nil
}

func (v *view) stat(p string, tree fs.FS) (place, error) {
	info, err := fs.Stat(tree, p)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return place{path: p}, nil
	case err != nil:
		return place{}, fmt.Errorf("looking %s up: %w", p, err)
	case info.IsDir():
		return place{path: p, kind: folder}, nil
	}
	return place{path: p, kind: file}, nil
}

// read returns a file's bytes; found says where it really lies.
func (v *view) read(found place) ([]byte, error) {
	info, err := fs.Stat(v.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found.path, err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("reading %s: its %d bytes are more than the %d that are read", found.path, info.Size(), maxFile)
	}
	data, err := fs.ReadFile(v.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found.path, err)
	}
	return data, nil
}

// below lists every file below a folder, the folder's path first in each name.
func (v *view) below(dir string) (contents, error) {
	if list, ok := v.lists[dir]; ok {
		return list, nil
	}
	var out contents
	err := fs.WalkDir(v.tree, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if out.files = append(out.files, name); len(out.files) > maxBelow {
			return fmt.Errorf("more than %d files", maxBelow)
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out.links = append(out.links, name)
		}
		return nil
	})
	if err != nil {
		return contents{}, fmt.Errorf("listing %s: %w", dir, err)
	}
	v.lists[dir] = out
	return out, nil
}

// within says that name lies below dir, and how it is called from there.
func within(dir, name string) (string, bool) {
	if dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}
