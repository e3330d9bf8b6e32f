package fieldedit

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// setWholeFile gives a whole file its content and mode where the environment has
// it, or creates it, or says why not.
func (c *composer) setWholeFile(field Field) (*AbsentField, error) {
	mode, _, ok := field.parseWholeValue()
	if !ok {
		return nil, fmt.Errorf("reading the release: %q isn't the value of a whole file", field.Value)
	}
	var stale []string
	at := c.have[field.Key()]
	for _, l := range at {
		if l.Field.Value != field.Value {
			stale = append(stale, l.File)
		}
	}
	if len(at) == 0 {
		e := c.entryOf(field)
		if absent := explainAbsence(e, field, nil); absent != nil {
			return absent, nil
		}
		name := e.fillFileName(field.File)
		roots, err := c.rootsForNewFile(e, field)
		if err != nil {
			return nil, err
		}
		if len(roots) == 0 {
			return &AbsentField{File: name, Field: field, Reason: "can't be created, because it can't be told in which of the " +
				"environment's folders it belongs: create its folder there"}, nil
		}
		for _, root := range roots {
			stale = append(stale, joinRoot(root, name))
		}
	}
	if len(stale) == 0 {
		return nil, nil
	}
	data, err := c.fetchContent(field)
	if err != nil {
		return nil, err
	}
	for _, file := range stale {
		if err := c.editor.replaceWholeFile(file, data, mode); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// fetchContent is the bytes of a whole file, which its value vouches for.
func (c *composer) fetchContent(field Field) ([]byte, error) {
	if c.contents == nil {
		return nil, fmt.Errorf("the content of %s isn't at hand", field.File)
	}
	data, err := c.contents(field)
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking up the content of %s: %w", field.File, err)
	case len(data) > MaxFileSize:
		return nil, tooLarge(field.File, int64(len(data)))
	case objectID(data) != field.ObjectID():
		return nil, fmt.Errorf("what was found as %s isn't the content %s of the release", field.File, field.ObjectID())
	}
	return data, nil
}

// rootsForNewFile lists the roots in which a new file belongs: those that have its folder or, where
// none has, the nearest folder above it that one has. The only root there is needs none.
func (c *composer) rootsForNewFile(e *carryEntry, field Field) ([]string, error) {
	file := e.fillFileName(field.File)
	roots := slices.DeleteFunc(slices.Clone(c.roots), func(root string) bool { return !c.mayHoldField(root, e, field) })
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		var in []string
		for _, root := range roots {
			info, err := c.editor.files.statPath(path.Join(root, folder))
			switch {
			case errors.Is(err, errAbsent):
				continue
			case err != nil:
				return nil, suggestExclude(err)
			case !info.IsDir():
				return nil, &RefusedError{File: path.Join(root, folder),
					Reason: "it is a file, and the release has a folder of that name: remove it by hand"}
			}
			in = append(in, root)
		}
		switch {
		case folder == "." && len(in) == 1, folder != "." && len(in) > 0:
			return in, nil
		case folder == "." && len(roots) == 1:
			return roots, nil
		case folder == ".":
			return nil, nil
		}
	}
}

// replaceWholeFile gives a file this content and mode, creating it where it isn't there.
func (e *editor) replaceWholeFile(file string, data []byte, mode Mode) error {
	change := Change{File: file, Kind: KindFile, New: wholeValue(mode, objectID(data))}
	edit := Edit{File: file, After: data, Mode: mode}
	info, err := e.files.statPath(file)
	switch {
	case errors.Is(err, errAbsent):
		edit.Created, change.Added = true, true
	case err != nil:
		return suggestExclude(err)
	case info.IsDir():
		return &RefusedError{File: file, Reason: "it is a folder, and the release has a file of that name: remove it by hand"}
	default:
		if edit.Before, err = e.files.readBytes(file); err != nil {
			return err
		}
		change.Old = wholeValue(ModeOf(info), objectID(edit.Before))
	}
	edit.Changes = []Change{change}
	e.wholeFiles[file] = edit
	return nil
}

// deleteWholeFile removes a file that is there.
func (e *editor) deleteWholeFile(l Location) error {
	data, err := e.files.readBytes(l.File)
	if err != nil {
		return err
	}
	e.wholeFiles[l.File] = Edit{File: l.File, Before: data, Deleted: true,
		Changes: []Change{{File: l.File, Kind: KindFile, Old: l.Field.Value, Removed: true}}}
	return nil
}
