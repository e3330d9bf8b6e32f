package overlay

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldpath"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Compose returns the edits that make the environment under roots carry want:
// each field is set at its root-relative place, in every root that has it. A
// field that no root has is added or refused (an *AbsentError), as its carry
// entry's whenAbsent says; it is added in every root that has the file. A field
// that the environment has and want hasn't is an *ExtraError.
//
// Whole files are carried as a set: where their entry says whenAbsent: add,
// those that the environment lacks are created and those that want lacks are
// deleted. contents gives their bytes; without whole files it may be nil.
//
// After the edits the environment has want's identity: that is checked on the
// edited tree. There is one Edit a file, sorted; nil where there is nothing to
// do. Roots that disagree now are made to agree. What can't be edited surely is
// a *RefusedError, and then nothing is edited.
func Compose(tree fs.FS, roots []string, carry []pipeline.Carry, want Release, contents Contents) ([]Edit, error) {
	roots, err := cleanRoots(roots)
	if err != nil {
		return nil, err
	}
	f := newFiles(tree, nil)
	found, err := f.locate(roots, carry)
	if err != nil {
		return nil, err
	}
	c := &composer{editor: newEditor(f), roots: roots, carry: carry, have: map[string][]Location{}, contents: contents}
	for _, l := range found {
		c.have[l.Field.Place()] = append(c.have[l.Field.Place()], l)
	}
	want = Release{Fields: slices.Clone(want.Fields)}
	want.Sort() // the order decides where added fields go
	if err := c.remove(found, want); err != nil {
		return nil, err
	}
	if err := c.setAll(want); err != nil {
		return nil, err
	}
	edits, err := c.editor.edits()
	if err != nil {
		return nil, err
	}
	got, err := Read(Apply(tree, edits), roots, carry)
	if err != nil {
		return nil, fmt.Errorf("reading the edited environment back: %w", err)
	}
	if got.ID() != want.ID() {
		return nil, fmt.Errorf("the edited environment would differ from the release in %s: promote by hand", differences(want, got))
	}
	return edits, nil
}

// composer makes one environment carry a release.
type composer struct {
	editor   *editor
	roots    []string
	carry    []pipeline.Carry
	have     map[string][]Location // by place
	contents Contents
}

// setAll sets every field of the release.
func (c *composer) setAll(want Release) error {
	var missing []Absent
	for _, field := range want.Fields {
		var absent *Absent
		var err error
		if field.Kind == KindFile {
			absent, err = c.setWhole(field)
		} else {
			absent, err = c.set(field)
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

// set sets a field where the environment has it, or adds it, or says why not.
func (c *composer) set(field Field) (*Absent, error) {
	a, err := addressOf(field)
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	at := c.have[field.Place()]
	for _, l := range at {
		if err := c.editor.set(l.File, a, field.Value, field.Type); err != nil {
			return nil, err
		}
	}
	if len(at) > 0 {
		return nil, nil
	}
	files := c.holding(field)
	if absent := c.absent(field, files); absent != nil {
		return absent, nil
	}
	if len(files) == 0 {
		return &Absent{File: field.File, Field: field, Reason: "can't be added, because the environment doesn't have the file: create it"}, nil
	}
	for _, file := range files {
		if err := c.editor.set(file, a, field.Value, field.Type); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// absent says why a field that no root has isn't added; nil where it may be.
func (c *composer) absent(field Field, files []string) *Absent {
	absent := &Absent{File: field.File, Field: field}
	if len(files) > 0 {
		absent.File = files[0]
	}
	switch whenAbsent(c.carry, field) {
	case pipeline.WhenAbsentAdd:
		return nil
	case "":
		absent.Reason = "isn't carried by the pipeline any more: release it again"
	default:
		absent.Reason = "isn't there: add it by hand, or set whenAbsent: add"
	}
	return absent
}

// remove deletes the whole files that the release doesn't have, where their
// entry may, and refuses any other field that it doesn't have.
func (c *composer) remove(found []Location, want Release) error {
	wanted := map[string]bool{}
	for _, f := range want.Fields {
		wanted[f.Place()] = true
	}
	var extra []Location
	for _, l := range found {
		switch {
		case wanted[l.Field.Place()]:
		case l.Field.Kind == KindFile && whenAbsent(c.carry, l.Field) == pipeline.WhenAbsentAdd:
			if err := c.editor.deleteWhole(l); err != nil {
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

// holding lists the files at a field's place that exist.
func (c *composer) holding(field Field) []string {
	var at []string
	for _, root := range c.roots {
		file := join(root, field.File)
		if info, err := c.editor.files.stat(file); err == nil && !info.IsDir() {
			at = append(at, file)
		}
	}
	return at
}

// whenAbsent is what the first carry entry that picks a field says about its
// absence; "" where none picks it.
func whenAbsent(carry []pipeline.Carry, f Field) string {
	for _, c := range carry {
		if !picks(c, f) {
			continue
		}
		if c.WhenAbsent == "" {
			return pipeline.WhenAbsentRefuse
		}
		return c.WhenAbsent
	}
	return ""
}

func picks(c pipeline.Carry, f Field) bool {
	pick := c.YAML
	switch f.Kind {
	case KindImage:
		image, _, err := parseImagePath(f.Path)
		if err != nil || strings.Contains(f.File, "/") {
			return false
		}
		ok, err := matchAny(c.KustomizeImages, image)
		return ok && err == nil
	case KindJSON:
		pick = c.JSON
	case KindFile:
		return picksWhole(c.Files, f.File)
	}
	return pick != nil && picksFile(pick.Files, f.File) && picksPath(pick.Paths, f.Path)
}

func picksPath(patterns []string, at string) bool {
	path, err := fieldpath.Parse(at)
	if err != nil {
		return false
	}
	for _, text := range patterns {
		if p, err := fieldpath.ParsePattern(text); err == nil && p.Matches(path) {
			return true
		}
	}
	return false
}
