package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/manifest/textdiff"
)

// Merge merges two commits three-way, against their merge base, or an empty tree where they have none. A
// file that one side changed is that side's. A file that both changed is merged by lines where
// their changes don't touch. It gives the merged tree, which a CommitSpec takes as its Base, or the
// paths that conflict, sorted. It returns ErrUnknownCommit where one
// of the commits doesn't exist.
func (mr *MemoryRemote) Merge(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	base, _, err := mr.MergeBase(ctx, ours, theirs)
	if err != nil {
		return "", nil, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
	}
	m := &treeMerge{objects: mr.engine.objects}
	for _, side := range []struct {
		commit string
		tree   *string
	}{{base, &m.base}, {ours, &m.ours}, {theirs, &m.theirs}} {
		if *side.tree, err = mr.engine.findTree(side.commit); err != nil {
			return "", nil, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
		}
	}
	tree, conflicts, err = m.mergeTrees()
	if err != nil {
		return "", nil, fmt.Errorf("merge %s into %s: %w", theirs, ours, err)
	}
	return tree, conflicts, nil
}

type treeMerge struct {
	objects            *memoryObjects
	base, ours, theirs string // trees; base may be ""
}

func (t *treeMerge) mergeTrees() (tree string, conflicts []string, err error) {
	ourChanges, err := t.objects.listChanges(t.base, t.ours)
	if err != nil {
		return "", nil, err
	}
	theirChanges, err := t.objects.listChanges(t.base, t.theirs)
	if err != nil {
		return "", nil, err
	}
	changedByUs := map[string]bool{}
	for _, c := range ourChanges {
		changedByUs[c.Path] = true
	}
	var edits []fileEdit
	for _, c := range theirChanges {
		theirs, _ := t.objects.findPath(t.theirs, c.Path)
		if c.NewMode == 0 {
			theirs = treeEntry{}
		}
		edit := fileEdit{path: c.Path, mode: theirs.mode, sha: theirs.sha}
		merged := true
		if changedByUs[c.Path] {
			edit, merged = t.mergeFile(c.Path, theirs)
		}
		if at, _ := t.objects.findPath(t.ours, c.Path); merged && edit.sha == "" && at.mode == Directory {
			continue // our side removed the file too, and put a folder in its place
		}
		if !merged || edit.sha != "" && t.isInTheWay(c.Path, theirChanges) {
			conflicts = append(conflicts, c.Path)
			continue
		}
		edits = append(edits, edit)
	}
	if len(conflicts) > 0 {
		return "", conflicts, nil
	}
	tree, err = t.objects.editTree(t.ours, edits)
	if err == nil && tree == "" {
		tree = emptyTree
	}
	return tree, nil, err
}

// isInTheWay says that a file can't be put at a path, since on our side something else
// is there or above it that theirs don't remove.
func (t *treeMerge) isInTheWay(path string, theirs []FileChange) bool {
	removed := map[string]bool{}
	for _, c := range theirs {
		removed[c.Path] = c.NewMode == 0
	}
	for above := range parentFolders(path) {
		if e, ok := t.objects.findPath(t.ours, above); ok && e.mode != Directory && !removed[above] {
			return true
		}
	}
	at, ok := t.objects.findPath(t.ours, path)
	if !ok || at.mode != Directory {
		return false
	}
	blocked := false
	err := t.objects.walkFiles(path, at, func(f FileEntry) { blocked = blocked || !removed[f.Path] })
	return blocked || err != nil
}

// mergeFile merges a path that both sides changed; false: that can't be done.
func (t *treeMerge) mergeFile(path string, theirs treeEntry) (fileEdit, bool) {
	edit := fileEdit{path: path, mode: theirs.mode, sha: theirs.sha}
	ours, _ := t.objects.findPath(t.ours, path)
	if ours.mode == Directory {
		ours = treeEntry{}
	}
	if ours == theirs {
		return edit, true
	}
	base, inBase := t.objects.findPath(t.base, path)
	if !inBase || !isPlainFile(base) || !isPlainFile(ours) || !isPlainFile(theirs) {
		return fileEdit{}, false
	}
	if edit.mode == base.mode {
		edit.mode = ours.mode
	}
	switch {
	case theirs.sha == base.sha || theirs.sha == ours.sha:
		edit.sha = ours.sha
	case ours.sha == base.sha:
	default:
		merged, ok := textdiff.Merge(t.readLines(base.sha), t.readLines(ours.sha), t.readLines(theirs.sha))
		if !ok {
			return fileEdit{}, false
		}
		edit.sha = t.objects.storeBlob([]byte(strings.Join(merged, "")))
	}
	return edit, true
}

func isPlainFile(e treeEntry) bool { return e.mode == Regular || e.mode == Executable }

func (t *treeMerge) readLines(blob string) []string {
	o, _ := t.objects.lookUp(blob)
	return textdiff.SplitLines(o.data)
}
