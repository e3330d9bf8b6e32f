package fieldedit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Restore returns the edits that undo a promotion. before is the tree it was made on, landed the
// tree with it, now the tree to undo it in. files are those it changed, from the repository's root,
// each one of an overlay's. The edits undo all that it moved, in several overlays too.
//
// A file that is as it landed becomes exactly what it was before: its bytes, its mode, there or
// not. In a file that has changed since, each carried field that the promotion moved and that still
// has the landed value gets its value from before, written as it was then. A field that the
// promotion added is taken out again, and one that is as before already is left alone. Where any
// field has a third value the error is a *ChangedError with all of them: nothing is edited, and a
// person decides. A file that is carried as a whole is one field. It returns nil where there is
// nothing to undo.
func Restore(before, landed, now fs.FS, files []string, overlays ...Overlay) ([]Edit, error) {
	r := &restorer{before: newFiles(before, nil), landed: newFiles(landed, nil), now: newFiles(now, nil)}
	for _, o := range overlays {
		b, err := o.resolvePlaceholders()
		if err != nil {
			return nil, err
		}
		r.overlays = append(r.overlays, b)
	}
	r.editor = newEditor(r.now)
	names := slices.Clone(files)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := r.checkInside(name); err != nil {
			return nil, err
		}
		if err := r.restoreFile(name); err != nil {
			return nil, err
		}
	}
	if len(r.changed) > 0 {
		return nil, &ChangedError{Fields: r.changed}
	}
	return r.editor.collectEdits()
}

type restorer struct {
	overlays            []*resolvedOverlay
	before, landed, now *commitFiles
	editor              *editor
	changed             []ChangedField
}

func (r *restorer) checkInside(name string) error {
	for _, b := range r.overlays {
		for _, root := range b.roots {
			if fs.ValidPath(name) && isUnderRoot(root, name) && (!b.shared[root] || b.coversFile(root, name)) {
				return nil
			}
		}
	}
	return &RefusedError{File: name, Reason: "the promotion edited it, but it is outside the environment's overlays: undo it by hand"}
}

// restoreFile undoes one file: as a whole where it is as it landed, otherwise field by
// field.
func (r *restorer) restoreFile(name string) error {
	before, err := r.before.readContent(name)
	if err != nil {
		return fmt.Errorf("before the promotion: %w", err)
	}
	landed, err := r.landed.readContent(name)
	if err != nil {
		return fmt.Errorf("as the promotion landed: %w", err)
	}
	now, err := r.now.readContent(name)
	if err != nil {
		return err
	}
	switch {
	case now.equals(before):
		return nil
	case now.equals(landed):
		return r.restoreExact(name, now, before)
	case before == nil || landed == nil || r.isWholeFile(name):
		r.changed = append(r.changed, ChangedField{File: name, Kind: KindFile, Before: before.fieldValue(), Landed: landed.fieldValue(),
			Now: now.fieldValue(), Gone: now == nil})
		return nil
	}
	return r.restoreFields(name)
}

// fileContent is a file as it is in one tree; nil where there is none.
type fileContent struct {
	data []byte
	mode Mode
}

func (c *commitFiles) readContent(name string) (*fileContent, error) {
	info, err := c.statPath(name)
	if err == nil {
		var data []byte
		data, err = c.readBytes(name)
		if err == nil {
			return &fileContent{data, ModeOf(info)}, nil
		}
	}
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	return nil, err
}

func (f *fileContent) equals(o *fileContent) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.mode == o.mode && bytes.Equal(f.data, o.data)
}

func (f *fileContent) fieldValue() string {
	if f == nil {
		return ""
	}
	return wholeValue(f.mode, objectID(f.data))
}

// restoreExact makes a file exactly what it was.
func (r *restorer) restoreExact(name string, now, before *fileContent) error {
	changes, err := r.listChanges(name)
	if err != nil {
		return err
	}
	e := Edit{File: name, Changes: changes}
	if len(changes) == 0 {
		e.Changes = []Change{{File: name, Kind: KindFile, Old: now.fieldValue(), New: before.fieldValue(), Added: now == nil,
			Removed: before == nil}}
	}
	if now == nil {
		e.Created = true
	} else {
		e.Before = now.data
	}
	if before == nil {
		e.Deleted = true
	} else {
		e.After, e.Mode = before.data, before.mode
	}
	r.editor.wholeFiles[name] = e
	return nil
}

// isWholeFile says that a file is carried as a whole.
func (r *restorer) isWholeFile(name string) bool {
	for _, b := range r.overlays {
		for _, root := range b.roots {
			if isUnderRoot(root, name) && b.picksWhole(root, strings.TrimPrefix(name, joinRoot(root, ""))) {
				return true
			}
		}
	}
	return false
}

// locateInFile lists the carried fields of one file, by address. Other files aren't read: one that
// can't be read must not stop this one's revert.
func (r *restorer) locateInFile(f *commitFiles, name string) (map[string]Location, error) {
	f.onlyFile = name
	at := map[string]Location{}
	for _, b := range r.overlays {
		found, err := f.locateFields(b)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			at[l.Field.Kind+"\x00"+l.Path()] = l
		}
	}
	return at, nil
}

// listChanges lists what going from landed to before changes in a file.
func (r *restorer) listChanges(name string) ([]Change, error) {
	before, landed, err := r.locateBothSides(name)
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, key := range unionKeys(before, landed) {
		b, had := before[key]
		l, has := landed[key]
		at := b
		if !had {
			at = l
		}
		if had != has || b.Field.Value != l.Field.Value {
			out = append(out, Change{File: name, Kind: at.Field.Kind, Path: at.Path(),
				Old: l.Field.Value, New: b.Field.Value, Line: b.Line, Added: !has, Removed: !had})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path)) })
	return out, nil
}

func (r *restorer) locateBothSides(name string) (before, landed map[string]Location, err error) {
	if before, err = r.locateInFile(r.before, name); err != nil {
		return nil, nil, fmt.Errorf("before the promotion: %w", err)
	}
	if landed, err = r.locateInFile(r.landed, name); err != nil {
		return nil, nil, fmt.Errorf("as the promotion landed: %w", err)
	}
	return before, landed, nil
}

// restoreFields undoes the fields of a file that changed since.
func (r *restorer) restoreFields(name string) error {
	before, landed, err := r.locateBothSides(name)
	if err != nil {
		return err
	}
	now, err := r.locateInFile(r.now, name)
	if err != nil {
		return err
	}
	for _, key := range unionKeys(before, landed) {
		if err := r.restoreField(name, before, landed, now, key); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) restoreField(name string, before, landed, now map[string]Location, key string) error {
	b, hadBefore := before[key]
	l, hadLanded := landed[key]
	n, hasNow := now[key]
	switch {
	case hadBefore == hadLanded && b.Field.Value == l.Field.Value:
		return nil // the promotion didn't move it
	case hadBefore == hasNow && b.Field.Value == n.Field.Value:
		return nil // it is back already
	case hadLanded != hasNow || l.Field.Value != n.Field.Value:
		f := l
		if !hadLanded {
			f = b
		}
		r.changed = append(r.changed, ChangedField{File: name, Kind: f.Field.Kind, Path: f.Path(), Line: n.Line,
			Before: b.Field.Value, Landed: l.Field.Value, Now: n.Field.Value, New: !hadBefore, Gone: !hasNow})
		return nil
	}
	if !hadBefore {
		return withLocation(r.removeAddedField(name, l.address), name, l.Path())
	}
	return r.setAsBefore(name, b.address, b.Field)
}

// setAsBefore sets a field to its value from before, with the very text it had
// there where that means the same here.
func (r *restorer) setAsBefore(name string, a fieldAddress, was Field) error {
	w, err := r.editor.openFile(name, a.documentFormat())
	if err != nil {
		return err
	}
	old, err := r.before.readDocument(name, a.documentFormat())
	if err != nil {
		return err
	}
	if a.kind != KindRef { // of which only a part of the text is the field
		if d, c, ok := w.doc.copyFieldText(a, old); ok {
			w.recordChange(name, d, a, c)
			return nil
		}
	}
	return r.editor.setField(name, a, was.Value, was.Type)
}

// removeAddedField removes a field that the promotion added, with what it had to add to
// hold it: as much as the file didn't have before.
func (r *restorer) removeAddedField(name string, a fieldAddress) error {
	w, err := r.editor.openFile(name, a.documentFormat())
	if err != nil {
		return err
	}
	at, err := w.doc.readField(a)
	if err != nil || !at.ok {
		return err // gone with another one that held it
	}
	if a.kind == KindRef {
		return newRefusal(at.line, "the promotion added a remote base or its ref: remove it by hand")
	}
	old, err := r.before.readDocument(name, a.documentFormat())
	if err != nil {
		return err
	}
	landed, err := r.landed.readDocument(name, a.documentFormat())
	if err != nil {
		return err
	}
	outer, err := old.firstMissing(a.toPath())
	if err != nil {
		return err
	}
	landedNode, err := landed.findPath(outer)
	if err != nil {
		return err
	}
	currentNode, err := w.doc.findPath(outer)
	if err != nil {
		return err
	}
	if landedNode.node == nil || currentNode.node == nil || !sameTree(landedNode.node, currentNode.node, nil) {
		return newRefusal(0, "the promotion added %s, and more has changed in it since: remove it by hand", outer)
	}
	d, err := w.doc.cutEntry(currentNode)
	if err != nil {
		return err
	}
	c := Change{Kind: a.kind, Path: a.String(), Line: currentNode.node.Line, Removed: true}
	if n, err := requireScalar(landedNode.node); err == nil {
		c.Old = scalarValue(n)
	}
	w.recordChange(name, d, a, c)
	return nil
}
