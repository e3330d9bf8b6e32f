package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxPeeked bounds the files that were sent with their facts and not yet read.
const maxPeeked = 8 << 20

// remoteTree is the parent's tree as the child sees it: fs.ReadFileFS,
// fs.ReadDirFS, fs.StatFS and fs.ReadLinkFS, safe for concurrent use. What a
// link means, and whether one is followed, is as in the parent's tree.
// Permissions and times are not told: files are 0444, folders 0555.
type remoteTree struct {
	conn *conn
	tree string // its name; empty: the main one

	mu      sync.Mutex
	folders map[string][]entry // all that were listed; commits don't change
	peeked  map[string][]byte
	size    int // of peeked
}

var (
	_ fs.ReadFileFS = (*remoteTree)(nil)
	_ fs.ReadDirFS  = (*remoteTree)(nil)
	_ fs.StatFS     = (*remoteTree)(nil)
	_ fs.ReadLinkFS = (*remoteTree)(nil)
)

func newRemoteTree(c *conn, name string) *remoteTree {
	return &remoteTree{conn: c, tree: name, folders: map[string][]entry{}, peeked: map[string][]byte{}}
}

// trees are the child's way to the parent's.
func (c *conn) trees() Trees {
	return Trees{
		Main: newRemoteTree(c, ""),
		Named: func(_ context.Context, name string) (fs.FS, error) {
			if name == "" {
				return nil, errors.New("opening a tree: it needs a name")
			}
			t := newRemoteTree(c, name)
			if _, err := t.facts("."); err != nil { // opens it
				return nil, err
			}
			return t, nil
		},
	}
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// list is a folder's entries. The parent sends folders below it along, as many
// as fit, so that a walk doesn't ask for each.
func (t *remoteTree) list(name string) ([]entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entries, ok := t.folders[name]; ok {
		return entries, nil
	}
	payload, err := t.conn.ask(frameList, t.tree, name)
	if err != nil {
		return nil, err
	}
	folders, err := readFolders(payload)
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		t.folders[f.name] = f.entries
	}
	entries, ok := t.folders[name]
	if !ok {
		return nil, fmt.Errorf("%w: asked for the folder %q, got another", errProtocol, clip(name, 80))
	}
	return entries, nil
}

// errUnsure says that listings don't tell what a name is: there is a link, or
// something that is neither file nor folder, on the way.
var errUnsure = errors.New("not told by listings")

// find looks a name up in the listings of the folders above it.
func (t *remoteTree) find(name string) (fs.FileMode, error) {
	if name == "." {
		return fs.ModeDir, nil
	}
	dir, rest := ".", name
	for {
		entries, err := t.list(dir)
		if err != nil {
			return 0, err
		}
		part, below, deeper := strings.Cut(rest, "/")
		i, found := slices.BinarySearchFunc(entries, part, func(e entry, name string) int { return strings.Compare(e.name, name) })
		switch {
		case !found:
			return 0, fs.ErrNotExist
		case !deeper:
			return entries[i].mode, nil
		case entries[i].mode != fs.ModeDir:
			return 0, errUnsure
		}
		dir, rest = join(dir, part), below
	}
}

// facts asks what is at a name, and keeps its bytes if they come along.
func (t *remoteTree) facts(name string) (facts, error) {
	payload, err := t.conn.ask(frameStat, t.tree, name)
	if err != nil {
		return facts{}, err
	}
	f, err := readFacts(payload)
	if err != nil || !f.hasData {
		return f, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size += len(f.data); t.size > maxPeeked {
		clear(t.peeked)
		t.size = len(f.data)
	}
	t.size -= len(t.peeked[name])
	t.peeked[name] = f.data
	return f, nil
}

// Stat describes what is at a name, as the parent's tree does.
func (t *remoteTree) Stat(name string) (fs.FileInfo, error) {
	return t.stat("stat", name)
}

func (t *remoteTree) stat(op, name string) (fs.FileInfo, error) {
	if !validName(name) {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	if mode, err := t.find(name); err == nil && mode == fs.ModeDir {
		return &info{name: path.Base(name), mode: mode}, nil
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, pathError(op, name, fs.ErrNotExist)
	}
	f, err := t.facts(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return &info{name: path.Base(name), mode: f.mode, size: f.size}, nil
}

// Lstat describes what is at a name without following it. The size is asked
// for when it is; one that can't be had is 0, and reading says why.
func (t *remoteTree) Lstat(name string) (fs.FileInfo, error) {
	if !validName(name) {
		return nil, pathError("lstat", name, fs.ErrInvalid)
	}
	mode, err := t.find(name)
	if errors.Is(err, errUnsure) {
		return t.stat("lstat", name)
	}
	if err != nil {
		return nil, pathError("lstat", name, err)
	}
	return t.lazy(name, mode), nil
}

// lazy describes an entry whose type is known and whose size isn't yet.
func (t *remoteTree) lazy(name string, mode fs.FileMode) *info {
	i := &info{name: path.Base(name), mode: mode}
	if mode.IsRegular() {
		i.ask = sync.OnceValue(func() int64 {
			f, err := t.facts(name)
			if err != nil {
				return 0
			}
			return f.size
		})
	}
	return i
}

// ReadLink is a symbolic link's text.
func (t *remoteTree) ReadLink(name string) (string, error) {
	if !validName(name) {
		return "", pathError("readlink", name, fs.ErrInvalid)
	}
	payload, err := t.conn.ask(frameLink, t.tree, name)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return string(payload), nil
}

// ReadFile reads a file; the bytes are the caller's.
func (t *remoteTree) ReadFile(name string) ([]byte, error) {
	return t.read("read", name)
}

func (t *remoteTree) read(op, name string) ([]byte, error) {
	if !validName(name) {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	t.mu.Lock()
	data, ok := t.peeked[name]
	delete(t.peeked, name)
	t.size -= len(data)
	t.mu.Unlock()
	if ok {
		return data, nil
	}
	if _, err := t.find(name); errors.Is(err, fs.ErrNotExist) {
		return nil, pathError(op, name, fs.ErrNotExist)
	}
	data, err := t.conn.ask(frameFile, t.tree, name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return data, nil
}

// ReadDir lists a folder, sorted by name.
func (t *remoteTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if !validName(name) {
		return nil, pathError("readdir", name, fs.ErrInvalid)
	}
	entries, err := t.list(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = dirEntry{tree: t, dir: name, entry: e}
	}
	return out, nil
}

// Open opens a file, read whole, or a folder.
func (t *remoteTree) Open(name string) (fs.File, error) {
	i, err := t.stat("open", name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		entries, err := t.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: i, entries: entries}, nil
	}
	data, err := t.read("open", name)
	if err != nil {
		return nil, err
	}
	return &openFile{Reader: bytes.NewReader(data), info: i}, nil
}

// info describes a file or folder.
type info struct {
	name string
	mode fs.FileMode // its type bits
	size int64
	ask  func() int64 // for a size that isn't known yet; nil when it is
}

func (i *info) Name() string { return i.name }

func (i *info) Size() int64 {
	if i.ask != nil {
		return i.ask()
	}
	return i.size
}

func (i *info) Mode() fs.FileMode {
	if i.IsDir() {
		return i.mode | 0o555
	}
	return i.mode | 0o444
}

func (i *info) ModTime() time.Time { return time.Time{} }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return nil }

type dirEntry struct {
	tree *remoteTree
	dir  string
	entry
}

func (d dirEntry) Name() string      { return d.name }
func (d dirEntry) IsDir() bool       { return d.mode.IsDir() }
func (d dirEntry) Type() fs.FileMode { return d.mode }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d dirEntry) Info() (fs.FileInfo, error) {
	return d.tree.lazy(join(d.dir, d.name), d.mode), nil
}

type openFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, pathError("read", d.info.Name(), errors.New("is a folder"))
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := d.entries
		d.entries = nil
		return out, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	out := d.entries[:n:n]
	d.entries = d.entries[n:]
	return out, nil
}
