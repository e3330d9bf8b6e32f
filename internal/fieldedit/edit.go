package fieldedit

import (
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

func (f fileFormat) fieldKind() string {
	if f == formatJSON {
		return KindJSON
	}
	return KindYAML
}

// fieldAddress is a carried field's address in a file. It is a path or, for KindImage, an image's
// name and one of its keys. For KindRef it is a remote base's address and the list with it.
type fieldAddress struct {
	kind   string
	path   fieldpath.Path
	image  string
	key    string
	remote string
	list   string
}

func (f fieldAddress) String() string {
	switch f.kind {
	case KindImage:
		return imagePath(f.image, f.key)
	case KindRef:
		return refPath(f.list, f.remote)
	}
	return f.path.String()
}

// toPath is the address as a path of the file.
func (f fieldAddress) toPath() fieldpath.Path {
	if f.kind == KindImage {
		return entryPath(f.image, f.key)
	}
	return f.path
}

func (d *document) findAddress(a fieldAddress) (nodeLookup, error) {
	switch a.kind {
	case KindImage:
		return d.findImage(a.image, a.key)
	case KindRef:
		return d.findRemote(a.list, a.remote)
	}
	return d.findPath(a.path)
}

// foundScalar is a scalar that was read.
type foundScalar struct {
	value string
	typ   string
	line  int
	ok    bool // false: absent
}

func (d *document) readField(a fieldAddress) (foundScalar, error) {
	s, err := d.findAddress(a)
	if err != nil {
		return foundScalar{}, withLocation(err, "", a.String())
	}
	if s.node == nil {
		return foundScalar{}, nil
	}
	n, err := requireScalar(s.node)
	if err != nil {
		return foundScalar{}, withLocation(err, "", a.String())
	}
	if a.kind == KindRef {
		r := parseRemote(n.Value)
		return foundScalar{value: r.ref(), line: s.node.Line, ok: r.hasRef}, nil
	}
	return foundScalar{value: scalarValue(n), typ: scalarType(n), line: s.node.Line, ok: true}, nil
}

// setField sets a field, adding it with the type typ where it is absent. The
// document is d itself where nothing changes.
func (d *document) setField(a fieldAddress, value, typ string) (*document, Change, error) {
	c := Change{Kind: a.kind, Path: a.String(), New: value}
	s, err := d.findAddress(a)
	if err != nil {
		return nil, Change{}, withLocation(err, "", c.Path)
	}
	var next *document
	switch {
	case a.kind == KindRef:
		next, c.Old, err = d.setRef(s, value)
	case s.node != nil:
		if n, err := requireScalar(s.node); err == nil {
			if c.Old = scalarValue(n); c.Old == value {
				c.Line = s.node.Line
				return d, c, nil // so already, editable or not
			}
		}
		next, err = d.setScalar(s, value, a.kind == KindImage)
	case a.kind == KindImage:
		c.Added = true
		next, err = d.addImage(s, a, value)
	default:
		c.Added = true
		next, err = d.insertKey(s, value, typ, "")
	}
	if err != nil {
		return nil, Change{}, withLocation(err, "", c.Path)
	}
	if next == d { // so already
		c.Line = s.node.Line
		return d, c, nil
	}
	back, err := next.readField(a)
	if err != nil || !back.ok || back.value != value {
		return nil, Change{}, withLocation(newRefusal(back.line, "the edit doesn't read back as %q: edit it by hand", value), "", c.Path)
	}
	c.Line = back.line
	return next, c, nil
}
