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

// What an answer to frameContents is made of.
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
func (s *contentStore) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries > maxWorkerEntries {
		clear(s.folders)
		s.entries = 0
	}
	if s.fileSize > maxWorkerContents {
		clear(s.files)
		s.fileSize = 0
	}
}

// Tree is the parent's tree with that identity.
func (s *contentStore) Tree(root string) fs.FS { return &contentTree{store: s, root: root} }

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
func (t *contentTree) listFolder(id, name string) ([]contentEntry, error) {
	s := t.store
	s.mu.Lock()
	entries, ok := s.folders[id]
	s.mu.Unlock()
	if ok {
		return entries, nil
	}
	payload, err := s.conn.roundTrip(frameContents, t.root, name)
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
func (s *contentStore) take(payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
			s.entries += len(entries)
			s.folders[id] = entries
		case recordFile:
			data := []byte(r.readString())
			s.fileSize += len(data) - len(s.files[id])
			s.files[id] = data
		default:
			r.fail("an unknown record")
		}
	}
	return r.err
}

// find walks from the root to a name.
func (t *contentTree) find(name string) (contentEntry, error) {
	at := contentEntry{folderEntry{".", fs.ModeDir}, t.root}
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
		entries, err := t.listFolder(at.id, dir)
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
func (t *contentTree) readContent(letter byte, name string, e contentEntry) ([]byte, error) {
	s := t.store
	s.mu.Lock()
	data, ok := s.files[e.id]
	s.mu.Unlock()
	if ok {
		return data, nil
	}
	data, err := s.conn.roundTrip(letter, t.root, name)
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
func (t *contentTree) Stat(name string) (fs.FileInfo, error) { return t.statAs("stat", name) }

// Lstat is Stat: links are never followed.
func (t *contentTree) Lstat(name string) (fs.FileInfo, error) { return t.statAs("lstat", name) }

func (t *contentTree) statAs(op, name string) (fs.FileInfo, error) {
	e, err := t.find(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return t.describe(name, e), nil
}

// describe gives an entry's type; its size is looked up when asked for.
func (t *contentTree) describe(name string, e contentEntry) *fileInfo {
	i := &fileInfo{name: path.Base(name), mode: e.mode}
	if !e.mode.IsRegular() {
		return i
	}
	i.loadSize = sync.OnceValue(func() int64 {
		s := t.store
		s.mu.Lock()
		data, ok := s.files[e.id]
		s.mu.Unlock()
		if ok {
			return int64(len(data))
		}
		payload, err := s.conn.roundTrip(frameStat, t.root, name)
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
func (t *contentTree) ReadLink(name string) (string, error) {
	e, err := t.find(name)
	if err == nil && e.mode != fs.ModeSymlink {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	data, err := t.readContent(frameLink, name, e)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return string(data), nil
}

// ReadFile reads a file; the bytes are the caller's.
func (t *contentTree) ReadFile(name string) ([]byte, error) {
	data, err := t.readShared(name)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return bytes.Clone(data), nil
}

func (t *contentTree) readShared(name string) ([]byte, error) {
	e, err := t.find(name)
	if err == nil && !e.mode.IsRegular() {
		err = errors.New("is not a file")
	}
	if err != nil {
		return nil, err
	}
	return t.readContent(frameFile, name, e)
}

// ReadDir lists a folder, sorted by name.
func (t *contentTree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.find(name)
	if err == nil && e.mode != fs.ModeDir {
		err = errors.New("is not a folder")
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries, err := t.listFolder(e.id, name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = contentDirEntry{tree: t, dir: name, contentEntry: e}
	}
	return out, nil
}

// Open opens a file, read whole, or a folder.
func (t *contentTree) Open(name string) (fs.File, error) {
	e, err := t.find(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	i := t.describe(name, e)
	if e.mode == fs.ModeDir {
		entries, err := t.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: i, entries: entries}, nil
	}
	data, err := t.readShared(name)
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

func (d contentDirEntry) Name() string      { return d.name }
func (d contentDirEntry) IsDir() bool       { return d.mode == fs.ModeDir }
func (d contentDirEntry) Type() fs.FileMode { return d.mode }
func (d contentDirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d contentDirEntry) Info() (fs.FileInfo, error) {
	return d.tree.describe(joinName(d.dir, d.name), d.contentEntry), nil
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
func (h *contentHost) handleRequest(_ context.Context, letter byte, question []byte) (byte, []byte, error) {
	r := &payloadReader{rest: question}
	root, name := r.readString(), string(r.rest)
	if r.err != nil {
		return 0, nil, r.err
	}
	if !validName(name) {
		return 0, nil, fmt.Errorf("%w: it asked for %q, outside of the tree", errProtocol, wording.Clip(name, 80))
	}
	tree, known := h.trees[root]
	if !known {
		return 0, nil, fmt.Errorf("%w: it asked for a tree that its task doesn't name", errProtocol)
	}
	var payload []byte
	var err error
	if letter == frameContents {
		payload, err = h.listContents(tree, name)
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
	if h.bytesLeft -= requestCost + int64(len(payload)); h.bytesLeft < 0 {
		return 0, nil, errReads
	}
	return letter, payload, nil
}

// listContents lists a folder. What is in it and below it goes along while there is room,
// which grows with each question: folders, and files that are small.
func (h *contentHost) listContents(tree ContentTree, name string) ([]byte, error) {
	h.budget = min(max(2*h.budget, minListingSize), maxListingSize)
	var out []byte
	for at, folders := 0, []string{name}; at < len(folders) && (at == 0 || len(out) < h.budget); at++ {
		dir := folders[at]
		entries, id, err := h.listOne(tree, dir, at == 0)
		if err != nil && at == 0 {
			return nil, err
		}
		if err != nil || entries == nil {
			continue // whoever asks for it gets the error
		}
		if out = appendContentFolder(out, id, entries); len(out) > maxFile {
			return nil, fmt.Errorf("the folder has %d entries, too many to list", len(entries))
		}
		h.sent[id] = true
		for _, e := range entries {
			switch {
			case e.mode == fs.ModeDir && !h.sent[e.id]:
				folders = append(folders, joinName(dir, e.name))
			case e.mode.IsRegular() && dir != "." && !h.sent[e.id] && len(out) < h.budget:
				out = h.appendSmallFile(out, tree, joinName(dir, e.name), e.id)
			}
		}
	}
	return out, nil
}

// listOne lists one folder with the identities of what is in it; nil where the worker has it
// already and didn't ask for it.
func (h *contentHost) listOne(tree ContentTree, dir string, wanted bool) ([]contentEntry, string, error) {
	id, err := tree.Identity(dir)
	if err != nil || !wanted && h.sent[id] {
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

func (h *contentHost) appendSmallFile(out []byte, tree ContentTree, name, id string) []byte {
	i, err := fs.Stat(tree.FS, name)
	if err != nil || i.Size() > maxAlongFile {
		return out
	}
	data, err := fs.ReadFile(tree.FS, name)
	if err != nil || len(data) > maxAlongFile {
		return out
	}
	h.sent[id] = true
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
