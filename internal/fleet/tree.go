package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
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

// listing is a commit's files and folders, each sorted.
type listing struct {
	files []string // links included, as git lists them
	dirs  []string // without the root and without hidden ones
	links map[string]bool
}

// errTree marks a failure of the tree itself, not of what is in it: worth
// another try, unlike a missing file.
var errTree = errors.New("the commit can't be read")

func treeError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return plain(err)
	}
	return fmt.Errorf("%w: %w", errTree, plain(err))
}

// list walks the whole tree once.
func list(ctx context.Context, tree fs.FS) (*listing, error) {
	l := &listing{links: map[string]bool{}}
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
			if name != "." && !hidden(name) {
				l.dirs = append(l.dirs, name)
			}
			return nil
		}
		l.files = append(l.files, name)
		if d.Type()&fs.ModeSymlink != 0 {
			l.links[name] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the commit's files: %w", treeError(err))
	}
	sort.Strings(l.files)
	// The controller's order: a walk's, in which "a/b" comes before "a-b".
	sort.Slice(l.dirs, func(i, j int) bool { return walkLess(l.dirs[i], l.dirs[j]) })
	return l, nil
}

func hidden(name string) bool {
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
	real, err := follow(tree, name)
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

// follow resolves name if it is a symbolic link. A file system that can't
// tell links apart is taken to follow them itself.
func follow(tree fs.FS, name string) (string, error) {
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

// plain drops the operation and the path of an fs error: the caller has named
// both already.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
