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

func (e *memory) closePrograms() {}

// markDamaged has nothing to do: nothing in memory is made anew.
func (e *memory) markDamaged() {}

// findCommit finds a commit that the repository has.
func (e *memory) findCommit(sha string) (*memoryCommit, error) {
	c, ok := e.objects.lookUpCommit(sha)
	if ok {
		e.mu.RLock()
		ok = e.known.has(c)
		e.mu.RUnlock()
	}
	if !ok {
		return nil, fmt.Errorf("find commit %s: %w", sha, errMissing)
	}
	return c, nil
}

func (e *memory) findPair(a, b string) (x, y *memoryCommit, err error) {
	if x, err = e.findCommit(a); err == nil {
		y, err = e.findCommit(b)
	}
	return x, y, err
}

// learn gives the repository a commit and its history.
func (e *memory) learn(sha string) error {
	tip, ok := e.objects.lookUpCommit(sha)
	if !ok {
		return fmt.Errorf("bring commit %s: %w", sha, errMissing)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known.addHistory(tip)
	return nil
}

func (e *memory) findObject(spec string) (object, error) {
	id, peel := strings.CutSuffix(spec, "^{tree}")
	found, ok := e.objects.lookUp(id)
	if !ok {
		return object{}, errMissing
	}
	if found.kind == "commit" {
		c, err := e.findCommit(id)
		if err != nil {
			return object{}, errMissing
		}
		if peel {
			found, ok = e.objects.lookUp(c.info.Tree)
		}
	}
	if !ok || peel && found.kind != "tree" {
		return object{}, errMissing
	}
	return found, nil
}

// readObject gives bytes that are the caller's.
func (e *memory) readObject(spec string) (object, error) {
	found, err := e.findObject(spec)
	if err == nil && found.size > MaxFileSize {
		return object{}, tooLargeError(found.size, MaxFileSize)
	}
	found.data = bytes.Clone(found.data)
	return found, err
}

func (e *memory) readCommit(sha string) (*CommitInfo, error) {
	c, err := e.findCommit(sha)
	if err != nil {
		return nil, err
	}
	info := *c.info
	info.Parents = slices.Clone(info.Parents)
	return &info, nil
}

func (e *memory) readBlobs(ctx context.Context, commit string, ids []string, limit int64, do func(i int, data []byte, err error) error) error {
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read files of %s: %w", commit, err)
		}
		found, err := e.findObject(id)
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

func (e *memory) listFiles(ctx context.Context, commit, path string, do func(FileEntry) error) error {
	tree, err := e.findTree(commit)
	if err != nil {
		return err
	}
	at := treeEntry{mode: Directory, sha: tree}
	if path != "" {
		var ok bool
		if at, ok = e.objects.findPath(tree, path); !ok {
			return nil
		}
	}
	var files []FileEntry
	if err := e.objects.walkFiles(path, at, func(f FileEntry) { files = append(files, f) }); err != nil {
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
func (e *memory) findTree(commit string) (string, error) {
	if commit == "" {
		return "", nil
	}
	c, err := e.findCommit(commit)
	if err != nil {
		return "", err
	}
	return c.info.Tree, nil
}

func (e *memory) listChanges(_ context.Context, a, b string) ([]FileChange, error) {
	old, err := e.findTree(a)
	if err != nil {
		return nil, err
	}
	now, err := e.findTree(b)
	if err != nil {
		return nil, err
	}
	return e.objects.listChanges(old, now)
}

func (e *memory) listChangedPaths(_ context.Context, commits []CommitInfo) ([][]string, error) {
	out := make([][]string, len(commits))
	for i := range commits {
		c, err := e.findCommit(commits[i].SHA)
		if err != nil {
			return nil, err
		}
		paths, err := e.objects.listCommitChanges(c)
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
func (e *memory) writeCommit(_ context.Context, s CommitSpec, base string, files []FileWrite) (string, error) {
	edits := make([]fileEdit, len(files))
	for i, f := range files {
		edits[i] = fileEdit{path: f.Path, mode: f.Mode}
		if !f.Delete {
			edits[i].sha = e.objects.storeBlob(f.Content)
		}
	}
	tree, err := e.objects.editTree(base, edits)
	if err != nil {
		return "", err
	}
	if tree == "" {
		tree = emptyTree
	}
	c, err := e.objects.storeCommit(tree, s, e.signingKey)
	if err != nil {
		return "", err
	}
	return c.info.SHA, e.learn(c.info.SHA)
}
