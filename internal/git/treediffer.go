package git

import (
	"errors"
	"slices"
	"strings"
)

// maxDifferentFolders bounds the folders that are compared here; a larger
// difference is git's to find.
const maxDifferentFolders = 100

// maxDifferentFiles bounds the files that differ, likewise.
const maxDifferentFiles = 100_000

// errLargeDiff says that a difference is larger than is compared here.
var errLargeDiff = errors.New("many folders differ")

// treeDiffer compares two trees in this process. After a push that costs a few questions to a git
// that runs already, where git diff-tree is a program to start.
type treeDiffer struct {
	listOld, listNew       func(folder string) ([]treeEntry, error)
	mostFolders, mostFiles int // 0: any number
	folders                int
	changes                []FileChange
}

// compareTrees gives what git diff-tree -r --no-renames would. Any error means that
// git should be asked.
func (r *repository) compareTrees(a, b string) ([]FileChange, error) {
	was, is := r.Tree(a), r.Tree(b)
	old, err := was.rootEntry()
	if err != nil {
		return nil, err
	}
	now, err := is.rootEntry()
	if err != nil {
		return nil, err
	}
	d := &treeDiffer{listOld: was.listEntries, listNew: is.listEntries, mostFolders: maxDifferentFolders, mostFiles: maxDifferentFiles}
	return d.compareRoots(old, now)
}

// compareRoots gives what differs between two folders.
func (t *treeDiffer) compareRoots(old, now treeEntry) ([]FileChange, error) {
	if err := t.compareFolder("", old, now); err != nil {
		return nil, err
	}
	// Git's order, in which a folder comes where its files do.
	slices.SortFunc(t.changes, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return t.changes, nil
}

// compareFolder compares what is in two folders; one without an id is not there.
func (t *treeDiffer) compareFolder(at string, old, now treeEntry) error {
	if old.sha == now.sha {
		return nil
	}
	if t.folders++; t.mostFolders > 0 && t.folders > t.mostFolders {
		return errLargeDiff
	}
	before, err := listOrEmpty(t.listOld, old)
	if err != nil {
		return err
	}
	after, err := listOrEmpty(t.listNew, now)
	if err != nil {
		return err
	}
	return pairEntries(before, after, func(was, is treeEntry) error { return t.compareEntry(at, was, is) })
}

// pairEntries calls do for each name that two folders have; what isn't in one of them is the zero
// value there. An error of do ends it.
func pairEntries(before, after []treeEntry, do func(was, is treeEntry) error) error {
	for len(before) > 0 || len(after) > 0 {
		var was, is treeEntry
		if len(after) == 0 || len(before) > 0 && before[0].name <= after[0].name {
			was, before = before[0], before[1:]
		}
		if len(after) > 0 && (was.name == "" || after[0].name == was.name) {
			is, after = after[0], after[1:]
		}
		if err := do(was, is); err != nil {
			return err
		}
	}
	return nil
}

func listOrEmpty(list func(folder string) ([]treeEntry, error), folder treeEntry) ([]treeEntry, error) {
	if folder.sha == "" {
		return nil, nil
	}
	return list(folder.sha)
}

// compareEntry compares what has one name; what isn't there has none.
func (t *treeDiffer) compareEntry(at string, was, is treeEntry) error {
	if was == is {
		return nil
	}
	path := at + was.name
	if was.name == "" {
		path = at + is.name
	}
	var none treeEntry
	oldFolder, newFolder := none, none
	if was.mode == Directory {
		oldFolder, was = was, none
	}
	if is.mode == Directory {
		newFolder, is = is, none
	}
	switch {
	case was == is:
	case was == none:
		t.changes = append(t.changes, FileChange{Path: path, Status: 'A', NewMode: is.mode})
	case is == none:
		t.changes = append(t.changes, FileChange{Path: path, Status: 'D', OldMode: was.mode})
	default:
		status := byte('M')
		if was.mode.FS().Type() != is.mode.FS().Type() {
			status = 'T'
		}
		t.changes = append(t.changes, FileChange{Path: path, Status: status, OldMode: was.mode, NewMode: is.mode})
	}
	if t.mostFiles > 0 && len(t.changes) > t.mostFiles {
		return errLargeDiff // folders may repeat one another, and what a stranger wrote does
	}
	if oldFolder.sha == newFolder.sha {
		return nil
	}
	return t.compareFolder(path+"/", oldFolder, newFolder)
}
