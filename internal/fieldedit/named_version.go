package fieldedit

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// NamedVersion is a version among an overlay's carried fields, with the image or the chart that it is of.
type NamedVersion struct {
	Image string // its name, without tag; empty: a chart
	Chart string // as [pipeline.ChartAddress] has it
	// Tag is the image's tag or the chart's version, Digest its digest; empty where the file has none.
	Tag, Digest string
	Where       []string // file:line of each place, sorted

	tag, digest *Field // the carried fields that have them; nil: none is carried
	isReference bool   // tag has the whole reference, name:tag@digest
}

// CanPin says that the digest is in a carried field.
func (n *NamedVersion) CanPin() bool { return n.digest != nil || n.isReference && n.Digest != "" }

// TakesDigest says that a carried field has room for a digest: one of its own, or a whole reference, with a digest or without.
func (n *NamedVersion) TakesDigest() bool { return n.digest != nil || n.isReference }

// HasTag says that the tag, or the chart's version, is in a carried field.
func (n *NamedVersion) HasTag() bool {
	return n.tag != nil && (!n.isReference || n.Tag != "")
}

// With is the carried fields with another tag and digest, as far as they have them. An empty one stays as it is.
func (n *NamedVersion) With(tag, digest string) []Field {
	if n.isReference && n.Digest == "" {
		digest = ""
	}
	return n.WithDigest(tag, digest)
}

// WithDigest is With, and a reference that has no digest gets it.
func (n *NamedVersion) WithDigest(tag, digest string) []Field {
	if n.isReference {
		f := *n.tag
		f.Value = n.Image
		if tag == "" {
			tag = n.Tag
		}
		if n.Tag != "" {
			f.Value += ":" + tag
		}
		if digest = cmp.Or(digest, n.Digest); digest != "" {
			f.Value += "@" + digest
		}
		return []Field{f}
	}
	var out []Field
	for _, set := range []struct {
		field *Field
		value string
	}{{n.tag, tag}, {n.digest, digest}} {
		if set.field != nil && set.value != "" {
			f := *set.field
			f.Value = set.value
			out = append(out, f)
		}
	}
	return out
}

// ValueIn is what a release has for the version: its tag, or its digest where that is what counts; empty where it has
// none.
func (n *NamedVersion) ValueIn(r Release, digest bool) string {
	of := n.tag
	if digest && n.digest != nil {
		of = n.digest
	}
	if of == nil {
		return ""
	}
	i := slices.IndexFunc(r.Fields, func(f Field) bool { return f.Key() == of.Key() })
	switch {
	case i < 0:
		return ""
	case !n.isReference:
		return r.Fields[i].Value
	}
	_, tag, pinned := SplitReference(r.Fields[i].Value)
	if digest {
		return pinned
	}
	return tag
}

// FindVersions finds the carried fields that have the tag or the digest of an image, or the version
// of a chart, and that name it. Such are entries of a kustomization's images, a tag beside a
// repository, a whole reference, a chart's dependency, and an Application's source. layers are lists
// of Helm's values files, of which the last one counts: an image's repository may be in another one
// than its tag. The errors are those of [Read].
func FindVersions(tree fs.FS, o Overlay, layers [][]string) ([]NamedVersion, error) {
	b, err := o.resolvePlaceholders()
	if err != nil {
		return nil, err
	}
	files := newFiles(tree, b.parseCache)
	found, err := files.locateFields(b)
	if err != nil {
		return nil, err
	}
	if _, err := releaseOf(found); err != nil {
		return nil, err
	}
	finder := versionFinder{files: files, layers: layers, byKey: map[string]*NamedVersion{}}
	for i := range found {
		if err := finder.add(&found[i]); err != nil {
			return nil, err
		}
	}
	return finder.joined(), nil
}

// versionFinder joins the fields of one version.
type versionFinder struct {
	files  *commitFiles
	layers [][]string
	byKey  map[string]*NamedVersion // by the place of what has the fields
	order  []string
}

// add takes in a carried field, unless it is none of a version that is named.
func (v *versionFinder) add(l *Location) error {
	switch l.Field.Kind {
	case KindImage:
		v.addImage(l)
		return nil
	case KindYAML, KindJSON:
		return v.addScalar(l)
	}
	return nil
}

// at is the version that a place has.
func (v *versionFinder) at(l *Location, place string) *NamedVersion {
	key := l.File + "\x00" + place
	n := v.byKey[key]
	if n == nil {
		n = &NamedVersion{}
		v.byKey[key], v.order = n, append(v.order, key)
	}
	if where := fmt.Sprintf("%s:%d", l.File, l.Line); !slices.Contains(n.Where, where) {
		n.Where = append(n.Where, where)
	}
	return n
}

func (v *versionFinder) addImage(l *Location) {
	n := v.at(l, "images["+l.address.image+"]")
	field := l.Field
	switch l.address.key {
	case imageNewName:
		n.Image = field.Value
		return
	case imageNewTag:
		n.tag, n.Tag = &field, field.Value
	case imageDigest:
		n.digest, n.Digest = &field, field.Value
	}
	if n.Image == "" {
		n.Image = l.address.image
	}
}

// addScalar takes in a value of a YAML or JSON file, by the name of its key and what is beside it.
func (v *versionFinder) addScalar(l *Location) error {
	segments := l.address.path.Segments()
	last := segments[len(segments)-1]
	if last.Kind != fieldpath.Key && last.Kind != fieldpath.Token {
		return nil
	}
	beside := siblings{finder: v, l: l, parent: segments[:len(segments)-1], kind: last.Kind}
	place := fieldpath.New(segments...).UpTo(len(segments) - 1)
	field := l.Field
	switch key := strings.ToLower(last.Key); key {
	case "tag", "newtag", "imagetag", "digest":
		image, err := beside.imageName()
		if err != nil || image == "" {
			return err
		}
		n := v.at(l, place)
		n.Image = image
		if key == "digest" {
			n.digest, n.Digest = &field, field.Value
		} else {
			n.tag, n.Tag = &field, field.Value
		}
	case "version", "targetrevision":
		chart, err := beside.chartAddress(key)
		if err != nil || chart == "" {
			return err
		}
		n := v.at(l, place)
		n.Chart, n.tag, n.Tag = chart, &field, field.Value
	case "image":
		name, tag, digest := SplitReference(field.Value)
		if name == "" || tag == "" && digest == "" {
			return nil
		}
		n := v.at(l, place+"."+last.Key)
		n.Image, n.tag, n.Tag, n.Digest, n.isReference = name, &field, tag, digest, true
	}
	return nil
}

// joined are the versions that were found. What several roots have at one place is one, as the release has it.
func (v *versionFinder) joined() []NamedVersion {
	var out []NamedVersion
	at := map[string]int{}
	for _, key := range v.order {
		n := v.byKey[key]
		if n.tag == nil && n.digest == nil {
			continue
		}
		place := n.Image + "\x00" + n.Chart
		for _, f := range []*Field{n.tag, n.digest} {
			if f != nil {
				place += "\x00" + f.Key()
			}
		}
		i, known := at[place]
		if !known {
			at[place] = len(out)
			out = append(out, *n)
			continue
		}
		out[i].Where = append(out[i].Where, n.Where...)
		slices.Sort(out[i].Where)
	}
	return out
}

// siblings reads what is beside a field.
type siblings struct {
	finder *versionFinder
	l      *Location
	parent []fieldpath.Segment
	kind   fieldpath.Kind
}

// imageName is the name of the image that a tag or a digest is of; empty where nothing beside it says.
func (s *siblings) imageName() (string, error) {
	for _, key := range []string{"repository", "newName", "name", "image", "imageRepository", "imageName"} {
		name, err := s.read(key)
		if err != nil {
			return "", err
		}
		if name == "" {
			continue
		}
		registry, err := s.read("registry")
		if err != nil || registry == "" {
			return name, err
		}
		return strings.TrimSuffix(registry, "/") + "/" + name, nil
	}
	return "", nil
}

// chartAddress is the chart that a version is of: of Application sources, of charts' dependencies, and of kustomizations'
// helmCharts.
func (s *siblings) chartAddress(key string) (string, error) {
	repositoryKeys, nameKey := []string{"repository", "repo"}, "name"
	if key == "targetrevision" {
		repositoryKeys, nameKey = []string{"repoURL"}, "chart"
	}
	chart, err := s.read(nameKey)
	if err != nil || chart == "" {
		return "", err
	}
	for _, key := range repositoryKeys {
		repository, err := s.read(key)
		if err != nil {
			return "", err
		}
		isRemote := strings.HasPrefix(repository, "https://") || strings.HasPrefix(repository, "oci://") ||
			strings.HasPrefix(repository, "http://")
		if isRemote || repository != "" && key == "repoURL" && !strings.Contains(repository, "://") {
			return pipeline.ChartAddress(repository, chart), nil
		}
	}
	return "", nil
}

// read is the text of a key beside the field: in its own file or, of Helm's values, in the last other file that has it.
func (s *siblings) read(key string) (string, error) {
	at := fieldpath.New(append(slices.Clone(s.parent), fieldpath.Segment{Kind: s.kind, Key: key})...)
	files := []string{s.l.File}
	for _, layers := range s.finder.layers {
		if !slices.Contains(layers, s.l.File) {
			continue
		}
		for _, file := range slices.Backward(layers) {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	for i, file := range files {
		as := formatYAML
		if strings.ToLower(path.Ext(file)) == ".json" {
			as = formatJSON
		}
		d, err := s.finder.files.readDocument(file, as)
		if err != nil {
			if i == 0 {
				return "", err
			}
			continue // another file that can't be read names nothing
		}
		found, err := d.findPath(at)
		if err != nil || found.node == nil {
			continue
		}
		if n, err := requireScalar(found.node); err == nil && n.Value != "" {
			return scalarValue(n), nil
		}
	}
	return "", nil
}

// SplitReference takes an image's reference apart, name:tag@digest. What it has none of is empty.
func SplitReference(text string) (name, tag, digest string) {
	name, digest, _ = strings.Cut(text, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	return name, tag, digest
}
