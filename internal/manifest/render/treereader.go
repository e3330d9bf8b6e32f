package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// ReadSet is what a rendering read, from the tree's root, each list sorted. While all of it stays
// as it is, so does the rendering.
type ReadSet struct {
	Files   []string `json:"files,omitempty"`   // read
	Links   []string `json:"links,omitempty"`   // symbolic links that were followed
	Folders []string `json:"folders,omitempty"` // listed
	Absent  []string `json:"absent,omitempty"`  // asked for, and not there
	// Revision says that the commit's name was read, through $ARGOCD_APP_REVISION.
	Revision bool `json:"revision,omitempty"`
	// Branches are the parts of Input.Branches that were read.
	Branches map[string]ReadSet `json:"branches,omitempty"`
}

// isEmpty says that nothing was read.
func (r *ReadSet) isEmpty() bool { return len(r.Files)+len(r.Links)+len(r.Folders)+len(r.Absent) == 0 }

// pathKind is what lies at a path.
type pathKind int

const (
	kindMissing pathKind = iota
	kindFile
	kindFolder
)

// location is a path with its symbolic links resolved.
type location struct {
	path string
	kind pathKind
}

// errOutside marks a path that leads out of the tree.
var errOutside = errors.New("it leads out of the repository")

// treeReader is the tree as one rendering sees it: symbolic links are followed
// within it, everything is bounded and noted. It isn't safe for concurrent use.
type treeReader struct {
	ctx    context.Context // one rendering, one context
	tree   fs.FS
	linkFS fs.ReadLinkFS // nil: the tree follows links itself, or has none

	locations map[string]location
	accesses  int
	bytesRead int
	seen      [4]map[string]bool // files, links, folders, absent
}

const (
	sawFile = iota
	sawLink
	sawFolder
	sawAbsent
)

func newTreeReader(ctx context.Context, tree fs.FS) *treeReader {
	f := &treeReader{ctx: ctx, tree: tree, locations: map[string]location{}}
	f.linkFS, _ = tree.(fs.ReadLinkFS)
	for i := range f.seen {
		f.seen[i] = map[string]bool{}
	}
	return f
}

// readSet is what was read so far.
func (t *treeReader) readSet() ReadSet {
	list := func(kind int) []string { return slices.Sorted(maps.Keys(t.seen[kind])) }
	return ReadSet{Files: list(sawFile), Links: list(sawLink), Folders: list(sawFolder), Absent: list(sawAbsent)}
}

func (t *treeReader) countAccess() error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.accesses++; t.accesses > maxAccesses {
		return fmt.Errorf("%w: more than %d looks at files", ErrLimit, maxAccesses)
	}
	return nil
}

// find looks a path from the tree's root up. That nothing is there is no error.
func (t *treeReader) find(p string) (location, error) {
	clean, ok := cleanTreePath(p)
	if !ok {
		return location{}, fmt.Errorf("%s: %w", p, errOutside)
	}
	if !fs.ValidPath(clean) {
		return location{path: clean}, nil // git may have such a name, no layout refers to it
	}
	return t.findAt(clean, 0)
}

func (t *treeReader) findAt(p string, depth int) (location, error) {
	if found, ok := t.locations[p]; ok {
		return found, nil
	}
	if err := t.countAccess(); err != nil {
		return location{}, err
	}
	found, err := t.resolveLinks(p, depth)
	if err != nil {
		return location{}, err
	}
	if found.kind == kindMissing {
		t.seen[sawAbsent][found.path] = true
	}
	t.locations[p] = found
	return found, nil
}

func (t *treeReader) resolveLinks(p string, depth int) (location, error) {
	if depth > maxLinks {
		return location{}, fmt.Errorf("%s: more than %d symbolic links in a row", p, maxLinks)
	}
	if t.linkFS == nil || p == "." {
		info, err := fs.Stat(t.tree, p)
		return newLocation(p, info, err)
	}
	parent, err := t.findAt(path.Dir(p), depth)
	if err != nil {
		return location{}, err
	}
	at := path.Join(parent.path, path.Base(p))
	if parent.kind != kindFolder {
		return location{path: at}, nil
	}
	if at != p {
		return t.findAt(at, depth)
	}
	info, err := t.linkFS.Lstat(at)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return newLocation(at, info, err)
	}
	to, err := t.linkFS.ReadLink(at)
	if err != nil {
		return location{}, fmt.Errorf("reading the symbolic link %s: %w", at, err)
	}
	t.seen[sawLink][at] = true
	next, ok := cleanTreePath(path.Join(path.Dir(at), to))
	if !ok || path.IsAbs(to) || !fs.ValidPath(next) {
		return location{}, fmt.Errorf("the symbolic link %s: %w", at, errOutside)
	}
	return t.findAt(next, depth+1)
}

// newLocation is what looking a path up gave.
func newLocation(p string, info fs.FileInfo, err error) (location, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return location{path: p}, nil
	case err != nil:
		return location{}, fmt.Errorf("looking %s up: %w", p, err)
	case info.IsDir():
		return location{path: p, kind: kindFolder}, nil
	case !info.Mode().IsRegular():
		return location{}, newUnrenderable(fmt.Sprintf("%s is a submodule or another special file, whose content is not in this repository",
			p))
	}
	return location{path: p, kind: kindFile}, nil
}

// lfsHeader is how a file begins that git keeps elsewhere.
var lfsHeader = []byte("version https://git-lfs.github.com/spec/")

// read returns a file's bytes. A path where no file is gives fs.ErrNotExist.
func (t *treeReader) read(p string) ([]byte, error) {
	found, err := t.find(p)
	if err != nil {
		return nil, err
	}
	if found.kind != kindFile {
		return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	if err := t.countAccess(); err != nil {
		return nil, err
	}
	info, err := fs.Stat(t.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p, err)
	}
	if info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("reading %s: %w: it has %d bytes, more than %d", p, ErrLimit, info.Size(), MaxFileBytes)
	}
	data, err := fs.ReadFile(t.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p, err)
	}
	t.seen[sawFile][found.path] = true
	if t.bytesRead += len(data); t.bytesRead > maxReadBytes || len(data) > MaxFileBytes {
		return nil, fmt.Errorf("reading %s: %w: more than %d bytes in all", p, ErrLimit, maxReadBytes)
	}
	if bytes.HasPrefix(data, lfsHeader) {
		return nil, newUnrenderable(fmt.Sprintf("%s is kept in Git LFS, whose content is not in this repository", p))
	}
	return data, nil
}

// readIfFile returns a file's bytes, or false where no file is.
func (t *treeReader) readIfFile(p string) ([]byte, bool, error) {
	found, err := t.find(p)
	if err != nil || found.kind != kindFile {
		return nil, false, err
	}
	data, err := t.read(p)
	return data, err == nil, err
}

// list gives the entries of a folder, sorted by name; a symbolic link is
// listed as one.
func (t *treeReader) list(p string) ([]fs.DirEntry, error) {
	found, err := t.find(p)
	if err != nil {
		return nil, err
	}
	if found.kind != kindFolder {
		return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	if err := t.countAccess(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", p, err)
	}
	t.seen[sawFolder][found.path] = true
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
