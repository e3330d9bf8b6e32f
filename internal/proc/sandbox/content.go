package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/wording"
)

// ContentTree is a tree whose files and folders have identities: what is the same in two
// of them is sent to a worker once.
type ContentTree struct {
	FS fs.FS
	// Identity tells what lies at a name, its mode included, as Git's object ids do. It is ""
	// where there is nothing. That of "." names the tree.
	Identity func(name string) (string, error)
}

const (
	// maxWorkerContents bounds the bytes of files that a worker remembers, and
	// maxWorkerEntries the entries of folders: past them it forgets all, and asks again.
	maxWorkerContents = 48 << 20
	maxWorkerEntries  = 200_000
)

// An answer to frameContents is made of these records.
const (
	recordFolder byte = 'd' // a folder's identity, how many entries, of each its name, type and identity
	recordFile   byte = 'f' // a file's identity, its bytes
)

// contentEntry is one name in a folder.
type contentEntry struct {
	folderEntry
	id string
}

// contentStore is what a worker knows of files and folders, by their identities. It is safe
// for concurrent use.
type contentStore struct {
	conn *conn

	mu       sync.Mutex
	folders  map[string][]contentEntry
	entries  int
	files    map[string][]byte
	fileSize int
}

func newContentStore(c *conn) *contentStore {
	return &contentStore{conn: c, folders: map[string][]contentEntry{}, files: map[string][]byte{}}
}

// forget makes room. It is called between two items.
func (c *contentStore) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries > maxWorkerEntries {
		clear(c.folders)
		c.entries = 0
	}
	if c.fileSize > maxWorkerContents {
		clear(c.files)
		c.fileSize = 0
	}
}

// Tree is the parent's tree with that identity.
func (c *contentStore) Tree(root string) fs.FS { return &contentTree{store: c, root: root} }

// contentTree is a parent's tree as a worker that lives on sees it: fs.ReadFileFS,
// fs.ReadDirFS, fs.StatFS and fs.ReadLinkFS, safe for concurrent use. Links are not
// followed, as in Git's trees.
type contentTree struct {
	store *contentStore
	root  string
}

var (
	_ fs.ReadFileFS = (*contentTree)(nil)
	_ fs.ReadDirFS  = (*contentTree)(nil)
	_ fs.StatFS     = (*contentTree)(nil)
	_ fs.ReadLinkFS = (*contentTree)(nil)
)

// listFolder gives the entries of a folder whose identity is known.
func (c *contentTree) listFolder(id, name string) ([]contentEntry, error) {
	s := c.store
	s.mu.Lock()
	entries, ok := s.folders[id]
	s.mu.Unlock()
	if ok {
		return entries, nil
	}
	payload, err := s.conn.roundTrip(frameContents, c.root, name)
	if err != nil {
		return nil, err
	}
	if err := s.take(payload); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if entries, ok = s.folders[id]; !ok {
		return nil, fmt.Errorf("%w: asked for the folder %q, got another", errProtocol, wording.Clip(name, 80))
	}
	return entries, nil
}

// take keeps what the parent sent.
func (c *contentStore) take(payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &payloadReader{rest: payload}
	for len(r.rest) > 0 && r.err == nil {
		letter := r.rest[0]
		r.rest = r.rest[1:]
		id := r.readString()
		switch letter {
		case recordFolder:
			count := r.readNumber()
			if count > uint64(len(r.rest)) {
				r.fail("a listing is cut off")
				break
			}
			entries := make([]contentEntry, 0, count)
			for range count {
				e := contentEntry{folderEntry: folderEntry{name: r.readString(), mode: fs.FileMode(r.readNumber()) & typeBits}}
				e.id = r.readString()
				entries = append(entries, e)
			}
			c.entries += len(entries)
			c.folders[id] = entries
		case recordFile:
			data := []byte(r.readString())
			c.fileSize += len(data) - len(c.files[id])
			c.files[id] = data
		default:
			r.fail("an unknown record")
		}
	}
	return r.err
}

// find walks from the root to a name.
func (c *contentTree) find(name string) (contentEntry, error) {
	at := contentEntry{folderEntry{".", fs.ModeDir}, c.root}
	if !validName(name) {
		return at, fs.ErrInvalid
	}
	if name == "." {
		return at, nil
	}
	dir, rest, more := ".", name, true
	for more {
		var part string
		if part, rest, more = strings.Cut(rest, "/"); at.mode != fs.ModeDir {
			return at, fs.ErrNotExist
		}
		entries, err := c.listFolder(at.id, dir)
		if err != nil {
			return at, err
		}
		i, found := slices.BinarySearchFunc(entries, part, func(e contentEntry, name string) int { return strings.Compare(e.name, name) })
		if !found {
			return at, fs.ErrNotExist
		}
		at, dir = entries[i], joinName(dir, part)
	}
	return at, nil
}

// readContent gives a file's bytes, which are shared, or a link's text.
func (c *contentTree) readContent(letter byte, name string, e contentEntry) ([]byte, error) {
	s := c.store
	s.mu.Lock()
	data, ok := s.files[e.id]
	s.mu.Unlock()
	if ok {
		return data, nil
	}
	data, err := s.conn.roundTrip(letter, c.root, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fileSize += len(data) - len(s.files[e.id])
	s.files[e.id] = data
	return data, nil
}

// Stat describes a file or folder; a link describes itself.
func (c *contentTree) Stat(name string) (fs.FileInfo, error) { return c.statAs("stat", name) }

// Lstat is Stat: links are never followed.
func (c *contentTree) Lstat(name string) (fs.FileInfo, error) { return c.statAs("lstat", name) }

func (c *contentTree) statAs(op, name string) (fs.FileInfo, error) {
	e, err := c.find(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return c.describe(name, e), nil
}

// describe gives an entry's type; its size is looked up when asked for.
func (c *contentTree) describe(name string, e contentEntry) *fileInfo {
	i := &fileInfo{name: path.Base(name), mode: e.mode}
	if !e.mode.IsRegular() {
		return i
	}
	i.loadSize = sync.OnceValue(func() int64 {
		s := c.store
		s.mu.Lock()
		data, ok := s.files[e.id]
		s.mu.Unlock()
		if ok {
			return int64(len(data))
		}
		payload, err := s.conn.roundTrip(frameStat, c.root, name)
		if err != nil {
			return 0 // reading says why
		}
		f, err := readStatReply(payload)
		if err != nil {
			return 0
		}
		if f.hasData {
			s.mu.Lock()
			s.fileSize += len(f.data) - len(s.files[e.id])
			s.files[e.id] = f.data
			s.mu.Unlock()
		}
		return f.size
	})
	return i
}

// ReadLink is a symbolic link's text.
func (c *contentTree) ReadLink(name string) (string, error) {
	e, err := c.find(name)
	if err == nil && e.mode != fs.ModeSymlink {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	data, err := c.readContent(frameLink, name, e)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return string(data), nil
}

// ReadFile reads a file; the bytes are the caller's.
func (c *contentTree) ReadFile(name string) ([]byte, error) {
	data, err := c.readShared(name)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return bytes.Clone(data), nil
}

func (c *contentTree) readShared(name string) ([]byte, error) {
	e, err := c.find(name)
	if err == nil && !e.mode.IsRegular() {
		err = errors.New("is not a file")
	}
	if err != nil {
		return nil, err
	}
	return c.readContent(frameFile, name, e)
}

// ReadDir lists a folder, sorted by name.
func (c *contentTree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := c.find(name)
	if err == nil && e.mode != fs.ModeDir {
		err = errors.New("is not a folder")
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries, err := c.listFolder(e.id, name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = contentDirEntry{tree: c, dir: name, contentEntry: e}
	}
	return out, nil
}

// Open opens a file, read whole, or a folder.
func (c *contentTree) Open(name string) (fs.File, error) {
	e, err := c.find(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	i := c.describe(name, e)
	if e.mode == fs.ModeDir {
		entries, err := c.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: i, entries: entries}, nil
	}
	data, err := c.readShared(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &openFile{Reader: bytes.NewReader(data), info: i}, nil
}

type contentDirEntry struct {
	tree *contentTree
	dir  string
	contentEntry
}

func (c contentDirEntry) Name() string      { return c.name }
func (c contentDirEntry) IsDir() bool       { return c.mode == fs.ModeDir }
func (c contentDirEntry) Type() fs.FileMode { return c.mode }
func (c contentDirEntry) String() string    { return fs.FormatDirEntry(c) }

func (c contentDirEntry) Info() (fs.FileInfo, error) {
	return c.tree.describe(joinName(c.dir, c.name), c.contentEntry), nil
}

// contentHost answers a worker's questions about the trees of one batch. It remembers for
// the worker's life what it was sent, so that nothing is sent twice unless it is asked for.
type contentHost struct {
	trees     map[string]ContentTree // by their identities
	bytesLeft int64
	sent      map[string]bool // identities of files and folders
	budget    int             // how long the next answer about a folder may get
}

// handleRequest answers one question, as host.handleRequest does.
func (c *contentHost) handleRequest(_ context.Context, letter byte, question []byte) (byte, []byte, error) {
	r := &payloadReader{rest: question}
	root, name := r.readString(), string(r.rest)
	if r.err != nil {
		return 0, nil, r.err
	}
	if !validName(name) {
		return 0, nil, fmt.Errorf("%w: it asked for %q, outside of the tree", errProtocol, wording.Clip(name, 80))
	}
	tree, known := c.trees[root]
	if !known {
		return 0, nil, fmt.Errorf("%w: it asked for a tree that its task doesn't name", errProtocol)
	}
	var payload []byte
	var err error
	if letter == frameContents {
		payload, err = c.listContents(tree, name)
	} else {
		payload, err = (&servedTree{FS: tree.FS}).serveRequest(letter, name)
	}
	switch {
	case errors.Is(err, errProtocol):
		return 0, nil, err
	case err != nil:
		letter, payload = frameFail, encodeError(err)
	default:
		letter = frameOK
	}
	if c.bytesLeft -= requestCost + int64(len(payload)); c.bytesLeft < 0 {
		return 0, nil, errReads
	}
	return letter, payload, nil
}

// listContents lists a folder. Folders and small files in it and below it go along while there is
// room, which grows with each question.
func (c *contentHost) listContents(tree ContentTree, name string) ([]byte, error) {
	c.budget = min(max(2*c.budget, minListingSize), maxListingSize)
	var out []byte
	for at, folders := 0, []string{name}; at < len(folders) && (at == 0 || len(out) < c.budget); at++ {
		dir := folders[at]
		entries, id, err := c.listOne(tree, dir, at == 0)
		if err != nil && at == 0 {
			return nil, err
		}
		if err != nil || entries == nil {
			continue // its reader gets the error
		}
		if out = appendContentFolder(out, id, entries); len(out) > maxFile {
			return nil, fmt.Errorf("the folder has %d entries, too many to list", len(entries))
		}
		c.sent[id] = true
		for _, e := range entries {
			switch {
			case e.mode == fs.ModeDir && !c.sent[e.id]:
				folders = append(folders, joinName(dir, e.name))
			case e.mode.IsRegular() && dir != "." && !c.sent[e.id] && len(out) < c.budget:
				out = c.appendSmallFile(out, tree, joinName(dir, e.name), e.id)
			}
		}
	}
	return out, nil
}

// listOne lists one folder with the identities of what is in it; nil where the worker has it
// already and didn't ask for it.
func (c *contentHost) listOne(tree ContentTree, dir string, wanted bool) ([]contentEntry, string, error) {
	id, err := tree.Identity(dir)
	if err != nil || !wanted && c.sent[id] {
		return nil, "", err
	}
	list, err := fs.ReadDir(tree.FS, dir)
	if err != nil {
		return nil, "", err
	}
	entries := make([]contentEntry, len(list))
	for i, e := range list {
		entries[i].folderEntry = folderEntry{e.Name(), e.Type() & typeBits}
		if known, ok := e.(interface{ Identity() string }); ok {
			entries[i].id = known.Identity()
		} else if entries[i].id, err = tree.Identity(joinName(dir, e.Name())); err != nil {
			return nil, "", err
		}
	}
	slices.SortFunc(entries, func(a, b contentEntry) int { return strings.Compare(a.name, b.name) })
	return entries, id, nil
}

// maxAlongFile is the largest file that goes along with its folder.
const maxAlongFile = 16 << 10

func (c *contentHost) appendSmallFile(out []byte, tree ContentTree, name, id string) []byte {
	i, err := fs.Stat(tree.FS, name)
	if err != nil || i.Size() > maxAlongFile {
		return out
	}
	data, err := fs.ReadFile(tree.FS, name)
	if err != nil || len(data) > maxAlongFile {
		return out
	}
	c.sent[id] = true
	out = appendString(append(out, recordFile), id)
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

func appendContentFolder(b []byte, id string, entries []contentEntry) []byte {
	b = appendString(append(b, recordFolder), id)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = appendString(b, e.name)
		b = binary.AppendUvarint(b, uint64(e.mode))
		b = appendString(b, e.id)
	}
	return b
}
