package facts

import (
	"context"
	"fmt"
	"sync"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/lock"
	"github.com/liftlock/liftlock/internal/manifest/deps"
)

// lazyIndex is a pipeline's index of files and their readers at one commit of a branch,
// made when it is first needed: most commits need none. Then the newest one
// that was made before it is brought up to date, which costs as little as what
// changed since.
type lazyIndex struct {
	repo    *Repository
	branch  string
	commit  string
	targets []appset.Target // as they were resolved

	building lock.Keyed[string] // held while it is made
	mu       sync.Mutex
	previous *lazyIndex // made already; nil: none, or no longer needed
	index    *deps.Index
}

// newLazyIndex is the index of a branch's commit; before, that of the snapshot before, may be nil.
func newLazyIndex(r *Repository, branch, commit string, targets []appset.Target, before *lazyIndex) *lazyIndex {
	return &lazyIndex{repo: r, branch: branch, commit: commit, targets: targets, previous: before.newestBuilt()}
}

// isFor says that an index is that of a commit and of targets, unchanged.
func (l *lazyIndex) isFor(commit string, targets []appset.Target) bool {
	if l == nil || l.commit != commit || len(l.targets) != len(targets) {
		return false
	}
	return len(targets) == 0 || &l.targets[0] == &targets[0]
}

// newestBuilt is the newest of this index and those before it that was made.
func (l *lazyIndex) newestBuilt() *lazyIndex {
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

// get makes the index once; an error is not remembered.
func (l *lazyIndex) get(ctx context.Context) (*deps.Index, error) {
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
	readers := make([]deps.Reader, 0, len(l.targets))
	for i := range l.targets {
		t := appset.ViewFromBranch(l.targets[i], l.branch, l.repo.Branch)
		readers = append(readers, evaluate.Reader(&t))
	}
	ix, err := l.buildIndex(ctx, previous, readers)
	if err != nil {
		return nil, fmt.Errorf("find out what the targets read at %s of %s: %w", l.commit, l.branch, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index, l.previous = ix, nil
	return ix, nil
}

// buildIndex updates the index before, or builds one where there is none.
func (l *lazyIndex) buildIndex(ctx context.Context, previous *lazyIndex, readers []deps.Reader) (*deps.Index, error) {
	tree := l.repo.Mirror.Tree(l.commit)
	if previous == nil {
		return deps.Build(ctx, tree, readers)
	}
	changes, err := l.repo.Mirror.Changed(ctx, previous.commit, l.commit)
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
	ix, err := r.readerIndexes[branch].get(ctx)
	if err != nil {
		return nil, err
	}
	return ix.AffectedReaders(files), nil
}
