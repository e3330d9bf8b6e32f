package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// WorkingTree is a checkout's files as they are on disk, as a read-only file
// system with the same rules as Tree: what a commit of everything would hold.
// That is what git tracks and what it doesn't ignore, with the content that is
// on disk now; the list of names is of the moment when it was opened. Folders
// without such a file, ignored files, other repositories below and git's own
// folder are not there. What a sparse checkout leaves out is read from the
// index. It is safe for concurrent use.
type WorkingTree struct {
	checkout *Checkout
	root     *os.Root
	files    map[string]indexEntry // by path
	dirs     map[string]bool       // with such a file below; "." is the root
	sparse   map[string][]string   // what may be missing on disk, by folder

	linksMu sync.Mutex
	links   map[string]bool // folders that were looked at: is it a symbolic link?
}

// indexEntry is what git's index says about a file.
type indexEntry struct {
	blob   string // "": not tracked
	mode   Mode   // 0: not tracked
	sparse bool   // not on disk on purpose
}

var (
	_ fs.ReadFileFS = (*WorkingTree)(nil)
	_ fs.ReadDirFS  = (*WorkingTree)(nil)
	_ fs.StatFS     = (*WorkingTree)(nil)
	_ fs.ReadLinkFS = (*WorkingTree)(nil)
)

// WorkingTree opens the working tree; ErrInvalid when there is none. Close
// gives its folder back.
func (c *Checkout) WorkingTree(ctx context.Context) (*WorkingTree, error) {
	op := "read the working tree of " + c.Dir()
	if c.Bare() {
		return nil, &Error{Op: op, Kind: ErrInvalid, Hint: "this repository is bare: name a revision"}
	}
	list := c.gitCommand("--work-tree="+c.top, "ls-files", "-z", "-t", "--stage", "--others", "--exclude-standard")
	list.Dir = c.top
	out, err := c.runGit(ctx, list)
	if err != nil {
		return nil, c.localError(op, err)
	}
	root, err := os.OpenRoot(c.top)
	if err != nil {
		return nil, &Error{Op: op, Err: plainPath(err)}
	}
	w := &WorkingTree{checkout: c, root: root, files: map[string]indexEntry{}, dirs: map[string]bool{".": true}, sparse: map[string][]string{}, links: map[string]bool{}}
	if err := w.parseIndex(string(out)); err != nil {
		root.Close() //nolint:errcheck // only read
		return nil, &Error{Op: op, Err: err}
	}
	return w, nil
}

// Close gives the folder back.
func (w *WorkingTree) Close() error { return w.root.Close() }

// parseIndex reads "H 100644 <id> 0\tpath\0" for what is in the index and
// "? path\0" for what isn't, repeated.
func (w *WorkingTree) parseIndex(list string) error {
	for list != "" {
		line, rest, _ := strings.Cut(list, "\x00")
		list = rest
		if name, ok := strings.CutPrefix(line, "? "); ok {
			if validName(name) { // a repository of its own ends in a slash
				w.addFile(name, indexEntry{})
			}
			continue
		}
		head, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 || !validName(name) {
			return fmt.Errorf("git ls-files answers %q", shortenForLog(line))
		}
		mode, err := parseMode(f[1])
		if err != nil {
			return err
		}
		w.addFile(name, indexEntry{blob: f[2], mode: mode, sparse: f[0] == "S"})
	}
	return nil
}

func (w *WorkingTree) addFile(name string, f indexEntry) {
	w.files[name] = f
	if f.sparse {
		w.sparse[path.Dir(name)] = append(w.sparse[path.Dir(name)], path.Base(name))
	}
	for dir := path.Dir(name); !w.dirs[dir]; dir = path.Dir(dir) {
		w.dirs[dir] = true
		if f.sparse { // the folder may not be on disk either
			w.sparse[path.Dir(dir)] = append(w.sparse[path.Dir(dir)], path.Base(dir))
		}
	}
}

// statPath finds out what is at a name: on disk, or in the index for what a sparse
// checkout leaves out.
func (w *WorkingTree) statPath(op, name string) (mode Mode, size int64, blob string, err error) {
	fail := func(err error) (Mode, int64, string, error) {
		return 0, 0, "", &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !validName(name) {
		return fail(fs.ErrInvalid)
	}
	if err := w.checkNoLinks(name); err != nil {
		return fail(err)
	}
	f, isFile := w.files[name]
	if !isFile && !w.dirs[name] {
		return fail(fs.ErrNotExist)
	}
	// No folder on the way is a link, so this stays below the root.
	info, err := os.Lstat(filepath.Join(w.checkout.top, filepath.FromSlash(name)))
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.sparse:
		return f.mode, -1, f.blob, nil
	case errors.Is(err, fs.ErrNotExist) && w.isSparse(name):
		return Directory, 0, "", nil
	case errors.Is(err, syscall.ENOTDIR):
		return fail(fs.ErrNotExist) // a file is where a folder was
	case err != nil:
		return fail(plainError(err))
	}
	switch mode = w.gitMode(name, info.Mode(), f); mode {
	case 0:
		return fail(fs.ErrNotExist)
	case Directory, Submodule:
		return mode, 0, "", nil
	}
	return mode, info.Size(), "", nil
}

// gitMode is what git would make of what is on disk; 0 for nothing.
func (w *WorkingTree) gitMode(name string, on fs.FileMode, f indexEntry) Mode {
	switch {
	case on.IsDir() && f.mode == Submodule:
		return Submodule
	case on.IsDir() && w.dirs[name]:
		return Directory
	case on.IsRegular() && on&0o100 != 0:
		return Executable
	case on.IsRegular():
		return Regular
	case on&fs.ModeSymlink != 0:
		return Symlink
	}
	return 0 // a folder where a file was, a pipe, a device
}

func (w *WorkingTree) isSparse(dir string) bool {
	return slices.Contains(w.sparse[path.Dir(dir)], path.Base(dir))
}

// checkNoLinks makes sure that no folder on the way is a symbolic link: git doesn't
// look behind those either.
func (w *WorkingTree) checkNoLinks(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if f, ok := w.files[dir]; ok && (f.mode == Submodule || w.isLink(dir)) {
			return ErrNotFollowed
		}
		if !w.dirs[dir] {
			return fs.ErrNotExist
		}
		if w.isLink(dir) {
			return ErrNotFollowed
		}
	}
	return nil
}

func (w *WorkingTree) isLink(name string) bool {
	w.linksMu.Lock()
	defer w.linksMu.Unlock()
	link, known := w.links[name]
	if !known {
		info, err := os.Lstat(filepath.Join(w.checkout.top, filepath.FromSlash(name)))
		link = err == nil && info.Mode()&fs.ModeSymlink != 0
		w.links[name] = link
	}
	return link
}

// Open opens a file, read whole into memory, or a folder.
func (w *WorkingTree) Open(name string) (fs.File, error) {
	mode, size, blob, err := w.statPath("open", name)
	if err != nil {
		return nil, err
	}
	info := &fileInfo{name: path.Base(name), mode: mode, size: max(size, 0)}
	if mode == Directory {
		entries, err := w.listFolder("open", name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: info, entries: entries}, nil
	}
	data, err := w.readContent("open", name, mode, blob)
	if err != nil {
		return nil, err
	}
	return &openFile{info: info, Reader: bytes.NewReader(data)}, nil
}

// ReadFile reads a file; the bytes are the caller's.
func (w *WorkingTree) ReadFile(name string) ([]byte, error) {
	mode, _, blob, err := w.statPath("read", name)
	if err != nil {
		return nil, err
	}
	return w.readContent("read", name, mode, blob)
}

func (w *WorkingTree) readContent(op, name string, mode Mode, blob string) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	switch mode {
	case Directory:
		return fail(errors.New("is a folder"))
	case Symlink, Submodule:
		return fail(ErrNotFollowed)
	}
	if blob != "" {
		o, err := w.checkout.readObject(blob)
		if errors.Is(err, errMissing) {
			err = &Error{Op: "read object " + blob, Kind: ErrCorrupt, Hint: w.checkout.remedy}
		}
		if err != nil {
			return fail(err)
		}
		return o.data, nil
	}
	// It may have become a pipe since: opening that must not wait for a writer.
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fail(plainError(err))
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err == nil && len(data) > MaxFileSize {
		err = fmt.Errorf("%w: it is larger than the %d bytes that are read", ErrTooLarge, MaxFileSize)
	}
	if err != nil {
		return fail(plainError(err))
	}
	return data, nil
}

// List calls do for every file, symbolic links and submodules included, sorted
// by path byte by byte, without walking the folders on disk. The id is empty:
// what a file holds is not looked at. An error of do ends the listing and is
// returned.
func (w *WorkingTree) List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		mode, _, _, err := w.statPath("list", name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFollowed), err == nil && mode == Directory:
			continue // in the index, but not on disk
		case err != nil:
			return err
		}
		if err := do(name, mode.FS(), ""); err != nil {
			return err
		}
	}
	return nil
}

// ReadDir lists a folder, sorted by name.
func (w *WorkingTree) ReadDir(name string) ([]fs.DirEntry, error) {
	mode, _, _, err := w.statPath("readdir", name)
	if err != nil {
		return nil, err
	}
	switch mode {
	case Directory:
	case Symlink, Submodule:
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: ErrNotFollowed}
	default:
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("is not a folder")}
	}
	return w.listFolder("readdir", name)
}

// listFolder takes names and kinds from the disk, and which of them count from git.
func (w *WorkingTree) listFolder(op, name string) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	seen := map[string]bool{}
	on, err := w.readDiskDir(name)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || len(w.sparse[name]) == 0) {
		return nil, &fs.PathError{Op: op, Path: name, Err: plainError(err)}
	}
	for _, e := range on {
		at := path.Join(name, e.Name())
		f, isFile := w.files[at]
		if !isFile && !w.dirs[at] {
			continue
		}
		if mode := w.gitMode(at, e.Type(), f); mode != 0 {
			seen[e.Name()] = true
			out = append(out, workingDirEntry{w: w, path: at, mode: mode})
		}
	}
	for _, base := range w.sparse[name] {
		if at := path.Join(name, base); !seen[base] {
			seen[base] = true
			mode := w.files[at].mode
			if w.dirs[at] {
				mode = Directory
			}
			out = append(out, workingDirEntry{w: w, path: at, mode: mode})
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

func (w *WorkingTree) readDiskDir(name string) ([]fs.DirEntry, error) {
	dir, err := w.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	return dir.ReadDir(-1)
}

// Stat describes a file or folder; a link describes itself.
func (w *WorkingTree) Stat(name string) (fs.FileInfo, error) {
	mode, size, blob, err := w.statPath("stat", name)
	if err != nil {
		return nil, err
	}
	if size < 0 {
		o, err := w.checkout.findObject(blob)
		if err != nil {
			return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		size = o.size
	}
	return &fileInfo{name: path.Base(name), mode: mode, size: size}, nil
}

// Lstat is Stat: links are never followed.
func (w *WorkingTree) Lstat(name string) (fs.FileInfo, error) { return w.Stat(name) }

// ReadLink is a symbolic link's target as it is written.
func (w *WorkingTree) ReadLink(name string) (string, error) {
	mode, _, blob, err := w.statPath("readlink", name)
	if err == nil && mode != Symlink {
		err = &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return "", err
	}
	if blob != "" {
		o, err := w.checkout.readObject(blob)
		if err != nil {
			return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
		}
		return string(o.data), nil
	}
	to, err := w.root.Readlink(name)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: plainError(err)}
	}
	return to, nil
}

// plainError drops the operation and the path, which the caller names.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// workingDirEntry is an entry of a listed folder.
type workingDirEntry struct {
	w    *WorkingTree
	path string
	mode Mode
}

func (e workingDirEntry) Name() string               { return path.Base(e.path) }
func (e workingDirEntry) IsDir() bool                { return e.mode == Directory }
func (e workingDirEntry) Type() fs.FileMode          { return e.mode.FS().Type() }
func (e workingDirEntry) Info() (fs.FileInfo, error) { return e.w.Stat(e.path) }
func (e workingDirEntry) String() string             { return fs.FormatDirEntry(e) }
