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

	"github.com/liftlock/liftlock/internal/wording"
)

// maxPrefetched bounds the files that were sent along and not yet read.
const maxPrefetched = 8 << 20

// remoteTree is the parent's tree as the child sees it: fs.ReadFileFS, fs.ReadDirFS, fs.StatFS and
// fs.ReadLinkFS, safe for concurrent use. The meaning of a link, and whether one is followed, is as
// in the parent's tree. Permissions and times are unknown: files are 0444, folders 0555.
type remoteTree struct {
	conn *conn
	tree string // its name; empty: the main one

	mu             sync.Mutex
	folders        map[string][]folderEntry // all that were listed; commits don't change
	prefetched     map[string][]byte
	prefetchedSize int // of prefetched
}

var (
	_ fs.ReadFileFS = (*remoteTree)(nil)
	_ fs.ReadDirFS  = (*remoteTree)(nil)
	_ fs.StatFS     = (*remoteTree)(nil)
	_ fs.ReadLinkFS = (*remoteTree)(nil)
)

func newRemoteTree(c *conn, name string) *remoteTree {
	return &remoteTree{conn: c, tree: name, folders: map[string][]folderEntry{}, prefetched: map[string][]byte{}}
}

// remoteTrees are the child's way to the parent's.
func (c *conn) remoteTrees() Trees {
	return Trees{
		Main: newRemoteTree(c, ""),
		Named: func(_ context.Context, name string) (fs.FS, error) {
			if name == "" {
				return nil, errors.New("opening a tree: it needs a name")
			}
			t := newRemoteTree(c, name)
			if _, err := t.requestStat("."); err != nil { // opens it
				return nil, err
			}
			return t, nil
		},
	}
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// listFolder is a folder's entries. The parent sends folders below it along, as many
// as fit, so that a walk doesn't ask for each.
func (r *remoteTree) listFolder(name string) ([]folderEntry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entries, ok := r.folders[name]; ok {
		return entries, nil
	}
	payload, err := r.conn.roundTrip(frameList, r.tree, name)
	if err != nil {
		return nil, err
	}
	folders, err := readFolders(payload)
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		r.folders[f.name] = f.entries
	}
	entries, ok := r.folders[name]
	if !ok {
		return nil, fmt.Errorf("%w: asked for the folder %q, got another", errProtocol, wording.Clip(name, 80))
	}
	return entries, nil
}

// errTypeUnknown says that listings don't show what a name is: there is a link, or
// something that is neither file nor folder, on the way.
var errTypeUnknown = errors.New("not told by listings")

// lookupMode looks a name up in the listings of the folders above it.
func (r *remoteTree) lookupMode(name string) (fs.FileMode, error) {
	if name == "." {
		return fs.ModeDir, nil
	}
	dir, rest := ".", name
	for {
		entries, err := r.listFolder(dir)
		if err != nil {
			return 0, err
		}
		part, below, deeper := strings.Cut(rest, "/")
		i, found := slices.BinarySearchFunc(entries, part, func(e folderEntry, name string) int { return strings.Compare(e.name, name) })
		switch {
		case !found:
			return 0, fs.ErrNotExist
		case !deeper:
			return entries[i].mode, nil
		case entries[i].mode != fs.ModeDir:
			return 0, errTypeUnknown
		}
		dir, rest = joinName(dir, part), below
	}
}

// requestStat asks what is at a name, and keeps its bytes if they come along.
func (r *remoteTree) requestStat(name string) (statReply, error) {
	payload, err := r.conn.roundTrip(frameStat, r.tree, name)
	if err != nil {
		return statReply{}, err
	}
	f, err := readStatReply(payload)
	if err != nil || !f.hasData {
		return f, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prefetchedSize += len(f.data); r.prefetchedSize > maxPrefetched {
		clear(r.prefetched)
		r.prefetchedSize = len(f.data)
	}
	r.prefetchedSize -= len(r.prefetched[name])
	r.prefetched[name] = f.data
	return f, nil
}

// Stat describes what is at a name, as the parent's tree does.
func (r *remoteTree) Stat(name string) (fs.FileInfo, error) {
	return r.statAs("stat", name)
}

func (r *remoteTree) statAs(op, name string) (fs.FileInfo, error) {
	if !validName(name) {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	if mode, err := r.lookupMode(name); err == nil && mode == fs.ModeDir {
		return &fileInfo{name: path.Base(name), mode: mode}, nil
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, pathError(op, name, fs.ErrNotExist)
	}
	f, err := r.requestStat(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return &fileInfo{name: path.Base(name), mode: f.mode, size: f.size}, nil
}

// Lstat describes what is at a name without following it. The size is asked
// for when it is; one that can't be had is 0, and reading says why.
func (r *remoteTree) Lstat(name string) (fs.FileInfo, error) {
	if !validName(name) {
		return nil, pathError("lstat", name, fs.ErrInvalid)
	}
	mode, err := r.lookupMode(name)
	if errors.Is(err, errTypeUnknown) {
		return r.statAs("lstat", name)
	}
	if err != nil {
		return nil, pathError("lstat", name, err)
	}
	return r.newLazyInfo(name, mode), nil
}

// newLazyInfo describes an entry whose type is known and whose size isn't yet.
func (r *remoteTree) newLazyInfo(name string, mode fs.FileMode) *fileInfo {
	i := &fileInfo{name: path.Base(name), mode: mode}
	if mode.IsRegular() {
		i.loadSize = sync.OnceValue(func() int64 {
			f, err := r.requestStat(name)
			if err != nil {
				return 0
			}
			return f.size
		})
	}
	return i
}

// ReadLink is a symbolic link's text.
func (r *remoteTree) ReadLink(name string) (string, error) {
	if !validName(name) {
		return "", pathError("readlink", name, fs.ErrInvalid)
	}
	payload, err := r.conn.roundTrip(frameLink, r.tree, name)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return string(payload), nil
}

// ReadFile reads a file; the bytes are the caller's.
func (r *remoteTree) ReadFile(name string) ([]byte, error) {
	return r.readFile("read", name)
}

func (r *remoteTree) readFile(op, name string) ([]byte, error) {
	if !validName(name) {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	r.mu.Lock()
	data, ok := r.prefetched[name]
	delete(r.prefetched, name)
	r.prefetchedSize -= len(data)
	r.mu.Unlock()
	if ok {
		return data, nil
	}
	if _, err := r.lookupMode(name); errors.Is(err, fs.ErrNotExist) {
		return nil, pathError(op, name, fs.ErrNotExist)
	}
	data, err := r.conn.roundTrip(frameFile, r.tree, name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return data, nil
}

// ReadDir lists a folder, sorted by name.
func (r *remoteTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if !validName(name) {
		return nil, pathError("readdir", name, fs.ErrInvalid)
	}
	entries, err := r.listFolder(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = dirEntry{tree: r, dir: name, folderEntry: e}
	}
	return out, nil
}

// Open opens a file, read whole, or a folder.
func (r *remoteTree) Open(name string) (fs.File, error) {
	i, err := r.statAs("open", name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		entries, err := r.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: i, entries: entries}, nil
	}
	data, err := r.readFile("open", name)
	if err != nil {
		return nil, err
	}
	return &openFile{Reader: bytes.NewReader(data), info: i}, nil
}

// fileInfo describes a file or folder.
type fileInfo struct {
	name     string
	mode     fs.FileMode // its type bits
	size     int64
	loadSize func() int64 // for a size that isn't known yet; nil when it is
}

func (f *fileInfo) Name() string { return f.name }

func (f *fileInfo) Size() int64 {
	if f.loadSize != nil {
		return f.loadSize()
	}
	return f.size
}

func (f *fileInfo) Mode() fs.FileMode {
	if f.IsDir() {
		return f.mode | 0o555
	}
	return f.mode | 0o444
}

func (f *fileInfo) ModTime() time.Time { return time.Time{} }
func (f *fileInfo) IsDir() bool        { return f.mode.IsDir() }
func (f *fileInfo) Sys() any           { return nil }

type dirEntry struct {
	tree *remoteTree
	dir  string
	folderEntry
}

func (d dirEntry) Name() string      { return d.name }
func (d dirEntry) IsDir() bool       { return d.mode.IsDir() }
func (d dirEntry) Type() fs.FileMode { return d.mode }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d dirEntry) Info() (fs.FileInfo, error) {
	return d.tree.newLazyInfo(joinName(d.dir, d.name), d.mode), nil
}

type openFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openFile) Close() error               { return nil }

type openDir struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, pathError("read", o.info.Name(), errors.New("is a folder"))
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := o.entries
		o.entries = nil
		return out, nil
	}
	if len(o.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.entries))
	out := o.entries[:n:n]
	o.entries = o.entries[n:]
	return out, nil
}
