package deps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
)

const (
	// maxFile bounds a file that is parsed; the slowest YAML takes a
	// microsecond a byte.
	maxFile = 1 << 20
	// maxScanned bounds a file that is only looked through for some words.
	maxScanned = 16 << 20
	// maxLinks bounds the symbolic links passed on the way to one path, as
	// the kernel does.
	maxLinks = 40
	// maxTreeFiles bounds the files of a tree.
	maxTreeFiles = 2_000_000
)

// BulkFS is what a tree may offer besides [fs.FS], so that it can be read
// fast. Trees that have it must also be fs.ReadLinkFS.
type BulkFS interface {
	// List calls do for every file, symbolic link and submodule (an irregular
	// file), sorted by path byte by byte. The id stands for the content.
	List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error
	// ReadBlobs calls do for every content in the order of ids, with an error
	// for one that can't be read or has more than limit bytes.
	ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error
}

// pathKind is what lies at a path.
type pathKind uint8

const (
	kindMissing pathKind = iota
	kindFile             // or a submodule: nothing lies below it
	kindFolder
	kindLink // only of a path itself, never of one with its links resolved
)

// location is a path with its symbolic links resolved.
type location struct {
	path  string
	kind  pathKind
	links []string // passed on the way: changing one changes what is read
}

// treeView answers what is where in a tree. It is safe for concurrent use.
type treeView struct {
	tree   fs.FS
	linkFS fs.ReadLinkFS // nil: the tree follows links itself, or has none

	// With a listing every question is answered from memory.
	bulk        BulkFS
	files       []string // sorted; nil: no listing
	ids         []string
	fileNumbers map[string]int32 // file → its number
	kinds       []pathKind
	folders     map[string]struct{}
	hasLinks    bool                // otherwise no path needs resolving
	layoutFiles map[string][]string // folder → files in it that mark a layout

	mu            sync.Mutex
	contentsCache map[string]folderContents // without a listing: what lies below a folder
}

// folderContents is what lies below a folder.
type folderContents struct {
	files []string // from the tree's root
	links []string // those of them that are symbolic links
}

// newTreeView looks at a tree. With list it takes a whole listing first, where
// the tree offers one.
func newTreeView(ctx context.Context, tree fs.FS, list bool) (*treeView, error) {
	v := &treeView{tree: tree, contentsCache: map[string]folderContents{}}
	v.linkFS, _ = tree.(fs.ReadLinkFS)
	bulk, ok := tree.(BulkFS)
	if !ok || v.linkFS == nil || !list {
		if _, err := fs.Stat(tree, "."); err != nil {
			return nil, err
		}
		return v, nil
	}
	v.bulk, v.layoutFiles = bulk, map[string][]string{}
	err := bulk.List(ctx, func(name string, mode fs.FileMode, id string) error {
		if len(v.files) >= maxTreeFiles {
			return fmt.Errorf("more than %d files", maxTreeFiles)
		}
		k := kindFile
		if mode&fs.ModeSymlink != 0 {
			k, v.hasLinks = kindLink, true
		}
		if base := name[strings.LastIndexByte(name, '/')+1:]; isLayoutFile(base) {
			dir := path.Dir(name)
			v.layoutFiles[dir] = append(v.layoutFiles[dir], base)
		}
		v.files, v.ids, v.kinds = append(v.files, name), append(v.ids, id), append(v.kinds, k)
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.fileNumbers = make(map[string]int32, len(v.files))
	v.folders = map[string]struct{}{".": {}}
	last := "."
	for i, name := range v.files {
		v.fileNumbers[name] = int32(i)
		dir := path.Dir(name)
		if dir == last {
			continue
		}
		for last = dir; ; dir = path.Dir(dir) {
			if _, known := v.folders[dir]; known {
				break
			}
			v.folders[dir] = struct{}{}
		}
	}
	return v, nil
}

// errOutside marks a path that leads out of the tree.
var errOutside = errors.New("it leads out of the repository")

// joinPath makes p relative to the tree's root, from the folder it is written in.
func joinPath(from, p string) (string, error) {
	if path.IsAbs(p) {
		return "", fmt.Errorf("%q: %w", p, errOutside)
	}
	c := path.Join(from, p)
	if !fs.ValidPath(c) {
		return "", fmt.Errorf("%q: %w", p, errOutside)
	}
	return c, nil
}

// lstat says what lies at a cleaned path whose folders are no links.
func (t *treeView) lstat(p string) (pathKind, error) {
	if t.fileNumbers != nil {
		if i, ok := t.fileNumbers[p]; ok {
			return t.kinds[i], nil
		}
		if _, ok := t.folders[p]; ok {
			return kindFolder, nil
		}
		return kindMissing, nil
	}
	var info fs.FileInfo
	var err error
	if t.linkFS != nil {
		info, err = t.linkFS.Lstat(p)
	} else {
		info, err = fs.Stat(t.tree, p)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return kindMissing, nil
	case err != nil:
		return kindMissing, fmt.Errorf("looking %s up: %w", p, err)
	case info.IsDir():
		return kindFolder, nil
	case info.Mode()&fs.ModeSymlink != 0 && t.linkFS != nil:
		return kindLink, nil
	}
	return kindFile, nil
}

// listedRange finds the files below a folder among the listed ones.
func (t *treeView) listedRange(dir string) (first, end int) {
	if dir == "." {
		return 0, len(t.files)
	}
	return rangeBelow(t.files, dir)
}

// stateAt says what lies at a name, no links followed.
func (t *treeView) stateAt(name string) pathState {
	// A listing tells by itself; otherwise the folders above come first,
	// because a path through a link is not to be asked for.
	for i := 0; t.fileNumbers == nil && t.linkFS != nil && i < len(name); i++ {
		if name[i] != '/' {
			continue
		}
		if k, err := t.lstat(name[:i]); err != nil || k != kindFolder {
			return stateAbsent
		}
	}
	switch k, err := t.lstat(name); {
	case err != nil || k == kindMissing:
		return stateAbsent
	case k == kindFolder:
		return stateFolder
	}
	return statePresent
}

// rangeBelow finds the names below a folder in a sorted list.
func rangeBelow(sorted []string, dir string) (first, end int) {
	first = sort.Search(len(sorted), func(i int) bool { return compareToFolder(sorted[i], dir) >= 0 })
	end = first + sort.Search(len(sorted)-first, func(i int) bool { return compareToFolder(sorted[first+i], dir) > 0 })
	return first, end
}

// compareToFolder says whether a name sorts before all that lies below a folder (-1),
// lies below it (0), or comes after that (1).
func compareToFolder(name, dir string) int {
	if len(name) <= len(dir) || name[:len(dir)] != dir {
		if name <= dir {
			return -1
		}
		return 1 // it differs from dir before dir's end
	}
	return cmp.Compare(name[len(dir)], '/')
}

// find looks a cleaned path up and resolves its links as a kernel does. A
// path that is not there is no error.
func (t *treeView) find(p string) (location, error) {
	if t.linkFS == nil || t.fileNumbers != nil && !t.hasLinks {
		k, err := t.lstat(p)
		return location{path: p, kind: k}, err
	}
	out := location{path: ".", kind: kindFolder}
	todo := strings.Split(p, "/")
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if out.path == "." {
				return location{links: out.links}, fmt.Errorf("the symbolic link %s: %w", out.links[len(out.links)-1], errOutside)
			}
			out.path = path.Dir(out.path)
			continue
		}
		at := path.Join(out.path, part)
		k, err := t.lstat(at)
		if err != nil {
			return location{path: at, links: out.links}, err
		}
		rest := len(todo) > 0
		switch {
		case k == kindLink:
			if len(out.links) >= maxLinks {
				return location{path: at, links: out.links}, fmt.Errorf("%s: more than %d symbolic links on the way", p, maxLinks)
			}
			out.links = append(out.links, at)
			to, err := t.linkFS.ReadLink(at)
			if err != nil {
				err = fmt.Errorf("reading the symbolic link %s: %w", at, err)
			} else if path.IsAbs(to) || len(to) > maxPathBytes {
				err = fmt.Errorf("the symbolic link %s: %w", at, errOutside)
			}
			if err != nil {
				return location{path: at, links: out.links}, err
			}
			todo = slices.Concat(strings.Split(to, "/"), todo)
		case k == kindMissing, k == kindFile && rest:
			if end := path.Join(append([]string{at}, todo...)...); fs.ValidPath(end) {
				at = end
			}
			return location{path: at, links: out.links}, nil
		default:
			out.path, out.kind = at, k
		}
	}
	return out, nil
}

// read returns a file's bytes, at most limit; found says where it really lies.
func (t *treeView) read(found location, limit int64) ([]byte, error) {
	info, err := fs.Stat(t.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found.path, err)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("reading %s: %w: its %d bytes are more than the %d that are read", found.path, errTooLarge,
			info.Size(), limit)
	}
	data, err := fs.ReadFile(t.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found.path, err)
	}
	return data, nil
}

// errTooLarge marks a file that the tools may read and that isn't read here.
var errTooLarge = errors.New("it is too large")

// listBelow lists every file below a folder whose links are resolved, the
// folder's path first in each name.
func (t *treeView) listBelow(dir string) (folderContents, error) {
	var out folderContents
	if t.fileNumbers != nil {
		first, end := t.listedRange(dir)
		out.files = t.files[first:end]
		for i := first; t.hasLinks && i < end; i++ {
			if t.kinds[i] == kindLink {
				out.links = append(out.links, t.files[i])
			}
		}
		return out, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, ok := t.contentsCache[dir]; ok {
		return list, nil
	}
	err := fs.WalkDir(t.tree, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if out.files = append(out.files, name); len(out.files) > maxTreeFiles {
			return fmt.Errorf("more than %d files", maxTreeFiles)
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out.links = append(out.links, name)
		}
		return nil
	})
	if err != nil {
		return folderContents{}, fmt.Errorf("listing %s: %w", dir, err)
	}
	t.contentsCache[dir] = out
	return out, nil
}

// chartSuffix is how a file's name ends that makes a folder count as a chart.
const chartSuffix = "Chart.yaml"

// isLayoutFile says that a file of this name tells something of its folder's layout.
func isLayoutFile(base string) bool {
	return strings.HasSuffix(base, chartSuffix) || slices.Contains(kustomizationNames, base)
}

// layoutFilesIn are the files in a folder that mark a layout, sorted by name.
func (t *treeView) layoutFilesIn(dir string) ([]string, error) {
	if t.fileNumbers != nil {
		return t.layoutFiles[dir], nil
	}
	entries, err := fs.ReadDir(t.tree, dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && isLayoutFile(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// inFolder is a file's name from the tree's root.
func inFolder(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// cutFolder says that name lies below dir, and how it is called from there.
func cutFolder(dir, name string) (string, bool) {
	if dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}
