package appset

import (
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
	// maxTreeEntries bounds the walk over a commit.
	maxTreeEntries = 2_000_000
	// maxFile bounds one manifest or generator file. A Kubernetes object
	// can't pass 1.5 MiB; several may share a file.
	maxFile = 4 << 20
	// maxLinks bounds a chain of symbolic links, as the kernel does.
	maxLinks = 40
)

// treeListing is a commit's files and folders.
type treeListing struct {
	files []string // sorted; links included, as git lists them
	ids   []string // in the order of files, what stands for what they say; "": not known
	links map[string]bool

	sortOnce sync.Once
	folders  []string // in a walk's order; without the root and hidden ones
}

// treeLister is a tree that knows its files without being walked. The id stands
// for a file's content, or for a symbolic link's target: as long as it is the
// same, so is that.
type treeLister interface {
	List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error
}

// prefixRange is the range of the files whose paths begin with prefix.
func (t *treeListing) prefixRange(prefix string) (start, end int) {
	start = sort.SearchStrings(t.files, prefix)
	n := sort.Search(len(t.files)-start, func(i int) bool { return !strings.HasPrefix(t.files[start+i], prefix) })
	return start, start + n
}

// fileIDAt is a file's id, which says nothing for a link: it stands for the path
// that the link leads to, not for what is there.
func (t *treeListing) fileIDAt(i int) string {
	if t.links[t.files[i]] {
		return ""
	}
	return t.ids[i]
}

func (t *treeListing) fileID(name string) string {
	i, found := slices.BinarySearch(t.files, name)
	if !found {
		return ""
	}
	return t.fileIDAt(i)
}

// foldersBelow lists the folders that begin like one of the prefixes, in a
// walk's order: "a/b" before "a-b".
func (t *treeListing) foldersBelow(prefixes []string) []string {
	t.sortOnce.Do(t.sortFolders)
	if len(prefixes) == 1 {
		// Whatever begins alike is together in a walk.
		start := sort.Search(len(t.folders), func(i int) bool { return !walkLess(t.folders[i], prefixes[0]) })
		n := 0
		for start+n < len(t.folders) && strings.HasPrefix(t.folders[start+n], prefixes[0]) {
			n++
		}
		return slices.Clone(t.folders[start : start+n])
	}
	var out []string
	for _, f := range t.folders {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f, p) }) {
			out = append(out, f)
		}
	}
	return out
}

// sortFolders gives the folders, which in Git are what files' paths say, in the
// controller's order.
func (t *treeListing) sortFolders() {
	seen := map[string]bool{}
	for _, f := range t.files {
		for dir := path.Dir(f); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if !isHidden(dir) {
				t.folders = append(t.folders, dir)
			}
		}
	}
	sort.Slice(t.folders, func(i, j int) bool { return walkLess(t.folders[i], t.folders[j]) })
}

// errTree marks a failure of the tree itself, not of what is in it: worth
// another try, unlike a missing file.
var errTree = errors.New("the commit can't be read")

func treeError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return unwrapPathError(err)
	}
	return fmt.Errorf("%w: %w", errTree, unwrapPathError(err))
}

// listTree lists the whole tree once.
func listTree(ctx context.Context, tree fs.FS) (*treeListing, error) {
	l := &treeListing{links: map[string]bool{}}
	add := func(name string, mode fs.FileMode, id string) error {
		if len(l.files) == maxTreeEntries {
			return fmt.Errorf("more than %d files", maxTreeEntries)
		}
		l.files, l.ids = append(l.files, name), append(l.ids, id)
		if mode&fs.ModeSymlink != 0 {
			l.links[name] = true
		}
		return nil
	}
	if t, ok := tree.(treeLister); ok {
		if err := t.List(ctx, add); err != nil {
			return nil, fmt.Errorf("listing the commit's files: %w", treeError(err))
		}
		return l, nil
	}
	entries := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxTreeEntries {
			return fmt.Errorf("more than %d files and folders", maxTreeEntries)
		}
		if entries%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		return add(name, d.Type(), "")
	})
	if err != nil {
		return nil, fmt.Errorf("listing the commit's files: %w", treeError(err))
	}
	slices.Sort(l.files)
	return l, nil
}

func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// walkLess orders paths element by element.
func walkLess(a, b string) bool {
	for {
		ea, ra, moreA := strings.Cut(a, "/")
		eb, rb, moreB := strings.Cut(b, "/")
		if ea != eb {
			return ea < eb
		}
		if !moreA || !moreB {
			return moreB
		}
		a, b = ra, rb
	}
}

// readFile reads one file, following symbolic links that stay in the tree.
func readFile(tree fs.FS, name string) ([]byte, error) {
	real, err := followLinks(tree, name)
	if err != nil {
		return nil, err
	}
	info, err := fs.Stat(tree, real)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, treeError(err))
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("reading %s: it is a folder, not a file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("reading %s: its %d bytes are more than the %d that are read", name, info.Size(), maxFile)
	}
	data, err := fs.ReadFile(tree, real)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, treeError(err))
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("reading %s: its %d bytes are more than the %d that are read", name, len(data), maxFile)
	}
	return data, nil
}

// followLinks resolves name if it is a symbolic link. A file system that can't
// tell links apart is taken to follow them itself.
func followLinks(tree fs.FS, name string) (string, error) {
	linker, ok := tree.(fs.ReadLinkFS)
	if !ok {
		return name, nil
	}
	at := name
	for range maxLinks {
		info, err := linker.Lstat(at)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, treeError(err))
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return at, nil
		}
		to, err := linker.ReadLink(at)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, treeError(err))
		}
		next := path.Join(path.Dir(at), to)
		if path.IsAbs(to) || !fs.ValidPath(next) {
			return "", fmt.Errorf("reading %s: the symbolic link leads out of the repository", name)
		}
		at = next
	}
	return "", fmt.Errorf("reading %s: more than %d symbolic links in a row", name, maxLinks)
}

// unwrapPathError drops the operation and the path of an fs error: the caller has named
// both already.
func unwrapPathError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
