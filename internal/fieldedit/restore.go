package fieldedit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
)

// Restore returns the edits that undo a promotion: before is the tree it was
// made on, landed the tree with it, now the tree to undo it in, files what it
// touched (from the repository's root, each one of an overlay's): of all that it
// moved, where that were several.
//
// A file that is as it landed becomes exactly what it was before: its bytes,
// its mode, there or not. In one that has changed since, each carried field that
// the promotion moved and that still has the landed value gets its value from
// before, written as it was then, and one that it added is taken out again; one
// that is as before already is left alone; and where any has a third value the
// error is a *ChangedError with all of them: nothing is edited, and a person
// decides. A file that is carried as a whole is one field. nil where there is
// nothing to undo.
func Restore(before, landed, now fs.FS, files []string, overlays ...Overlay) ([]Edit, error) {
	r := &restorer{before: newFiles(before, nil), landed: newFiles(landed, nil), now: newFiles(now, nil)}
	for _, o := range overlays {
		b, err := o.bind()
		if err != nil {
			return nil, err
		}
		r.bounds = append(r.bounds, b)
	}
	r.editor = newEditor(r.now)
	names := slices.Clone(files)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := r.inside(name); err != nil {
			return nil, err
		}
		if err := r.file(name); err != nil {
			return nil, err
		}
	}
	if len(r.changed) > 0 {
		return nil, &ChangedError{Fields: r.changed}
	}
	return r.editor.edits()
}

type restorer struct {
	bounds              []*bound
	before, landed, now *files
	editor              *editor
	changed             []ChangedField
}

func (r *restorer) inside(name string) error {
	for _, b := range r.bounds {
		for _, root := range b.roots {
			if fs.ValidPath(name) && under(root, name) && (!b.shared[root] || b.covers(root, name)) {
				return nil
			}
		}
	}
	return &RefusedError{File: name, Reason: "the promotion edited it, but it is outside the environment's overlays: undo it by hand"}
}

// file undoes one file: as a whole where it is as it landed, otherwise field by
// field.
func (r *restorer) file(name string) error {
	was, err := r.before.content(name)
	if err != nil {
		return fmt.Errorf("before the promotion: %w", err)
	}
	with, err := r.landed.content(name)
	if err != nil {
		return fmt.Errorf("as the promotion landed: %w", err)
	}
	is, err := r.now.content(name)
	if err != nil {
		return err
	}
	switch {
	case is.equals(was):
		return nil
	case is.equals(with):
		return r.back(name, is, was)
	case was == nil || with == nil || r.whole(name):
		r.changed = append(r.changed, ChangedField{File: name, Kind: KindFile, Before: was.value(), Landed: with.value(), Now: is.value(), Gone: is == nil})
		return nil
	}
	return r.fields(name)
}

// content is a file as it is in one tree; nil where there is none.
type content struct {
	data []byte
	mode Mode
}

func (f *files) content(name string) (*content, error) {
	info, err := f.stat(name)
	if err == nil {
		var data []byte
		data, err = f.bytes(name)
		if err == nil {
			return &content{data, modeOf(info)}, nil
		}
	}
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	return nil, err
}

func (c *content) equals(o *content) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.mode == o.mode && bytes.Equal(c.data, o.data)
}

func (c *content) value() string {
	if c == nil {
		return ""
	}
	return wholeValue(c.mode, objectID(c.data))
}

// back makes a file exactly what it was.
func (r *restorer) back(name string, is, was *content) error {
	changes, err := r.moved(name)
	if err != nil {
		return err
	}
	e := Edit{File: name, Changes: changes}
	if len(changes) == 0 {
		e.Changes = []Change{{File: name, Kind: KindFile, Old: is.value(), New: was.value(), Added: is == nil, Removed: was == nil}}
	}
	if is == nil {
		e.Created = true
	} else {
		e.Before = is.data
	}
	if was == nil {
		e.Deleted = true
	} else {
		e.After, e.Mode = was.data, was.mode
	}
	r.editor.whole[name] = e
	return nil
}

// whole says that a file is carried as a whole.
func (r *restorer) whole(name string) bool {
	for _, b := range r.bounds {
		for _, root := range b.roots {
			if under(root, name) && b.picksWhole(root, strings.TrimPrefix(name, join(root, ""))) {
				return true
			}
		}
	}
	return false
}

// inFile lists the carried fields of one file, by address. Other files aren't
// looked at: one that can't be read must not stop this one's way back.
func (r *restorer) inFile(f *files, name string) (map[string]Location, error) {
	f.only = name
	at := map[string]Location{}
	for _, b := range r.bounds {
		found, err := f.locate(b)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			at[l.Field.Kind+"\x00"+l.Path()] = l
		}
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
			out = append(out, Change{File: name, Kind: w.Field.Kind, Path: w.Path(),
				Old: l.Field.Value, New: w.Field.Value, Line: w.Line, Added: !had})
		}
	}
	for key, l := range with {
		if _, had := was[key]; !had {
			out = append(out, Change{File: name, Kind: l.Field.Kind, Path: l.Path(), Old: l.Field.Value, Removed: true})
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
func (r *restorer) fields(name string) error {
	was, with, err := r.sides(name)
	if err != nil {
		return err
	}
	is, err := r.inFile(r.now, name)
	if err != nil {
		return err
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
		f := l
		if !hadLanded {
			f = b
		}
		r.changed = append(r.changed, ChangedField{File: name, Kind: f.Field.Kind, Path: f.Path(), Line: n.Line,
			Before: b.Field.Value, Landed: l.Field.Value, Now: n.Field.Value, New: !hadBefore, Gone: !hasNow})
		return nil
	}
	if !hadBefore {
		return in(r.takeOut(name, l.at), name, l.Path())
	}
	return r.setAsBefore(name, b.at, b.Field)
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

// takeOut removes a field that the promotion added, with what it had to add to
// hold it: as much as the file didn't have before.
func (r *restorer) takeOut(name string, a address) error {
	w, err := r.editor.file(name, a.format())
	if err != nil {
		return err
	}
	if at, err := w.doc.get(a); err != nil || !at.ok {
		return err // gone with another one that held it
	}
	old, err := r.before.document(name, a.format())
	if err != nil {
		return err
	}
	landed, err := r.landed.document(name, a.format())
	if err != nil {
		return err
	}
	outer, err := old.firstMissing(a.where())
	if err != nil {
		return err
	}
	with, err := landed.find(outer)
	if err != nil {
		return err
	}
	is, err := w.doc.find(outer)
	if err != nil {
		return err
	}
	if with.node == nil || is.node == nil || !sameTree(with.node, is.node, nil) {
		return refuse(0, "the promotion added %s, and more has changed in it since: remove it by hand", outer)
	}
	line, value := is.node.Line, with.node
	d, err := w.doc.cut(is)
	if err != nil {
		return err
	}
	c := Change{Kind: a.kind, Path: a.String(), Removed: true}
	if n, err := readable(value); err == nil {
		c.Old = scalarValue(n)
	}
	c.Line = line
	w.record(name, d, a, c)
	return nil
}
