package git

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// These bound how much is read of a difference that anybody who can open a pull request may have
// made. Folders may repeat one another: a pack of 1,545 bytes, ten objects, stands for 40⁸ paths.
const (
	maxBoundedFiles   = 100_000
	maxBoundedFolders = 100_000
	maxBoundedBytes   = 16 << 20 // of all paths together
	maxBoundedEntries = 500_000  // that are read to count, of folders that differ from one another
	maxBoundedDepth   = 512
)

// BoundedChanges is Changed for a commit that a stranger may have made. It counts the differences
// before it lists them, each folder once however often it is repeated, and runs no program. It is
// ErrTooLarge, whose hint says by how much, where there are more than the limits.
func (r *repository) BoundedChanges(ctx context.Context, a, b string) ([]FileChange, error) {
	pair := commitPair{a, b}
	if list, known := r.caches.differences.Get(pair); known {
		return slices.Clone(list), nil
	}
	if err := r.requirePair(ctx, a, b); err != nil {
		return nil, err
	}
	was, is := r.Tree(a), r.Tree(b)
	var old treeEntry
	if a != "" {
		var err error
		if old, err = was.rootEntry(); err != nil {
			return nil, err
		}
	}
	now, err := is.rootEntry()
	if err != nil {
		return nil, err
	}
	c := &changeCounter{listOld: was.listEntries, listNew: is.listEntries, known: map[commitPair]changeCount{}}
	count, err := c.countFolder(ctx, old, now, 0)
	if err == nil {
		err = count.checkBounds()
	}
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	d := &treeDiffer{listOld: was.listEntries, listNew: is.listEntries, mostFiles: maxBoundedFiles}
	list, err := d.compareRoots(old, now)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	r.keepDifference(pair, list)
	return list, nil
}

// changeCount is how much differs between two folders, names from there on. Numbers that are too
// large to be held are the largest.
type changeCount struct {
	files, folders uint64
	bytes          uint64 // of the files' paths
}

func (c changeCount) checkBounds() error {
	for _, bound := range []struct {
		has  uint64
		most uint64
		what string
	}{
		{c.files, maxBoundedFiles, "files"},
		{c.folders, maxBoundedFolders, "folders"},
		{c.bytes, maxBoundedBytes, "bytes of paths"},
	} {
		if bound.has > bound.most {
			return &Error{Op: "count what differs", Kind: ErrTooLarge, Hint: fmt.Sprintf("it changes %s %s, of at most %d",
				countText(bound.has), bound.what, bound.most)}
		}
	}
	return nil
}

// countText writes a number of which the largest stands for any larger one.
func countText(n uint64) string {
	if n == ^uint64(0) {
		return fmt.Sprintf("more than %d", n)
	}
	return fmt.Sprint(n)
}

func addBounded(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}

func multiplyBounded(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return ^uint64(0)
	}
	return low
}

// changeCounter counts what differs between two trees.
type changeCounter struct {
	listOld, listNew func(folder string) ([]treeEntry, error)
	known            map[commitPair]changeCount // by the ids of two folders
	entries          int                        // that were read
}

// countFolder counts what differs between two folders; one without an id is not there.
func (c *changeCounter) countFolder(ctx context.Context, old, now treeEntry, depth int) (changeCount, error) {
	pair := commitPair{old.sha, now.sha}
	if pair.a == pair.b {
		return changeCount{}, nil
	}
	if n, known := c.known[pair]; known {
		return n, nil
	}
	if depth > maxBoundedDepth {
		return changeCount{}, &Error{Op: "count what differs", Kind: ErrTooLarge,
			Hint: fmt.Sprintf("it has more than %d folders within one another", maxBoundedDepth)}
	}
	if err := ctx.Err(); err != nil {
		return changeCount{}, err
	}
	before, err := c.list(c.listOld, old)
	if err != nil {
		return changeCount{}, err
	}
	after, err := c.list(c.listNew, now)
	if err != nil {
		return changeCount{}, err
	}
	count := changeCount{folders: 1}
	err = pairEntries(before, after, func(was, is treeEntry) error {
		name := uint64(max(len(was.name), len(is.name)))
		var none, oldFolder, newFolder treeEntry
		if was.mode == Directory {
			oldFolder, was = was, none
		}
		if is.mode == Directory {
			newFolder, is = is, none
		}
		if was != is {
			count.files, count.bytes = addBounded(count.files, 1), addBounded(count.bytes, name)
		}
		below, err := c.countFolder(ctx, oldFolder, newFolder, depth+1)
		count.files, count.folders = addBounded(count.files, below.files), addBounded(count.folders, below.folders)
		count.bytes = addBounded(count.bytes, addBounded(below.bytes, multiplyBounded(below.files, name+1)))
		return err
	})
	if err == nil {
		c.known[pair] = count
	}
	return count, err
}

// list lists a folder within what may be read.
func (c *changeCounter) list(read func(folder string) ([]treeEntry, error), folder treeEntry) ([]treeEntry, error) {
	list, err := listOrEmpty(read, folder)
	if c.entries += len(list) + 1; c.entries > maxBoundedEntries {
		return nil, &Error{Op: "count what differs", Kind: ErrTooLarge,
			Hint: fmt.Sprintf("the folders that it changes have more than %d entries", maxBoundedEntries)}
	}
	return list, err
}
