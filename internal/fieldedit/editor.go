package fieldedit

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// editor collects edits of several fields in several files.
type editor struct {
	files *files
	open  map[string]*editing
	whole map[string]Edit // of files that are replaced, created or deleted
}

// editing is one file on its way: every accepted edit gives the next document.
type editing struct {
	before []byte
	mode   Mode
	doc    *document
	fields []edited
}

type edited struct {
	at     address
	change Change
}

func newEditor(f *files) *editor {
	return &editor{files: f, open: map[string]*editing{}, whole: map[string]Edit{}}
}

func (e *editor) file(name string, as format) (*editing, error) {
	if w, ok := e.open[name]; ok {
		if w.doc.format != as {
			return nil, &RefusedError{File: name, Reason: "it is carried both as YAML and as JSON: carry it as one"}
		}
		return w, nil
	}
	info, err := e.files.stat(name)
	if err != nil {
		return nil, err
	}
	d, err := e.files.document(name, as)
	if err != nil {
		return nil, err
	}
	w := &editing{before: d.data, doc: d, mode: modeOf(info)}
	e.open[name] = w
	return w, nil
}

// set sets one field, adding it with its type where it isn't there.
func (e *editor) set(file string, a address, value, typ string) error {
	w, err := e.file(file, a.format())
	if err != nil {
		return err
	}
	return in(w.set(file, a, value, typ), file, "")
}

func (w *editing) set(file string, a address, value, typ string) error {
	d, c, err := w.doc.set(a, value, typ)
	if err != nil {
		return err
	}
	w.record(file, d, a, c)
	return nil
}

// record takes an edit over; one that changed nothing leaves no trace.
func (w *editing) record(file string, d *document, a address, c Change) {
	if d == w.doc {
		return
	}
	c.File = file
	w.doc = d
	w.fields = append(w.fields, edited{a, c})
}

// edits are the files that changed, sorted, with their changes by line.
func (e *editor) edits() ([]Edit, error) {
	var out []Edit
	for _, edit := range e.whole {
		out = append(out, edit)
	}
	for name, w := range e.open {
		if bytes.Equal(w.before, w.doc.data) {
			continue
		}
		if _, twice := e.whole[name]; twice {
			return nil, &RefusedError{File: name, Reason: "it is carried as a whole and by field: exclude it from `files`"}
		}
		changes, err := w.changes(name)
		if err != nil {
			return nil, err
		}
		out = append(out, Edit{File: name, Before: w.before, After: w.doc.data, Mode: w.mode, Changes: changes})
	}
	for _, edit := range out {
		if err := writable(edit.File); err != nil {
			return nil, err
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].File < out[j].File })
	return out, nil
}

// changes are the fields' changes with the lines that they ended up on.
func (w *editing) changes(name string) ([]Change, error) {
	var out []Change
	for _, f := range w.fields {
		at, err := w.doc.get(f.at)
		if err != nil {
			return nil, in(err, name, "")
		}
		if at.ok == f.change.Removed || at.ok && at.value != f.change.New {
			return nil, &RefusedError{File: name, Line: at.line, Field: f.at.String(), Reason: "another edit of the same file changed it again"}
		}
		if at.ok {
			f.change.Line = at.line
		}
		out = append(out, f.change)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Line < out[j].Line })
	return out, nil
}

func (a address) format() format {
	if a.kind == KindJSON {
		return formatJSON
	}
	return formatYAML
}

// addressOf reads a field's address back from its path.
func addressOf(f Field) (address, error) {
	switch f.Kind {
	case KindImage:
		image, key, err := parseImagePath(f.Path)
		if err != nil {
			return address{}, err
		}
		return address{kind: f.Kind, image: image, key: key}, nil
	case KindYAML, KindJSON:
		p, err := fieldpath.Parse(f.Path)
		if err != nil {
			return address{}, err
		}
		return address{kind: f.Kind, path: p}, nil
	}
	return address{}, fmt.Errorf("the field %s in %s is of the unknown kind %q", f.Path, f.File, f.Kind)
}
