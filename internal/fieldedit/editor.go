package fieldedit

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// editor collects edits of several fields in several files.
type editor struct {
	files      *commitFiles
	openFiles  map[string]*editedFile
	wholeFiles map[string]Edit // of files that are replaced, created or deleted
}

// editedFile is one file on its way: every accepted edit gives the next document.
type editedFile struct {
	before []byte
	mode   Mode
	doc    *document
	fields []fieldChange
}

type fieldChange struct {
	address fieldAddress
	change  Change
}

func newEditor(f *commitFiles) *editor {
	return &editor{files: f, openFiles: map[string]*editedFile{}, wholeFiles: map[string]Edit{}}
}

func (e *editor) openFile(name string, as fileFormat) (*editedFile, error) {
	if w, ok := e.openFiles[name]; ok {
		if w.doc.format != as {
			return nil, &RefusedError{File: name, Reason: "it is carried both as YAML and as JSON: carry it as one"}
		}
		return w, nil
	}
	info, err := e.files.statPath(name)
	if err != nil {
		return nil, err
	}
	d, err := e.files.readDocument(name, as)
	if err != nil {
		return nil, err
	}
	w := &editedFile{before: d.data, doc: d, mode: ModeOf(info)}
	e.openFiles[name] = w
	return w, nil
}

// setField sets one field, adding it with its type where it isn't there.
func (e *editor) setField(file string, a fieldAddress, value, typ string) error {
	w, err := e.openFile(file, a.documentFormat())
	if err != nil {
		return err
	}
	return withLocation(w.setField(file, a, value, typ), file, "")
}

func (ef *editedFile) setField(file string, a fieldAddress, value, typ string) error {
	d, c, err := ef.doc.setField(a, value, typ)
	if err != nil {
		return err
	}
	ef.recordChange(file, d, a, c)
	return nil
}

// recordChange takes an edit over; one that changed nothing leaves no trace.
func (ef *editedFile) recordChange(file string, d *document, a fieldAddress, c Change) {
	if d == ef.doc {
		return
	}
	c.File = file
	ef.doc = d
	ef.fields = append(ef.fields, fieldChange{a, c})
}

// collectEdits are the files that changed, sorted, with their changes by line.
func (e *editor) collectEdits() ([]Edit, error) {
	var out []Edit
	for _, edit := range e.wholeFiles {
		out = append(out, edit)
	}
	for name, w := range e.openFiles {
		if bytes.Equal(w.before, w.doc.data) {
			continue
		}
		if _, twice := e.wholeFiles[name]; twice {
			return nil, &RefusedError{File: name, Reason: "it is carried as a whole and by field: exclude it from `files`"}
		}
		changes, err := w.finalChanges(name)
		if err != nil {
			return nil, err
		}
		out = append(out, Edit{File: name, Before: w.before, After: w.doc.data, Mode: w.mode, Changes: changes})
	}
	for _, edit := range out {
		if err := checkWritable(edit.File); err != nil {
			return nil, err
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].File < out[j].File })
	return out, nil
}

// finalChanges are the fields' changes with the lines that they ended up on.
func (ef *editedFile) finalChanges(name string) ([]Change, error) {
	var out []Change
	for _, f := range ef.fields {
		at, err := ef.doc.readField(f.address)
		if err != nil {
			return nil, withLocation(err, name, "")
		}
		if at.ok == f.change.Removed || at.ok && at.value != f.change.New {
			return nil, &RefusedError{File: name, Line: at.line, Field: f.address.String(),
				Reason: "another edit of the same file changed it again"}
		}
		if at.ok {
			f.change.Line = at.line
		}
		out = append(out, f.change)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Line < out[j].Line })
	return out, nil
}

func (f fieldAddress) documentFormat() fileFormat {
	if f.kind == KindJSON {
		return formatJSON
	}
	return formatYAML
}

// addressOf reads a field's address back from its path.
func addressOf(f Field) (fieldAddress, error) {
	switch f.Kind {
	case KindImage:
		image, key, err := parseImagePath(f.Path)
		if err != nil {
			return fieldAddress{}, err
		}
		return fieldAddress{kind: f.Kind, image: image, key: key}, nil
	case KindRef:
		list, remote, err := parseRefPath(f.Path)
		if err != nil {
			return fieldAddress{}, err
		}
		return fieldAddress{kind: f.Kind, list: list, remote: remote}, nil
	case KindYAML, KindJSON:
		p, err := fieldpath.Parse(f.Path)
		if err != nil {
			return fieldAddress{}, err
		}
		return fieldAddress{kind: f.Kind, path: p}, nil
	}
	return fieldAddress{}, fmt.Errorf("the field %s in %s is of the unknown kind %q", f.Path, f.File, f.Kind)
}
