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
	// maxBelow bounds the files of a tree.
	maxBelow = 2_000_000
)

// Bulk is what a tree may offer besides [fs.FS], so that it can be read
// fast. Trees that have it must also be fs.ReadLinkFS.
type Bulk interface {
	// List calls do for every file, symbolic link and submodule (an irregular
	// file), sorted by path byte by byte. The id stands for the content.
	List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error
	// ReadBlobs calls do for every content in the order of ids, with an error
	// for one that can't be read or has more than limit bytes.
	ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error
}

// kind is what lies at a path.
type kind uint8

const (
	missing kind = iota
	file         // or a submodule: nothing lies below it
	folder
	link // only of a path itself, never of one with its links resolved
)

// place is a path with its symbolic links resolved.
type place struct {
	path  string
	kind  kind
	links []string // passed on the way: changing one changes what is read
}

// view answers what is where in a tree. It is safe for concurrent use.
type view struct {
	tree  fs.FS
	links fs.ReadLinkFS // nil: the tree follows links itself, or has none

	// With a listing every question is answered from memory.
	bulk     Bulk
	files    []string // sorted; nil: no listing
	ids      []string
	at       map[string]int32 // file → its number
	kinds    []kind
	folders  map[string]struct{}
	anyLinks bool                // otherwise no path needs resolving
	marks    map[string][]string // folder → files in it that mark a layout

	mu    sync.Mutex
	lists map[string]contents // without a listing: what lies below a folder
}

// contents is what lies below a folder.
type contents struct {
	files []string // from the tree's root
	links []string // those of them that are symbolic links
}

// newView looks at a tree. With list it takes a whole listing first, where
// the tree offers one.
func newView(ctx context.Context, tree fs.FS, list bool) (*view, error) {
	v := &view{tree: tree, lists: map[string]contents{}}
	v.links, _ = tree.(fs.ReadLinkFS)
	bulk, ok := tree.(Bulk)
	if !ok || v.links == nil || !list {
		if _, err := fs.Stat(tree, "."); err != nil {
			return nil, err
		}
		return v, nil
	}
	v.bulk, v.marks = bulk, map[string][]string{}
	err := bulk.List(ctx, func(name string, mode fs.FileMode, id string) error {
		if len(v.files) >= maxBelow {
			return fmt.Errorf("more than %d files", maxBelow)
		}
		k := file
		if mode&fs.ModeSymlink != 0 {
			k, v.anyLinks = link, true
		}
		if base := name[strings.LastIndexByte(name, '/')+1:]; isMark(base) {
			dir := path.Dir(name)
			v.marks[dir] = append(v.marks[dir], base)
		}
		v.files, v.ids, v.kinds = append(v.files, name), append(v.ids, id), append(v.kinds, k)
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.at = make(map[string]int32, len(v.files))
	v.folders = map[string]struct{}{".": {}}
	last := "."
	for i, name := range v.files {
		v.at[name] = int32(i)
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

// lstat says what lies at a cleaned path whose folders are no links.
func (v *view) lstat(p string) (kind, error) {
	if v.at != nil {
		return v.listed(p), nil
	}
	var info fs.FileInfo
	var err error
	if v.links != nil {
		info, err = v.links.Lstat(p)
	} else {
		info, err = fs.Stat(v.tree, p)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return missing, nil
	case err != nil:
		return missing, fmt.Errorf("looking %s up: %w", p, err)
	case info.IsDir():
		return folder, nil
	case info.Mode()&fs.ModeSymlink != 0 && v.links != nil:
		return link, nil
	}
	return file, nil
}

func (v *view) listed(p string) kind {
	if i, ok := v.at[p]; ok {
		return v.kinds[i]
	}
	if _, ok := v.folders[p]; ok {
		return folder
	}
	return missing
}

// span finds the files below a folder among the listed ones.
func (v *view) span(dir string) (first, end int) {
	if dir == "." {
		return 0, len(v.files)
	}
	return below(v.files, dir)
}

// state says what lies at a name, no links followed.
func (v *view) state(name string) state {
	// A listing tells by itself; otherwise the folders above come first,
	// because a path through a link is not to be asked for.
	for i := 0; v.at == nil && v.links != nil && i < len(name); i++ {
		if name[i] != '/' {
			continue
		}
		if k, err := v.lstat(name[:i]); err != nil || k != folder {
			return absent
		}
	}
	switch k, err := v.lstat(name); {
	case err != nil || k == missing:
		return absent
	case k == folder:
		return aFolder
	}
	return present
}

// below finds the names below a folder in a sorted list.
func below(sorted []string, dir string) (first, end int) {
	first = sort.Search(len(sorted), func(i int) bool { return against(sorted[i], dir) >= 0 })
	end = first + sort.Search(len(sorted)-first, func(i int) bool { return against(sorted[first+i], dir) > 0 })
	return first, end
}

// against says whether a name sorts before all that lies below a folder (-1),
// lies below it (0), or comes after that (1).
func against(name, dir string) int {
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
func (v *view) find(p string) (place, error) {
	if v.links == nil || v.at != nil && !v.anyLinks {
		k, err := v.lstat(p)
		return place{path: p, kind: k}, err
	}
	out := place{path: ".", kind: folder}
	todo := strings.Split(p, "/")
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if out.path == "." {
				return place{links: out.links}, fmt.Errorf("the symbolic link %s: %w", out.links[len(out.links)-1], errOutside)
			}
			out.path = path.Dir(out.path)
			continue
		}
		at := path.Join(out.path, part)
		k, err := v.lstat(at)
		if err != nil {
			return place{path: at, links: out.links}, err
		}
		rest := len(todo) > 0
		switch {
		case k == link:
			if len(out.links) >= maxLinks {
				return place{path: at, links: out.links}, fmt.Errorf("%s: more than %d symbolic links on the way", p, maxLinks)
			}
			to, err := v.links.ReadLink(at)
			out.links = append(out.links, at)
			if err != nil {
				return place{path: at, links: out.links}, fmt.Errorf("reading the symbolic link %s: %w", at, err)
			}
			if path.IsAbs(to) || len(to) > maxPath {
				return place{path: at, links: out.links}, fmt.Errorf("the symbolic link %s: %w", at, errOutside)
			}
			todo = slices.Concat(strings.Split(to, "/"), todo)
		case k == missing, k == file && rest:
			if end := path.Join(append([]string{at}, todo...)...); fs.ValidPath(end) {
				at = end
			}
			return place{path: at, links: out.links}, nil
		default:
			out.path, out.kind = at, k
		}
	}
	return out, nil
}

// read returns a file's bytes, at most limit; found says where it really lies.
func (v *view) read(found place, limit int64) ([]byte, error) {
	info, err := fs.Stat(v.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found.path, err)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("reading %s: %w: its %d bytes are more than the %d that are read", found.path, errTooLarge, info.Size(), limit)
	}
	data, err := fs.ReadFile(v.tree, found.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found.path, err)
	}
	return data, nil
}

// errTooLarge marks a file that the tools may read and that isn't read here.
var errTooLarge = errors.New("it is too large")

// below lists every file below a folder whose links are resolved, the
// folder's path first in each name.
func (v *view) below(dir string) (contents, error) {
	var out contents
	if v.at != nil {
		first, end := v.span(dir)
		out.files = v.files[first:end]
		for i := first; v.anyLinks && i < end; i++ {
			if v.kinds[i] == link {
				out.links = append(out.links, v.files[i])
			}
		}
		return out, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if list, ok := v.lists[dir]; ok {
		return list, nil
	}
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

// chartSuffix is how a file's name ends that makes a folder count as a chart.
const chartSuffix = "Chart.yaml"

// isMark says that a file of this name tells something of its folder's layout.
func isMark(base string) bool {
	return strings.HasSuffix(base, chartSuffix) || slices.Contains(kustomizationNames, base)
}

// marksIn are the files in a folder that mark a layout, sorted by name.
func (v *view) marksIn(dir string) ([]string, error) {
	if v.at != nil {
		return v.marks[dir], nil
	}
	entries, err := fs.ReadDir(v.tree, dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && isMark(e.Name()) {
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

// within says that name lies below dir, and how it is called from there.
func within(dir, name string) (string, bool) {
	if dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}
