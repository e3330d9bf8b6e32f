package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Tree is one commit's files as a read-only file system: fs.FS, fs.ReadFileFS, fs.ReadDirFS,
// fs.StatFS and fs.ReadLinkFS. It is safe for concurrent use, stays valid for as long as the mirror
// has the commit, and costs nothing until it is read.
//
// Symbolic links and submodules are never followed. Stat and Lstat both report them by mode
// (fs.ModeSymlink, fs.ModeIrregular) and ReadLink gives a link's target. Opening one, or a path
// through one, is ErrNotFollowed. Reading a file larger than MaxFileSize is ErrTooLarge. A commit
// that the mirror does not have is ErrUnknownCommit. Names are compared byte by byte and need not
// be UTF-8. Modification times are zero.
type Tree struct {
	repo       *repository
	sha        string
	prefetched map[string][]byte // contents that ReadAhead has read, by id
}

var (
	_ fs.ReadFileFS = (*Tree)(nil)
	_ fs.ReadDirFS  = (*Tree)(nil)
	_ fs.StatFS     = (*Tree)(nil)
	_ fs.ReadLinkFS = (*Tree)(nil)
)

// Tree gives a commit's files. Whether the commit exists shows when it is read.
func (r *repository) Tree(sha string) *Tree { return &Tree{repo: r, sha: sha} }

// Open opens a file, read whole into memory, or a folder.
func (t *Tree) Open(name string) (fs.File, error) {
	e, err := t.findEntry("open", name)
	if err != nil {
		return nil, err
	}
	info := t.entryInfo(e)
	if e.mode == Directory {
		entries, err := t.listFolder("open", name, e)
		if err != nil {
			return nil, err
		}
		return &openDir{info: info, entries: entries}, nil
	}
	data, err := t.readEntry("open", name, e)
	if err != nil {
		return nil, err
	}
	return &openFile{info: info, Reader: bytes.NewReader(data)}, nil
}

// ReadFile reads a file; the bytes are the caller's.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	e, err := t.findEntry("read", name)
	if err != nil {
		return nil, err
	}
	return t.readEntry("read", name, e)
}

// ReadDir lists a folder, sorted by name.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.findEntry("readdir", name)
	if err != nil {
		return nil, err
	}
	return t.listFolder("readdir", name, e)
}

// Stat describes a file or folder; a link describes itself.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	e, err := t.findEntry("stat", name)
	if err != nil {
		return nil, err
	}
	return t.statEntry("stat", name, e)
}

// Lstat is Stat: links are never followed.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) { return t.Stat(name) }

// ReadLink is a symbolic link's target as it is written.
func (t *Tree) ReadLink(name string) (string, error) {
	e, err := t.findEntry("readlink", name)
	if err != nil {
		return "", err
	}
	if e.mode != Symlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	o, err := t.readRequired(e.sha)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(o.data), nil
}

// treeEntry is one entry of one folder.
type treeEntry struct {
	name string // without folders; "." for the root
	mode Mode
	sha  string
}

// rootEntry is the commit's root folder.
func (t *Tree) rootEntry() (treeEntry, error) {
	if err := checkSHA(t.sha); err != nil {
		return treeEntry{}, err
	}
	if sha, ok := t.repo.caches.roots.Get(t.sha); ok {
		return treeEntry{name: ".", mode: Directory, sha: sha}, nil
	}
	o, err := t.readRequired(t.sha + "^{tree}")
	if err != nil {
		return treeEntry{}, err
	}
	if _, err := t.repo.parseAndCacheTree(o); err != nil {
		return treeEntry{}, err
	}
	t.repo.caches.roots.Put(t.sha, o.sha)
	return treeEntry{name: ".", mode: Directory, sha: o.sha}, nil
}

// readRequired reads an object that the commit needs.
func (t *Tree) readRequired(spec string) (object, error) {
	o, err := t.repo.engine.readObject(spec)
	if errors.Is(err, errMissing) {
		at, err := t.repo.engine.findObject(t.sha)
		if errors.Is(err, errMissing) || err == nil && at.kind != "commit" && at.kind != "tree" {
			return object{}, t.repo.unknownCommitError(t.sha)
		}
		t.repo.engine.markDamaged()
		return object{}, &Error{Op: "read object " + spec + ", which commit " + t.sha + " needs", Kind: ErrCorrupt, Hint: t.repo.remedy}
	}
	return o, err
}

// listEntries lists a folder by the id of its tree object. The slice is shared.
func (t *Tree) listEntries(sha string) ([]treeEntry, error) {
	if e, ok := t.repo.caches.folders.Get(sha); ok {
		return e, nil
	}
	o, err := t.readRequired(sha)
	if err != nil {
		return nil, err
	}
	return t.repo.parseAndCacheTree(o)
}

// maxFolderSize is the largest tree object that is parsed: some 200,000 names. A pack of a few
// bytes may have many such, each a little different from the one before.
const maxFolderSize = 8 << 20

// parseAndCacheTree parses a tree object and keeps the listing.
func (r *repository) parseAndCacheTree(o object) ([]treeEntry, error) {
	if len(o.data) > maxFolderSize {
		return nil, &Error{Op: "read tree " + o.sha, Kind: ErrTooLarge,
			Hint: fmt.Sprintf("it has a folder whose list takes more than %d MiB", maxFolderSize>>20)}
	}
	entries, err := parseTree(o.data)
	if o.kind != "tree" {
		err = fmt.Errorf("it is a %s", o.kind)
	}
	if err != nil {
		return nil, &Error{Op: "read tree " + o.sha, Kind: ErrCorrupt, Err: err}
	}
	r.caches.folders.Put(o.sha, entries)
	return entries, nil
}

// validName is fs.ValidPath without its demand for UTF-8.
func validName(name string) bool {
	if name == "." {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// findEntry walks from the root to a name.
func (t *Tree) findEntry(op, name string) (treeEntry, error) {
	fail := func(err error) (treeEntry, error) {
		return treeEntry{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !validName(name) {
		return fail(fs.ErrInvalid)
	}
	at, err := t.rootEntry()
	if err != nil {
		return fail(err)
	}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		switch at.mode {
		case Directory:
		case Symlink, Submodule:
			return fail(ErrNotFollowed)
		default:
			return fail(fs.ErrNotExist)
		}
		entries, err := t.listEntries(at.sha)
		if err != nil {
			return fail(err)
		}
		i := sort.Search(len(entries), func(i int) bool { return entries[i].name >= part })
		if i == len(entries) || entries[i].name != part {
			return fail(fs.ErrNotExist)
		}
		at = entries[i]
	}
	return at, nil
}

func (t *Tree) readEntry(op, name string, e treeEntry) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	switch e.mode {
	case Directory:
		return fail(errors.New("is a folder"))
	case Symlink, Submodule:
		return fail(ErrNotFollowed)
	}
	if data, ok := t.prefetched[e.sha]; ok {
		return bytes.Clone(data), nil
	}
	o, err := t.readRequired(e.sha)
	if err != nil {
		return fail(err)
	}
	return o.data, nil
}

func (t *Tree) listFolder(op, name string, e treeEntry) ([]fs.DirEntry, error) {
	fail := func(err error) ([]fs.DirEntry, error) {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	switch e.mode {
	case Directory:
	case Symlink, Submodule:
		return fail(ErrNotFollowed)
	default:
		return fail(errors.New("is not a folder"))
	}
	entries, err := t.listEntries(e.sha)
	if err != nil {
		return fail(err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, c := range entries {
		out[i] = dirEntry{t: t, path: path.Join(name, c.name), e: c}
	}
	return out, nil
}

// statEntry is entryInfo with the size of a file or link looked up.
func (t *Tree) statEntry(op, name string, e treeEntry) (fs.FileInfo, error) {
	info := t.entryInfo(e)
	if e.mode == Directory || e.mode == Submodule {
		return info, nil // a submodule's commit is not here
	}
	if data, ok := t.prefetched[e.sha]; ok {
		info.size = int64(len(data))
		return info, nil
	}
	o, err := t.repo.engine.findObject(e.sha)
	if errors.Is(err, errMissing) {
		o, err = t.readRequired(e.sha) // finds out why
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	info.size = o.size
	return info, nil
}

func (t *Tree) entryInfo(e treeEntry) *fileInfo { return &fileInfo{name: e.name, mode: e.mode} }

// parseTree reads a tree object: "<octal mode> <name>\0<20 bytes of id>",
// repeated. The entries come back sorted by name (git sorts folders as if
// their names ended in a slash). Names and ids are parts of two long texts: a listing of a thousand
// folders is read for each commit of a history that is walked.
func parseTree(data []byte) ([]treeEntry, error) {
	text := string(data)
	out := make([]treeEntry, 0, len(text)/typicalEntry+1)
	ids := make([]byte, 0, 40*cap(out))
	for text != "" {
		head, rest, ok := strings.Cut(text, "\x00")
		if !ok || len(rest) < 20 {
			return nil, errors.New("an entry is cut off")
		}
		modeText, name, ok := strings.Cut(head, " ")
		mode, err := strconv.ParseUint(modeText, 8, 32)
		if !ok || err != nil {
			return nil, fmt.Errorf("an entry begins with %q", shortenForLog(head))
		}
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			return nil, fmt.Errorf("an entry is named %q", shortenForLog(name))
		}
		at := len(data) - len(rest)
		ids = hex.AppendEncode(ids, data[at:at+20])
		out = append(out, treeEntry{name: name, mode: normalMode(Mode(mode))})
		text = rest[20:]
	}
	for i, all := 0, string(ids); i < len(out); i++ {
		out[i].sha = all[i*40 : (i+1)*40]
	}
	byName := func(a, b treeEntry) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(out, byName) {
		slices.SortFunc(out, byName)
	}
	for i := 1; i < len(out); i++ {
		if out[i].name == out[i-1].name {
			return nil, fmt.Errorf("two entries are named %q", shortenForLog(out[i].name))
		}
	}
	return out, nil
}

// typicalEntry is about how many bytes an entry of a tree object takes.
const typicalEntry = 36

// normalMode maps what old tools wrote (100664) to what git writes.
func normalMode(m Mode) Mode {
	switch m & 0o170000 {
	case 0o100000:
		if m&0o100 != 0 {
			return Executable
		}
		return Regular
	}
	return m & 0o170000
}
