package gitrepo

import "io/fs"

// ObjectID is git's id of a file's content, without reading it: equal ids are
// equal contents. A folder is fs.ErrInvalid.
func (t *Tree) ObjectID(name string) (string, error) {
	e, err := t.lookup("stat", name)
	if err != nil {
		return "", err
	}
	if e.mode == Directory {
		return "", &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return e.sha, nil
}
