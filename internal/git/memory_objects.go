package git

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/git/sshsig"
)

// memoryObjects are the objects of a remote in memory and of all of its mirrors,
// under the ids that git gives them. None changes or goes. Which commits a
// repository has is its own affair.
type memoryObjects struct {
	mu      sync.RWMutex
	objects map[string]object
	folders map[string][]treeEntry // what the tree objects say, sorted by name
	commits map[string]*memoryCommit
}

func newMemoryObjects() *memoryObjects {
	o := &memoryObjects{objects: map[string]object{}, folders: map[string][]treeEntry{}, commits: map[string]*memoryCommit{}}
	o.storeFolder(nil)
	return o
}

func (m *memoryObjects) lookUp(id string) (object, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found, ok := m.objects[id]
	return found, ok
}

func (m *memoryObjects) lookUpCommit(id string) (*memoryCommit, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c, ok := m.commits[id]
	return c, ok
}

// listFolder lists a tree object, sorted by name. The slice is shared.
func (m *memoryObjects) listFolder(id string) ([]treeEntry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	list, ok := m.folders[id]
	if !ok {
		return nil, fmt.Errorf("read tree %s: %w", id, errMissing)
	}
	return list, nil
}

// hashObject makes an object; its id is what git would give it.
func hashObject(kind string, data []byte) object {
	h := sha1.New() // git's ids are these, whatever else they are good for
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return object{sha: hex.EncodeToString(h.Sum(nil)), kind: kind, size: int64(len(data)), data: data}
}

func (m *memoryObjects) storeBlob(data []byte) string {
	blob := hashObject("blob", data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.objects[blob.sha]; !known {
		blob.data = bytes.Clone(data)
		m.objects[blob.sha] = blob
	}
	return blob.sha
}

// storeFolder stores a tree object with these entries, which it keeps.
func (m *memoryObjects) storeFolder(entries []treeEntry) string {
	// Git sorts folders as if their names ended in a slash.
	sortKey := func(e treeEntry) string {
		if e.mode == Directory {
			return e.name + "/"
		}
		return e.name
	}
	sort.Slice(entries, func(i, j int) bool { return sortKey(entries[i]) < sortKey(entries[j]) })
	var data bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&data, "%o %s\x00", uint32(e.mode), e.name)
		id, _ := hex.DecodeString(e.sha) // it is the id of an object
		data.Write(id)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].name < entries[j].name })
	tree := hashObject("tree", data.Bytes())
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.objects[tree.sha]; !known {
		m.objects[tree.sha] = tree
		m.folders[tree.sha] = entries
	}
	return tree.sha
}

// storeCommit stores a commit whose tree and parents are there, signed where there is a key.
func (m *memoryObjects) storeCommit(tree string, s CommitSpec, key *sshsig.Key) (*memoryCommit, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, parent := range s.Parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s <%s> %d +0000\n", s.Author.Name, s.Author.Email, s.AuthorTime.Unix())
	fmt.Fprintf(&b, "committer %s <%s> %d +0000\n\n%s", s.Committer.Name, s.Committer.Email, s.When.Unix(), s.Message)
	data := b.Bytes()
	if key != nil {
		var err error
		if data, err = key.SignCommit(data); err != nil {
			return nil, err
		}
	}
	stored := hashObject("commit", data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, known := m.commits[stored.sha]; known {
		return c, nil
	}
	info, err := parseCommit(stored.data)
	if err != nil {
		return nil, fmt.Errorf("store commit %s: %w", stored.sha, err)
	}
	info.SHA = stored.sha
	c := &memoryCommit{info: info, number: len(m.commits)}
	for _, sha := range info.Parents {
		parent, ok := m.commits[sha]
		if !ok {
			return nil, fmt.Errorf("store commit %s: its parent %s: %w", stored.sha, sha, errMissing)
		}
		c.parents = append(c.parents, parent)
		c.generation = max(c.generation, parent.generation+1)
	}
	c.setJump()
	m.objects[stored.sha] = stored
	m.commits[stored.sha] = c
	return c, nil
}

// fileEdit is what a path shall hold in a new tree; without an id it goes.
type fileEdit struct {
	path string
	mode Mode
	sha  string
}

// editTree makes a tree of another ("": none) and edits; folders without files go, and the id of a
// tree without entries is "". A deletion may name a file that isn't there.
func (m *memoryObjects) editTree(tree string, edits []fileEdit) (string, error) {
	entries := map[string]treeEntry{}
	if tree != "" {
		list, err := m.listFolder(tree)
		if err != nil {
			return "", err
		}
		for _, e := range list {
			entries[e.name] = e
		}
	}
	below := map[string][]fileEdit{}
	for _, e := range edits {
		name, rest, deeper := strings.Cut(e.path, "/")
		switch {
		case deeper:
			below[name] = append(below[name], fileEdit{rest, e.mode, e.sha})
		case e.sha == "":
			delete(entries, name)
		default:
			entries[name] = treeEntry{name: name, mode: e.mode, sha: e.sha}
		}
	}
	for name, list := range below {
		was := entries[name]
		if was.mode != Directory {
			was.sha = "" // nothing is below a file
		}
		folder, err := m.editTree(was.sha, list)
		if err != nil {
			return "", err
		}
		if folder != "" {
			entries[name] = treeEntry{name: name, mode: Directory, sha: folder}
		} else if was.mode == Directory {
			delete(entries, name)
		}
	}
	if len(entries) == 0 {
		return "", nil
	}
	list := make([]treeEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	return m.storeFolder(list), nil
}

// findPath is what lies at a path of a tree ("." is the tree); false: nothing.
func (m *memoryObjects) findPath(tree, path string) (treeEntry, bool) {
	at := treeEntry{name: ".", mode: Directory, sha: tree}
	if path == "." {
		return at, true
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for part := range strings.SplitSeq(path, "/") {
		if at.mode != Directory {
			return treeEntry{}, false
		}
		list := m.folders[at.sha]
		i := sort.Search(len(list), func(i int) bool { return list[i].name >= part })
		if i == len(list) || list[i].name != part {
			return treeEntry{}, false
		}
		at = list[i]
	}
	return at, true
}

// listChanges is what differs between two trees ("": none).
func (m *memoryObjects) listChanges(a, b string) ([]FileChange, error) {
	d := &treeDiffer{listOld: m.listFolder, listNew: m.listFolder}
	return d.compareRoots(treeEntry{sha: a}, treeEntry{sha: b})
}

// walkFiles calls do for each file below an entry, in no certain order.
func (m *memoryObjects) walkFiles(path string, at treeEntry, do func(FileEntry)) error {
	if at.mode != Directory {
		do(FileEntry{Path: path, Mode: at.mode, Blob: at.sha})
		return nil
	}
	list, err := m.listFolder(at.sha)
	if err != nil {
		return err
	}
	if path != "" {
		path += "/"
	}
	var errs []error
	for _, e := range list {
		errs = append(errs, m.walkFiles(path+e.name, e, do))
	}
	return errors.Join(errs...)
}
