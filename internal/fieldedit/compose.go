package fieldedit

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
)

// Compose returns the edits that make an overlay carry want: each field is set at its root-relative
// place, in every root that has it. A field that no root has is added or refused (an *AbsentError),
// as its carry entry's whenAbsent says; it is added in every root that has the file. A field that
// the environment has and want hasn't is an *ExtraError.
//
// Whole files are carried as a set: where their entry says whenAbsent: add, those that the
// environment lacks are created and those that want lacks are deleted. contents gives their bytes;
// without whole files it may be nil.
//
// After the edits the environment has want's identity: that is checked on the edited tree. There is
// one Edit a file, sorted; nil where there is nothing to do. Roots that disagree now are made to
// agree. An edit that can't surely be made is a *RefusedError, and then nothing is edited.
func Compose(tree fs.FS, o Overlay, want Release, contents Contents) ([]Edit, error) {
	b, err := o.resolvePlaceholders()
	if err != nil {
		return nil, err
	}
	f := newFiles(tree, nil)
	found, err := f.locateFields(b)
	if err != nil {
		return nil, err
	}
	c := &composer{editor: newEditor(f), resolvedOverlay: b, have: map[string][]Location{}, contents: contents}
	for _, l := range found {
		c.have[l.Field.Key()] = append(c.have[l.Field.Key()], l)
	}
	want = Release{Fields: slices.Clone(want.Fields)}
	want.Sort() // the order decides where added fields go
	if err := c.removeExtra(found, want); err != nil {
		return nil, err
	}
	if err := c.setAll(want); err != nil {
		return nil, err
	}
	edits, err := c.editor.collectEdits()
	if err != nil {
		return nil, err
	}
	got, err := Read(Apply(tree, edits), o)
	if err != nil {
		return nil, fmt.Errorf("reading the edited environment back: %w", err)
	}
	if got.ID() != want.ID() {
		return nil, fmt.Errorf("the edited environment would differ from the release in %s: promote by hand",
			summarizeDifferences(want, got))
	}
	return edits, nil
}

// composer makes one environment carry a release.
type composer struct {
	*resolvedOverlay
	editor   *editor
	have     map[string][]Location // by place
	contents Contents
}

// setAll sets every field of the release.
func (c *composer) setAll(want Release) error {
	var missing []AbsentField
	for _, field := range want.Fields {
		var absent *AbsentField
		var err error
		if field.Kind == KindFile {
			absent, err = c.setWholeFile(field)
		} else {
			absent, err = c.setField(field)
		}
		if err != nil {
			return err
		}
		if absent != nil {
			missing = append(missing, *absent)
		}
	}
	if len(missing) > 0 {
		return &AbsentError{Fields: missing}
	}
	return nil
}

// setField sets a field where the environment has it, or adds it, or says why not.
func (c *composer) setField(field Field) (*AbsentField, error) {
	at := c.have[field.Key()]
	for _, l := range at {
		if err := c.editor.setField(l.File, l.address, field.Value, field.Type); err != nil {
			return nil, err
		}
	}
	e := c.entryOf(field)
	lacking, err := c.findMissingLocations(e, field, at)
	if err != nil || len(at) > 0 && len(lacking) == 0 {
		return nil, err
	}
	if absent := explainAbsence(e, field, lacking); absent != nil {
		return absent, nil
	}
	if len(lacking) == 0 {
		return &AbsentField{File: e.fillFileName(field.File), Field: field,
			Reason: "can't be added, because the environment doesn't have the file: create it"}, nil
	}
	for _, l := range lacking {
		if err := c.editor.setField(l.File, l.address, field.Value, field.Type); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// findMissingLocations are the places in which a field is to be added. Where nothing has it,
// those are in every root that has its file. Where something has it, they are
// the items that one of its selections picks beside those that have it.
func (c *composer) findMissingLocations(e *carryEntry, field Field, have []Location) ([]Location, error) {
	if e == nil || len(have) > 0 && !placeholder.IsIn(field.Path) {
		return nil, nil
	}
	files, there := map[string]bool{}, map[string]bool{}
	for _, l := range have {
		files[l.File] = true
		there[l.File+"\x00"+l.Path()] = true
	}
	if len(have) == 0 {
		files = c.filesForField(e, field)
	}
	var out []Location
	for _, file := range slices.Sorted(maps.Keys(files)) {
		addresses, err := c.fieldAddresses(e, file, field)
		if err != nil {
			return nil, withLocation(err, file, "")
		}
		for _, a := range addresses {
			if !there[file+"\x00"+a.String()] {
				out = append(out, Location{File: file, Field: field, address: a})
			}
		}
	}
	return out, nil
}

// fieldAddresses are those that a field has in a file, whether it is there or not.
func (c *composer) fieldAddresses(e *carryEntry, file string, field Field) ([]fieldAddress, error) {
	if !e.hasPlaceholders() {
		a, err := addressOf(field)
		return []fieldAddress{a}, err
	}
	t, err := newPathTemplate(field.Path, e.values)
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	w, err := c.editor.openFile(file, e.format)
	if err != nil {
		return nil, err
	}
	places, err := w.doc.expandTemplate(t)
	var out []fieldAddress
	for _, p := range places {
		out = append(out, fieldAddress{kind: field.Kind, path: p.path})
	}
	return out, err
}

// explainAbsence says why a field isn't added where it is lacking; nil where it may be.
func explainAbsence(e *carryEntry, field Field, lacking []Location) *AbsentField {
	if e == nil {
		return &AbsentField{File: field.File, Field: field, Reason: "isn't carried by the pipeline any more: release it again"}
	}
	if e.whenAbsent == pipeline.WhenAbsentAdd && field.Kind != KindRef {
		return nil
	}
	out := &AbsentField{File: e.fillFileName(field.File), Field: field, Reason: "isn't there: add it by hand, or set whenAbsent: add"}
	if field.Kind == KindRef { // its value alone doesn't make an entry
		out.Reason = "isn't there: add the remote base with its ref by hand"
	}
	if len(lacking) > 0 {
		out.File, out.Field.Path = lacking[0].File, lacking[0].Path()
	}
	return out
}

// removeExtra deletes the whole files that the release doesn't have, where their
// entry may, and refuses any other field that it doesn't have.
func (c *composer) removeExtra(found []Location, want Release) error {
	wanted := map[string]bool{}
	for _, f := range want.Fields {
		wanted[f.Key()] = true
	}
	var extra []Location
	for _, l := range found {
		switch {
		case wanted[l.Field.Key()]:
		case l.Field.Kind == KindFile && c.whenAbsent(l.Field) == pipeline.WhenAbsentAdd:
			if err := c.editor.deleteWholeFile(l); err != nil {
				return err
			}
		default:
			extra = append(extra, l)
		}
	}
	if len(extra) > 0 {
		return &ExtraError{Found: extra}
	}
	return nil
}

// filesForField are the files at a field's place that exist: of bases only where no other root has one.
func (c *composer) filesForField(e *carryEntry, field Field) map[string]bool {
	at := map[string]bool{}
	own := slices.DeleteFunc(slices.Clone(c.roots), c.isBase)
	for _, root := range slices.Concat(own, slices.Sorted(maps.Keys(c.bases))) {
		if len(at) > 0 && c.isBase(root) {
			break
		}
		file := joinRoot(root, e.fillFileName(field.File))
		if info, err := c.editor.files.statPath(file); err == nil && !info.IsDir() && c.mayHoldField(root, e, field) {
			at[file] = true
		}
	}
	return at
}
