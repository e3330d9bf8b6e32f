package git

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/git/sshsig"
)

// memory is the engine over objects in memory: what git's programs would answer, in
// microseconds. It has the commits that were brought to it, with their history.
type memory struct {
	objects    *memoryObjects
	signingKey *sshsig.Key // nil: what is written isn't signed

	mu    sync.RWMutex
	known commitSet
}

var _ engine = (*memory)(nil)

func (m *memory) closePrograms() {}

// markDamaged has nothing to do: nothing in memory is made anew.
func (m *memory) markDamaged() {}

// findCommit finds a commit that the repository has.
func (m *memory) findCommit(sha string) (*memoryCommit, error) {
	c, ok := m.objects.lookUpCommit(sha)
	if ok {
		m.mu.RLock()
		ok = m.known.has(c)
		m.mu.RUnlock()
	}
	if !ok {
		return nil, fmt.Errorf("find commit %s: %w", sha, errMissing)
	}
	return c, nil
}

func (m *memory) findPair(a, b string) (x, y *memoryCommit, err error) {
	if x, err = m.findCommit(a); err == nil {
		y, err = m.findCommit(b)
	}
	return x, y, err
}

// learn gives the repository a commit and its history.
func (m *memory) learn(sha string) error {
	tip, ok := m.objects.lookUpCommit(sha)
	if !ok {
		return fmt.Errorf("bring commit %s: %w", sha, errMissing)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.addHistory(tip)
	return nil
}

func (m *memory) findObject(spec string) (object, error) {
	id, peel := strings.CutSuffix(spec, "^{tree}")
	found, ok := m.objects.lookUp(id)
	if !ok {
		return object{}, errMissing
	}
	if found.kind == "commit" {
		c, err := m.findCommit(id)
		if err != nil {
			return object{}, errMissing
		}
		if peel {
			found, ok = m.objects.lookUp(c.info.Tree)
		}
	}
	if !ok || peel && found.kind != "tree" {
		return object{}, errMissing
	}
	return found, nil
}

// readObject gives bytes that are the caller's.
func (m *memory) readObject(spec string) (object, error) {
	found, err := m.findObject(spec)
	if err == nil && found.size > MaxFileSize {
		return object{}, tooLargeError(found.size, MaxFileSize)
	}
	found.data = bytes.Clone(found.data)
	return found, err
}

func (m *memory) readCommit(sha string) (*CommitInfo, error) {
	c, err := m.findCommit(sha)
	if err != nil {
		return nil, err
	}
	info := *c.info
	info.Parents = slices.Clone(info.Parents)
	return &info, nil
}

func (m *memory) readBlobs(ctx context.Context, commit string, ids []string, limit int64,
	do func(i int, data []byte, err error) error) error {
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read files of %s: %w", commit, err)
		}
		found, err := m.findObject(id)
		if err != nil {
			return &missingObjectError{id}
		}
		data := bytes.Clone(found.data)
		if found.size > limit {
			data, err = nil, tooLargeError(found.size, limit)
		}
		if err := do(i, data, err); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) listFiles(ctx context.Context, commit, path string, do func(FileEntry) error) error {
	tree, err := m.findTree(commit)
	if err != nil {
		return err
	}
	at := treeEntry{mode: Directory, sha: tree}
	if path != "" {
		var ok bool
		if at, ok = m.objects.findPath(tree, path); !ok {
			return nil
		}
	}
	var files []FileEntry
	if err := m.objects.walkFiles(path, at, func(f FileEntry) { files = append(files, f) }); err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b FileEntry) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("list the files of %s: %w", commit, err)
		}
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// findTree is the tree of a commit; "" has none.
func (m *memory) findTree(commit string) (string, error) {
	if commit == "" {
		return "", nil
	}
	c, err := m.findCommit(commit)
	if err != nil {
		return "", err
	}
	return c.info.Tree, nil
}

func (m *memory) listChanges(_ context.Context, a, b string) ([]FileChange, error) {
	old, err := m.findTree(a)
	if err != nil {
		return nil, err
	}
	now, err := m.findTree(b)
	if err != nil {
		return nil, err
	}
	return m.objects.listChanges(old, now)
}

func (m *memory) listChangedPaths(_ context.Context, commits []CommitInfo) ([][]string, error) {
	out := make([][]string, len(commits))
	for i := range commits {
		c, err := m.findCommit(commits[i].SHA)
		if err != nil {
			return nil, err
		}
		paths, err := m.objects.listCommitChanges(c)
		if err != nil {
			return nil, err
		}
		if len(paths) > 0 {
			out[i] = slices.Clone(paths)
		}
	}
	return out, nil
}

// writeCommit stores a commit that was checked and planned.
func (m *memory) writeCommit(_ context.Context, s CommitSpec, base string, files []FileWrite) (string, error) {
	edits := make([]fileEdit, len(files))
	for i, f := range files {
		edits[i] = fileEdit{path: f.Path, mode: f.Mode}
		if !f.Delete {
			edits[i].sha = m.objects.storeBlob(f.Content)
		}
	}
	tree, err := m.objects.editTree(base, edits)
	if err != nil {
		return "", err
	}
	if tree == "" {
		tree = emptyTree
	}
	c, err := m.objects.storeCommit(tree, s, m.signingKey)
	if err != nil {
		return "", err
	}
	return c.info.SHA, m.learn(c.info.SHA)
}
