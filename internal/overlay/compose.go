package overlay

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/fieldpath"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Compose returns the edits that make the environment under roots carry want:
// each field is set at its root-relative place, in every root that has it. A
// field that no root has is added, refused (an *AbsentError) or skipped, as
// its carry entry's whenAbsent says; it is added in every root that has the
// file. A field that the environment has and want hasn't is an *ExtraError,
// unless its entry says skip.
//
// After the edits, Read gives a release that Matches want; it has want's
// identity where nothing was skipped. That is checked on the edited tree.
// There is one Edit a file, sorted; nil where there is nothing to do. Roots
// that disagree now are made to agree. What can't be edited surely is a
// *RefusedError, and then nothing is edited.
func Compose(tree fs.FS, roots []string, carry []pipeline.Carry, want Release) ([]Edit, error) {
	roots, err := cleanRoots(roots)
	if err != nil {
		return nil, err
	}
	f := newFiles(tree, nil)
	found, err := f.locate(roots, carry)
	if err != nil {
		return nil, err
	}
	have := map[string][]Location{}
	for _, l := range found {
		have[l.Field.Place()] = append(have[l.Field.Place()], l)
	}
	if err := noExtras(found, want, carry); err != nil {
		return nil, err
	}
	e := newEditor(f)
	want = Release{Fields: slices.Clone(want.Fields)}
	want.Sort() // the order decides where added fields go
	var missing []Absent
	for _, field := range want.Fields {
		a, err := addressOf(field)
		if err != nil {
			return nil, fmt.Errorf("reading the release: %w", err)
		}
		at := have[field.Place()]
		for _, l := range at {
			if err := e.set(l.File, a, field.Value, field.Type); err != nil {
				return nil, err
			}
		}
		if len(at) > 0 {
			continue
		}
		absent, err := e.add(roots, carry, field, a)
		if err != nil {
			return nil, err
		}
		if absent != nil {
			missing = append(missing, *absent)
		}
	}
	if len(missing) > 0 {
		return nil, &AbsentError{Fields: missing}
	}
	edits, err := e.edits()
	if err != nil {
		return nil, err
	}
	after, err := newFiles(tree, edits).locate(roots, carry)
	if err != nil {
		return nil, fmt.Errorf("reading the edited environment back: %w", err)
	}
	got, err := releaseOf(after)
	if err != nil {
		return nil, fmt.Errorf("reading the edited environment back: %w", err)
	}
	if !Matches(got, want, carry) {
		return nil, fmt.Errorf("the edited environment would carry %s instead of %s: promote by hand", got, want)
	}
	return edits, nil
}

// Matches says that an environment carrying have carries the release want:
// the same fields with the same values, except those whose carry entry says
// whenAbsent: skip and that only one of the two has.
func Matches(have, want Release, carry []pipeline.Carry) bool {
	values := map[string]string{}
	for _, f := range have.Fields {
		values[f.Place()] = f.Value
	}
	for _, f := range want.Fields {
		v, ok := values[f.Place()]
		if ok && v != f.Value || !ok && whenAbsent(carry, f) != pipeline.WhenAbsentSkip {
			return false
		}
		delete(values, f.Place())
	}
	for _, f := range have.Fields {
		if _, extra := values[f.Place()]; extra && whenAbsent(carry, f) != pipeline.WhenAbsentSkip {
			return false
		}
	}
	return true
}

func noExtras(found []Location, want Release, carry []pipeline.Carry) error {
	wanted := map[string]bool{}
	for _, f := range want.Fields {
		wanted[f.Place()] = true
	}
	var extra []Location
	for _, l := range found {
		if !wanted[l.Field.Place()] && whenAbsent(carry, l.Field) != pipeline.WhenAbsentSkip {
			extra = append(extra, l)
		}
	}
	if len(extra) > 0 {
		return &ExtraError{Found: extra}
	}
	return nil
}

// add adds a field that no root has, or says why it isn't added; neither
// where it is skipped.
func (e *editor) add(roots []string, carry []pipeline.Carry, field Field, a address) (*Absent, error) {
	absent := func(reason string) *Absent {
		file := field.File
		if at := e.holding(roots, field); len(at) > 0 {
			file = at[0]
		}
		return &Absent{File: file, Field: field, Reason: reason}
	}
	switch whenAbsent(carry, field) {
	case pipeline.WhenAbsentSkip:
		return nil, nil
	case "":
		return absent("isn't carried by the pipeline any more: release it again"), nil
	case pipeline.WhenAbsentAdd:
	default:
		return absent("isn't there: add it by hand, or set whenAbsent: add"), nil
	}
	at := e.holding(roots, field)
	if len(at) == 0 {
		return absent("can't be added, because the environment doesn't have the file: create it"), nil
	}
	for _, file := range at {
		if err := e.set(file, a, field.Value, field.Type); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// holding lists the files at a field's place that exist.
func (e *editor) holding(roots []string, field Field) []string {
	var at []string
	for _, root := range roots {
		file := join(root, field.File)
		if info, err := e.files.stat(file); err == nil && !info.IsDir() {
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
	}
	return pick != nil && picksFile(pick.Files, f.File) && picksPath(pick.Paths, f.Path)
}

func picksFile(globs []string, file string) bool {
	for _, g := range globs {
		if ok, err := doublestar.Match(strings.TrimPrefix(g, "./"), path.Clean(file)); err == nil && ok {
			return true
		}
	}
	return false
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
