package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// Restore returns the edits that undo a promotion: before is the tree it was
// made on, landed the tree with it, now the tree to undo it in, files what it
// edited (from the repository's root, each under one of roots).
//
// A file that is as it landed gets exactly its bytes from before. In one that
// has changed since, each carried field that the promotion moved and that
// still has the landed value gets its value from before, written as it was
// then; one that has its value from before already is left alone; and where
// any has a third value the error is a *ChangedError with all of them: nothing
// is edited, and a person decides. nil where there is nothing to undo.
func Restore(before, landed, now fs.FS, files, roots []string, carry []pipeline.Carry) ([]Edit, error) {
	roots, err := cleanRoots(roots)
	if err != nil {
		return nil, err
	}
	r := &restorer{before: newFiles(before, nil), landed: newFiles(landed, nil), now: newFiles(now, nil), roots: roots, carry: carry}
	r.editor = newEditor(r.now)
	names := append([]string(nil), files...)
	sort.Strings(names)
	var whole []Edit
	for i, name := range names {
		if i > 0 && name == names[i-1] {
			continue
		}
		if err := r.inside(name); err != nil {
			return nil, err
		}
		e, err := r.file(name)
		if err != nil {
			return nil, err
		}
		if e != nil {
			whole = append(whole, *e)
		}
	}
	if len(r.changed) > 0 {
		return nil, &ChangedError{Fields: r.changed}
	}
	edits, err := r.editor.edits()
	if err != nil {
		return nil, err
	}
	edits = append(edits, whole...)
	sort.Slice(edits, func(i, j int) bool { return edits[i].File < edits[j].File })
	return edits, nil
}

type restorer struct {
	before, landed, now *files
	roots               []string
	carry               []pipeline.Carry
	editor              *editor
	changed             []ChangedField
}

func (r *restorer) inside(name string) error {
	for _, root := range r.roots {
		if fs.ValidPath(name) && under(root, name) {
			return nil
		}
	}
	return &RefusedError{File: name, Reason: "the promotion edited it, but it is outside the environment's overlays: undo it by hand"}
}

// file undoes one file: as a whole where the returned edit is set, otherwise
// field by field through the editor.
func (r *restorer) file(name string) (*Edit, error) {
	was, err := content(r.before, name)
	if err != nil {
		return nil, fmt.Errorf("before the promotion: %w", err)
	}
	with, err := content(r.landed, name)
	if err != nil {
		return nil, fmt.Errorf("as the promotion landed: %w", err)
	}
	is, err := content(r.now, name)
	if err != nil {
		return nil, err
	}
	switch {
	case was == nil || with == nil:
		return nil, &RefusedError{File: name, Reason: "the promotion created or removed the file, which is not supported yet: undo it by hand"}
	case is != nil && bytes.Equal(is, was):
		return nil, nil
	case is != nil && bytes.Equal(is, with):
		changes, err := r.moved(name)
		if err != nil {
			return nil, err
		}
		return &Edit{File: name, Before: is, After: was, Changes: changes}, nil
	}
	return nil, r.fields(name, is != nil)
}

// content is a file's bytes; nil where there is no such file.
func content(f *files, name string) ([]byte, error) {
	data, err := f.read(name)
	switch {
	case errors.Is(err, errAbsent):
		return nil, nil
	case err != nil:
		return nil, err
	case data == nil:
		return []byte{}, nil
	}
	return data, nil
}

// inFile lists the carried fields of one file, by address. Other files aren't
// looked at: one that can't be read must not stop this one's way back.
func (r *restorer) inFile(f *files, name string) (map[string]Location, error) {
	f.only = name
	found, err := f.locate(r.roots, r.carry)
	if err != nil {
		return nil, err
	}
	at := map[string]Location{}
	for _, l := range found {
		at[l.Field.Kind+"\x00"+l.Field.Path] = l
	}
	return at, nil
}

// moved lists what going from landed to before changes in a file.
func (r *restorer) moved(name string) ([]Change, error) {
	was, with, err := r.sides(name)
	if err != nil {
		return nil, err
	}
	var out []Change
	for key, w := range was {
		l, had := with[key]
		if !had || l.Field.Value != w.Field.Value {
			out = append(out, Change{File: name, Kind: w.Field.Kind, Path: w.Field.Path,
				Old: l.Field.Value, New: w.Field.Value, Line: w.Line, Added: !had})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Line < out[j].Line || out[i].Line == out[j].Line && out[i].Path < out[j].Path
	})
	return out, nil
}

func (r *restorer) sides(name string) (was, with map[string]Location, err error) {
	if was, err = r.inFile(r.before, name); err != nil {
		return nil, nil, fmt.Errorf("before the promotion: %w", err)
	}
	if with, err = r.inFile(r.landed, name); err != nil {
		return nil, nil, fmt.Errorf("as the promotion landed: %w", err)
	}
	return was, with, nil
}

// fields undoes the fields of a file that changed since.
func (r *restorer) fields(name string, exists bool) error {
	was, with, err := r.sides(name)
	if err != nil {
		return err
	}
	is := map[string]Location{}
	if exists {
		if is, err = r.inFile(r.now, name); err != nil {
			return err
		}
	}
	keys := make([]string, 0, len(with))
	for key := range with {
		keys = append(keys, key)
	}
	for key := range was {
		if _, ok := with[key]; !ok {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		if err := r.field(name, was, with, is, key); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) field(name string, was, with, is map[string]Location, key string) error {
	b, hadBefore := was[key]
	l, hadLanded := with[key]
	n, hasNow := is[key]
	switch {
	case hadBefore == hadLanded && b.Field.Value == l.Field.Value:
		return nil // the promotion didn't move it
	case hadBefore == hasNow && b.Field.Value == n.Field.Value:
		return nil // it is back already
	case hadLanded != hasNow || l.Field.Value != n.Field.Value:
		f := l.Field
		if !hadLanded {
			f = b.Field
		}
		r.changed = append(r.changed, ChangedField{File: name, Kind: f.Kind, Path: f.Path, Line: n.Line,
			Before: b.Field.Value, Landed: l.Field.Value, Now: n.Field.Value, Gone: !hasNow})
		return nil
	case !hadBefore:
		return &RefusedError{File: name, Line: n.Line, Field: n.Field.Path,
			Reason: "the promotion added it, and the file has changed since: remove it by hand"}
	}
	a, err := addressOf(n.Field)
	if err != nil {
		return err
	}
	return r.setAsBefore(name, a, b.Field)
}

// setAsBefore sets a field to its value from before, with the very text it had
// there where that means the same here.
func (r *restorer) setAsBefore(name string, a address, was Field) error {
	w, err := r.editor.file(name, a.format())
	if err != nil {
		return err
	}
	old, err := r.before.document(name, a.format())
	if err != nil {
		return err
	}
	if d, c, ok := w.doc.setLike(a, old); ok {
		w.record(name, d, a, c)
		return nil
	}
	return r.editor.set(name, a, was.Value, was.Type)
}
