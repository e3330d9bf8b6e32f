package branch

import (
	"context"
	"fmt"
	"sync"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/manifest/deps"
)

// LazyIndex is a pipeline's index of files and their readers at one commit of a branch,
// made when it is first needed: most commits need none. Then the newest one
// that was made before it is brought up to date, which costs as little as what
// changed since.
type LazyIndex struct {
	repo    *Repository
	branch  string
	Commit  string
	Targets []appset.Target // as they were resolved

	building lock.Keyed[string] // held while it is made
	mu       sync.Mutex
	previous *LazyIndex // made already; nil: none, or no longer needed
	index    *deps.Index
}

// NewLazyIndex is the index of a branch's commit; before, that of the snapshot before, may be nil.
func NewLazyIndex(r *Repository, branch, commit string, targets []appset.Target, before *LazyIndex) *LazyIndex {
	return &LazyIndex{repo: r, branch: branch, Commit: commit, Targets: targets, previous: before.newestBuilt()}
}

// IsFor says that an index is that of a commit and of targets, unchanged.
func (l *LazyIndex) IsFor(commit string, targets []appset.Target) bool {
	if l == nil || l.Commit != commit || len(l.Targets) != len(targets) {
		return false
	}
	return len(targets) == 0 || &l.Targets[0] == &targets[0]
}

// newestBuilt is the newest of this index and those before it that was made.
func (l *LazyIndex) newestBuilt() *LazyIndex {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index != nil {
		return l
	}
	return l.previous
}

// Get makes the index once; an error is not remembered.
func (l *LazyIndex) Get(ctx context.Context) (*deps.Index, error) {
	unlock, err := l.building.Lock(ctx, l.branch)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l.mu.Lock()
	index, previous := l.index, l.previous
	l.mu.Unlock()
	if index != nil {
		return index, nil
	}
	readers := make([]deps.Reader, 0, len(l.Targets))
	for i := range l.Targets {
		t := appset.ViewFromBranch(l.Targets[i], l.branch, l.repo.Branch)
		readers = append(readers, evaluate.Reader(&t))
	}
	ix, err := l.buildIndex(ctx, previous, readers)
	if err != nil {
		return nil, fmt.Errorf("find out what the targets read at %s of %s: %w", l.Commit, l.branch, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index, l.previous = ix, nil
	return ix, nil
}

// buildIndex updates the index before, or builds one where there is none.
func (l *LazyIndex) buildIndex(ctx context.Context, previous *LazyIndex, readers []deps.Reader) (*deps.Index, error) {
	tree := l.repo.Mirror.Tree(l.Commit)
	if previous == nil {
		return deps.Build(ctx, tree, readers)
	}
	changes, err := l.repo.Mirror.Changed(ctx, previous.Commit, l.Commit)
	if err != nil {
		return deps.Build(ctx, tree, readers) // the commit before may be gone
	}
	files := make([]string, len(changes))
	for i, c := range changes {
		files[i] = c.Path
	}
	return previous.index.Update(ctx, tree, readers, files)
}

// AffectedReaders says which of a pipeline's targets read which of some files of a
// branch, by the targets' IDs.
func (r *ResolvedPipeline) AffectedReaders(ctx context.Context, branch string, files []string) (map[string][]string, error) {
	ix, err := r.ReaderIndexes[branch].Get(ctx)
	if err != nil {
		return nil, err
	}
	return ix.AffectedReaders(files), nil
}
