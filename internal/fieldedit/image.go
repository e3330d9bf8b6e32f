package fieldedit

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// The keys of an image entry that are carried, in kustomize's order.
const (
	imageNewName = "newName"
	imageNewTag  = "newTag"
	imageDigest  = "digest"
)

var imageKeys = []string{imageNewName, imageNewTag, imageDigest}

// ImageEdit says what an image entry of a kustomization shall have; an empty
// field is left as it is.
type ImageEdit struct {
	NewName string
	NewTag  string
	Digest  string // with its algorithm: sha256:…
}

func (i ImageEdit) valuesByKey() map[string]string {
	return map[string]string{imageNewName: i.NewName, imageNewTag: i.NewTag, imageDigest: i.Digest}
}

// checkPin refuses an image without an entry, and a tag where a digest would
// win over it.
func (d *document) checkPin(image string, e ImageEdit) error {
	s, err := d.findImage(image, imageNewTag)
	if err != nil {
		return withLocation(err, "", imagePath(image, imageNewTag))
	}
	if !s.inEntry {
		return withLocation(s.newMissingImageError(image), "", "images["+image+"]")
	}
	pinned, err := d.readField(fieldAddress{kind: KindImage, image: image, key: imageDigest})
	if err != nil {
		return err
	}
	if e.NewTag != "" && e.Digest == "" && pinned.value != "" {
		return withLocation(newRefusal(pinned.line, "the entry is pinned by a digest, which wins over a tag: set the digest too, or "+
			"remove it"),
			"", imagePath(image, imageNewTag))
	}
	return nil
}

func (ef *editedFile) setImage(file, image string, e ImageEdit) error {
	if err := ef.doc.checkPin(image, e); err != nil {
		return err
	}
	values := e.valuesByKey()
	for _, key := range imageKeys {
		if values[key] == "" {
			continue
		}
		if err := ef.setField(file, fieldAddress{kind: KindImage, image: image, key: key}, values[key], TypeString); err != nil {
			return err
		}
	}
	return nil
}

var imagesPath = fieldpath.New(fieldpath.Segment{Kind: fieldpath.Key, Key: "images"})

// entryPath is an image's field as a path of the file.
func entryPath(image, key string) fieldpath.Path {
	return fieldpath.New(
		fieldpath.Segment{Kind: fieldpath.Key, Key: "images"},
		fieldpath.Segment{Kind: fieldpath.Match, KeyPath: []string{"name"}, Value: image},
		fieldpath.Segment{Kind: fieldpath.Key, Key: key},
	)
}

func imagePath(image, key string) string { return fmt.Sprintf("images[%s].%s", image, key) }

// parseImagePath takes an image field's path apart.
func parseImagePath(path string) (image, key string, err error) {
	body, found := strings.CutPrefix(path, "images[")
	if i := strings.LastIndex(body, "]."); found && i >= 0 {
		image, key = body[:i], body[i+2:]
		if image != "" && (key == imageNewName || key == imageNewTag || key == imageDigest) {
			return image, key, nil
		}
	}
	return "", "", fmt.Errorf("%q isn't an image's field: it must be images[NAME].newTag, .newName or .digest", path)
}

// ImageOfPath is the image that an image field's path is about; false where it is no such path.
func ImageOfPath(path string) (image string, ok bool) {
	image, _, err := parseImagePath(path)
	return image, err == nil
}

// findImage finds a key of an image's entry. Where there is no entry, the
// lookup's parent is the images list or, without one, the kustomization itself.
func (d *document) findImage(image, key string) (nodeLookup, error) {
	images, err := d.findPath(imagesPath)
	if err != nil {
		return nodeLookup{}, err
	}
	if images.node == nil {
		return images, nil
	}
	if n := images.node; n.Kind == yaml.ScalarNode && scalarType(n) == TypeNull {
		images.mismatch = newRefusal(n.Line, "images is empty: add the entry by hand")
		images.node = nil
		return images, nil
	}
	s, err := d.findPath(entryPath(image, key))
	if err != nil {
		return nodeLookup{}, err
	}
	s.inEntry = s.depth == 2
	if s.node == nil && !s.inEntry && s.parent != nil && s.parent.Kind == yaml.SequenceNode {
		s.otherImages = describeItems(s.parent, fieldpath.Segment{Kind: fieldpath.Match, KeyPath: []string{"name"}})
		s.mismatch = nil
	}
	return s, nil
}

func (nl nodeLookup) newMissingImageError(image string) error {
	line := 0
	if nl.parent != nil {
		line = nl.parent.Line
	}
	return newRefusal(line, "the images list has no entry named %s%s: add the entry first", image, nl.otherImages)
}

// listImages lists the names of the entries that have a carried key.
func (d *document) listImages() ([]string, error) {
	s, err := d.findPath(imagesPath)
	if err != nil || s.node == nil {
		return nil, err
	}
	list := resolveAlias(s.node)
	if list.Kind == yaml.ScalarNode && scalarType(list) == TypeNull {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, newRefusal(list.Line, "images is %s, not a list", kindName(list))
	}
	var names []string
	for _, item := range list.Content {
		m := resolveAlias(item)
		if m.Kind != yaml.MappingNode {
			return nil, newRefusal(item.Line, "an entry of images is %s, not a mapping", kindName(m))
		}
		v, err := lookupKey(m, "name")
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, newRefusal(item.Line, "an entry of images has no name")
		}
		n, err := requireScalar(v)
		if err != nil {
			return nil, err
		}
		names = append(names, n.Value)
	}
	return names, nil
}

// addImage adds a key to an image's entry, the entry where there is none, and
// the images list where there is none of that either.
func (d *document) addImage(s nodeLookup, a fieldAddress, value string) (*document, error) {
	switch {
	case s.uneditable != nil:
		return nil, s.uneditable
	case s.mismatch != nil:
		return nil, s.mismatch
	case s.parent == nil:
		return nil, newRefusal(0, "there is no kustomization to add it to")
	case s.inEntry:
		return d.insertKey(s, value, TypeString, findPrecedingImageKey(s.parent, a.key))
	}
	item := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		stringNode("name"), stringNode(a.image), stringNode(a.key), stringNode(value)}}
	flow := s.parent.Style&yaml.FlowStyle != 0
	like := s.parent // how keys are quoted is taken from here
	if like.Kind == yaml.SequenceNode && len(like.Content) > 0 {
		like = like.Content[0]
	}
	var texts [2]string
	for i, v := range []string{a.image, value} {
		t, err := renderNewYAML(v, TypeString, flow, quotesKeys(like))
		if err != nil {
			return nil, newRefusal(s.parent.Line, "%v", err)
		}
		texts[i] = t
	}
	key := func(k string) string { return d.keyText(k, flow, quotesKeys(like)) + ": " }
	lines := []string{"- " + key("name") + texts[0], "  " + key(a.key) + texts[1]}
	entry := "{" + key("name") + texts[0] + ", " + key(a.key) + texts[1] + "}"
	if s.parent.Kind == yaml.SequenceNode {
		c := entryRange{parent: s.parent, index: len(s.parent.Content), added: []*yaml.Node{item}}
		if flow {
			return d.insertFlow(c, entry)
		}
		return d.insertLines(c, lines, s.parent.Column-1)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{item}}
	c := entryRange{parent: s.parent, index: len(s.parent.Content), added: []*yaml.Node{stringNode("images"), list}}
	if flow {
		return d.insertFlow(c, key("images")+"["+entry+"]")
	}
	if pad := listIndent(s.parent); pad != "" {
		lines = []string{pad + lines[0], pad + lines[1]}
	}
	return d.insertLines(c, append([]string{strings.TrimRight(key("images"), " ")}, lines...), d.indentOf(s.parent))
}

// findPrecedingImageKey is the last key before key, in kustomize's order, that the entry has.
func findPrecedingImageKey(entry *yaml.Node, key string) string {
	after := "name"
	for _, k := range imageKeys {
		if k == key {
			break
		}
		if v, err := lookupKey(entry, k); err == nil && v != nil {
			after = k
		}
	}
	return after
}

// listIndent is how the other lists of a mapping are indented below their keys.
func listIndent(m *yaml.Node) string {
	for i := 0; i+1 < len(m.Content); i += 2 {
		v := m.Content[i+1]
		if v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle == 0 && v.Column > m.Content[i].Column {
			return strings.Repeat(" ", v.Column-m.Content[i].Column)
		}
	}
	return ""
}
