package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Reads is what a rendering looked at, from the tree's root, each list sorted.
// While all of it stays as it is, so does the rendering.
type Reads struct {
	Files   []string `json:"files,omitempty"`   // read
	Links   []string `json:"links,omitempty"`   // symbolic links that were followed
	Folders []string `json:"folders,omitempty"` // listed
	Absent  []string `json:"absent,omitempty"`  // asked for, and not there
	// Revision says that the commit's name was read, through $ARGOCD_APP_REVISION.
	Revision bool `json:"revision,omitempty"`
	// Branches are what was looked at of Input.Branches.
	Branches map[string]Reads `json:"branches,omitempty"`
}

// none says that nothing was looked at.
func (r *Reads) none() bool { return len(r.Files)+len(r.Links)+len(r.Folders)+len(r.Absent) == 0 }

// kind is what lies at a path.
type kind int

const (
	missing kind = iota
	file
	folder
)

// place is a path with its symbolic links resolved.
type place struct {
	path string
	kind kind
}

// errOutside marks a path that leads out of the tree.
var errOutside = errors.New("it leads out of the repository")

// files is the tree as one rendering sees it: symbolic links are followed
// within it, everything is bounded and noted. It isn't safe for concurrent use.
type files struct {
	ctx   context.Context //nolint:containedctx // one rendering, one context
	tree  fs.FS
	links fs.ReadLinkFS // nil: the tree follows links itself, or has none

	places map[string]place
	looks  int
	bytes  int
	seen   [4]map[string]bool // files, links, folders, absent
}

const (
	sawFile = iota
	sawLink
	sawFolder
	sawAbsent
)

func newFiles(ctx context.Context, tree fs.FS) *files {
	f := &files{ctx: ctx, tree: tree, places: map[string]place{}}
	f.links, _ = tree.(fs.ReadLinkFS)
	for i := range f.seen {
		f.seen[i] = map[string]bool{}
	}
	return f
}

// reads is what was looked at so far.
func (f *files) reads() Reads {
	list := func(set map[string]bool) []string {
		var out []string
		for name := range set {
			out = append(out, name)
		}
		slices.Sort(out)
		return out
	}
	return Reads{Files: list(f.seen[sawFile]), Links: list(f.seen[sawLink]), Folders: list(f.seen[sawFolder]), Absent: list(f.seen[sawAbsent])}
}

func (f *files) look() error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if f.looks++; f.looks > maxReads {
		return fmt.Errorf("%w: more than %d looks at files", ErrLimit, maxReads)
	}
	return nil
}

// find looks a path from the tree's root up. That nothing is there is no error.
func (f *files) find(p string) (place, error) {
	clean, ok := inTree(p)
	if !ok {
		return place{}, fmt.Errorf("%s: %w", p, errOutside)
	}
	if !fs.ValidPath(clean) {
		return place{path: clean}, nil // git may have such a name, no layout refers to it
	}
	return f.findAt(clean, 0)
}

func (f *files) findAt(p string, depth int) (place, error) {
	if found, ok := f.places[p]; ok {
		return found, nil
	}
	if err := f.look(); err != nil {
		return place{}, err
	}
	found, err := f.resolve(p, depth)
	if err != nil {
		return place{}, err
	}
	if found.kind == missing {
		f.seen[sawAbsent][found.path] = true
	}
	f.places[p] = found
	return found, nil
}

func (f *files) resolve(p string, depth int) (place, error) {
	if depth > maxLinks {
		return place{}, fmt.Errorf("%s: more than %d symbolic links in a row", p, maxLinks)
	}
	if f.links == nil || p == "." {
		return f.described(p, func() (fs.FileInfo, error) { return fs.Stat(f.tree, p) })
	}
	parent, err := f.findAt(path.Dir(p), depth)
	if err != nil {
		return place{}, err
	}
	at := path.Join(parent.path, path.Base(p))
	if parent.kind != folder {
		return place{path: at}, nil
	}
	if at != p {
		return f.findAt(at, depth)
	}
	info, err := f.links.Lstat(at)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return f.described(at, func() (fs.FileInfo, error) { return info, err })
	}
	to, err := f.links.ReadLink(at)
	if err != nil {
		return place{}, fmt.Errorf("reading the symbolic link %s: %w", at, err)
	}
	f.seen[sawLink][at] = true
	next, ok := inTree(path.Join(path.Dir(at), to))
	if !ok || path.IsAbs(to) || !fs.ValidPath(next) {
		return place{}, fmt.Errorf("the symbolic link %s: %w", at, errOutside)
	}
	return f.findAt(next, depth+1)
}

func (f *files) described(p string, stat func() (fs.FileInfo, error)) (place, error) {
	info, err := stat()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return place{path: p}, nil
	case err != nil:
		return place{}, fmt.Errorf("looking %s up: %w", p, err)
	case info.IsDir():
		return place{path: p, kind: folder}, nil
	case !info.Mode().IsRegular():
		return place{}, unrenderable(fmt.Sprintf("%s is a submodule or another special file, whose content is not in this repository", p))
	}
	return place{path: p, kind: file}, nil
}

// lfs is how a file begins that git keeps elsewhere.
var lfs = []byte("version https://git-lfs.github.com/spec/")

// read returns a file's bytes. A path where no file is gives fs.ErrNotExist.
func (f *files) read(p string) ([]byte, error) {
	found, err := f.find(p)
	if err != nil {
		return nil, err
	}
	if found.kind != file {
		return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	if err := f.look(); err != nil {
		return nil, err
	}
	info, err := fs.Stat(f.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p, err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("reading %s: %w: it has %d bytes, more than %d", p, ErrLimit, info.Size(), maxFile)
	}
	data, err := fs.ReadFile(f.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p, err)
	}
	f.seen[sawFile][found.path] = true
	if f.bytes += len(data); f.bytes > maxRead || len(data) > maxFile {
		return nil, fmt.Errorf("reading %s: %w: more than %d bytes in all", p, ErrLimit, maxRead)
	}
	if bytes.HasPrefix(data, lfs) {
		return nil, unrenderable(fmt.Sprintf("%s is kept in Git LFS, whose content is not in this repository", p))
	}
	return data, nil
}

// list gives the entries of a folder, sorted by name; a symbolic link is
// listed as one.
func (f *files) list(p string) ([]fs.DirEntry, error) {
	found, err := f.find(p)
	if err != nil {
		return nil, err
	}
	if found.kind != folder {
		return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
	}
	if err := f.look(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", p, err)
	}
	f.seen[sawFolder][found.path] = true
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
