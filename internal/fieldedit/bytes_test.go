package fieldedit

import (
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// Edits of one value in given bytes, as the tests make them; commands and promotions
// make several at once, in files.

// SetYAML sets the scalar at path in a YAML file to value and returns the new bytes. Only the
// scalar's own bytes change. Its quote style is kept, and quotes are added only where a YAML 1.1 or
// 1.2 reader would read another type, or another text. A missing key is added behind its last
// sibling, as a string. With the value there already, the bytes are returned as they are and
// Change.Old equals Change.New. An edit that can't surely be made is a *RefusedError.
func SetYAML(data []byte, path fieldpath.Path, value string) ([]byte, Change, error) {
	return setPath(data, formatYAML, path, value)
}

// SetJSON does for a JSON file what SetYAML does for YAML. A string stays a
// string; a number or boolean keeps its type or is refused.
func SetJSON(data []byte, path fieldpath.Path, value string) ([]byte, Change, error) {
	return setPath(data, formatJSON, path, value)
}

// GetYAML reads the scalar at path. ok is false where it is absent. A value
// that can't be read surely, or isn't a single one, is a *RefusedError.
func GetYAML(data []byte, path fieldpath.Path) (value string, ok bool, err error) {
	return getPath(data, formatYAML, path)
}

// GetJSON does for a JSON file what GetYAML does for YAML; a number is its text.
func GetJSON(data []byte, path fieldpath.Path) (value string, ok bool, err error) {
	return getPath(data, formatJSON, path)
}

func setPath(data []byte, f fileFormat, path fieldpath.Path, value string) ([]byte, Change, error) {
	d, err := parseDocument(data, f)
	if err != nil {
		return nil, Change{}, withLocation(err, "", path.String())
	}
	d, c, err := d.setField(fieldAddress{kind: f.fieldKind(), path: path}, value, TypeString)
	if err != nil {
		return nil, Change{}, err
	}
	return d.data, c, nil
}

func getPath(data []byte, f fileFormat, path fieldpath.Path) (string, bool, error) {
	d, err := parseDocument(data, f)
	if err != nil {
		return "", false, withLocation(err, "", path.String())
	}
	got, err := d.readField(fieldAddress{kind: f.fieldKind(), path: path})
	if err != nil {
		return "", false, err
	}
	return got.value, got.ok, nil
}

// SetImage sets fields of the entry for image in a kustomization's images list. A field that isn't
// there yet is added in kustomize's order. An entry that isn't there is refused with the names that
// are, since a misspelt one would do nothing. All values are strings. Only what changed is listed,
// by line.
func SetImage(data []byte, image string, e ImageEdit) ([]byte, []Change, error) {
	d, err := parseDocument(data, formatYAML)
	if err != nil {
		return nil, nil, err
	}
	w := &editedFile{before: data, doc: d}
	if err := w.setImage("", image, e); err != nil {
		return nil, nil, err
	}
	changes, err := w.finalChanges("")
	if err != nil {
		return nil, nil, err
	}
	return w.doc.data, changes, nil
}

// GetImage reads the entry for image; ok is false where there is none.
func GetImage(data []byte, image string) (e ImageEdit, ok bool, err error) {
	d, err := parseDocument(data, formatYAML)
	if err != nil {
		return ImageEdit{}, false, err
	}
	s, err := d.findImage(image, imageNewTag)
	if err != nil {
		return ImageEdit{}, false, withLocation(err, "", imagePath(image, imageNewTag))
	}
	for key, to := range map[string]*string{imageNewName: &e.NewName, imageNewTag: &e.NewTag, imageDigest: &e.Digest} {
		v, err := d.readField(fieldAddress{kind: KindImage, image: image, key: key})
		if err != nil {
			return ImageEdit{}, false, err
		}
		*to = v.value
	}
	return e, s.inEntry, nil
}
