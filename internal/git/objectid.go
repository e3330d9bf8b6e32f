package git

import (
	"errors"
	"io/fs"
)

// ObjectID is git's id of a file's content, without reading it: equal ids are
// equal contents. A folder is fs.ErrInvalid.
func (t *Tree) ObjectID(name string) (string, error) {
	e, err := t.findEntry("stat", name)
	if err != nil {
		return "", err
	}
	if e.mode == Directory {
		return "", &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return e.sha, nil
}

// Identity tells what lies at a name, its mode included, without reading it:
// equal identities are equal files, links, or folders with all that is below
// them. It is "" where there is nothing, and below links and submodules.
func (t *Tree) Identity(name string) (string, error) {
	e, err := t.findEntry("stat", name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFollowed):
		return "", nil
	case err != nil:
		return "", err
	}
	return e.identity(), nil
}

func (t treeEntry) identity() string { return t.mode.String() + " " + t.sha }
