package fieldedit

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// checkOverrides refuses fields that an .argocd-source file in a root overrides; in a shared root
// only the file for all Applications counts. Argo CD lays those files over the files beside them
// (Argo CD's documentation, "Parameter Overrides"; Argo CD Image Updater writes them), so the
// field's value doesn't run.
func (c *commitFiles) checkOverrides(b *resolvedOverlay, found []Location) error {
	for _, root := range b.roots {
		entries, err := fs.ReadDir(c.tree, root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", root, err)
		}
		for _, e := range entries {
			if !b.isOverrideFile(root, e.Name()) {
				continue
			}
			if err := c.checkOverrideFile(root, joinRoot(root, e.Name()), found); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedOverrideFile is the file that Argo CD lays over a folder for all Applications.
const sharedOverrideFile = ".argocd-source.yaml"

// isOverrideFile says that a file in a root, by its name, may override fields there.
func (r *resolvedOverlay) isOverrideFile(root, name string) bool {
	if r.shared[root] {
		return name == sharedOverrideFile
	}
	return strings.HasPrefix(name, ".argocd-source") && strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/")
}

func (c *commitFiles) checkOverrideFile(root, file string, found []Location) error {
	var fields []Location
	for _, l := range found {
		if l.Field.Kind == KindYAML && l.File != file || l.Field.Kind == KindImage && l.Root == root {
			fields = append(fields, l)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	d, err := c.readDocument(file, formatYAML)
	if err != nil {
		return err
	}
	for _, l := range fields {
		by, err := d.findOverride(l, fields)
		if err != nil {
			return withLocation(err, file, "")
		}
		if by != nil {
			return &RefusedError{File: file, Line: by.Line, Field: l.Path(),
				Reason: fmt.Sprintf("Argo CD lays this file over %s, so that what is carried there isn't what runs: remove it from here",
					l.File)}
		}
	}
	return nil
}

// findOverride is what in an .argocd-source file overrides a field; nil without.
func (d *document) findOverride(l Location, all []Location) (*yaml.Node, error) {
	f := OptionField{Path: l.address.path}
	if l.Field.Kind == KindImage {
		image, _, err := parseImagePath(l.Field.Path)
		if err != nil {
			return nil, err
		}
		f = OptionField{Images: []string{image}}
		for _, o := range all { // what is renamed goes by its new name, too
			if o.Root == l.Root && o.Field.Path == imagePath(image, imageNewName) {
				f.Images = append(f.Images, o.Field.Value)
			}
		}
	}
	_, _, by, err := d.findOptionOverride(f)
	return by, err
}

// OptionField is a carried field as what may override it names it.
type OptionField struct {
	Path   fieldpath.Path // in Helm's values; the zero one: it is in none
	Images []string       // the names that an image goes by
}

// OptionOverride is what of a source's options overrides a field.
type OptionOverride struct {
	Option string // such as helm.parameters
	Name   string // of the parameter or image; "" for values
	Line   int    // in the options' own text, from 1
}

// FindOptionOverride finds what of a source's options, as YAML or JSON, overrides a field: of an Application's, or of those
// in an .argocd-source file. False where nothing does.
func FindOptionOverride(options []byte, f OptionField) (OptionOverride, bool, error) {
	d, err := parseDocument(options, formatYAML)
	if err != nil {
		return OptionOverride{}, false, err
	}
	option, name, by, err := d.findOptionOverride(f)
	if by == nil || err != nil {
		return OptionOverride{}, false, err
	}
	return OptionOverride{Option: option, Name: name, Line: by.Line}, true, nil
}

// findOptionOverride goes through the options that override fields, the strongest first. They are
// kustomize edit set image, and Helm's --set-file, --set and the Application's own values, in the
// order in which helm template lays them over files.
func (d *document) findOptionOverride(f OptionField) (option, name string, by *yaml.Node, err error) {
	isOfImage := func(v string) bool { return slices.Contains(f.Images, ImageName(v)) }
	isOfField := func(v string) bool { return f.isSetBy(v) }
	for _, o := range []struct {
		option string
		keys   []string // of an item's name
		is     func(string) bool
	}{
		{"kustomize.images", nil, isOfImage},
		{"helm.fileParameters", []string{"name"}, isOfField},
		{"helm.parameters", []string{"name"}, isOfField},
	} {
		by, err := d.findListItem(o.option, o.keys, o.is)
		if err != nil {
			return "", "", nil, err
		}
		if by != nil {
			named, err := findScalar(by, o.keys)
			if err != nil {
				return "", "", nil, err
			}
			return o.option, named.Value, by, nil
		}
	}
	option, by, err = d.findHelmValues(f)
	return option, "", by, err
}

// isSetBy says that a parameter of a name, as helm's --set takes it, sets the field or something that it is in.
func (o OptionField) isSetBy(name string) bool {
	if o.Path.String() == "" {
		return false
	}
	if name == o.Path.String() {
		return true
	}
	p, err := fieldpath.Parse(name)
	if err != nil {
		return false
	}
	own, outer := o.Path.Segments(), p.Segments()
	isKey := func(s fieldpath.Segment) bool { return s.Kind == fieldpath.Key || s.Kind == fieldpath.Token }
	return len(outer) > 0 && len(outer) <= len(own) && slices.EqualFunc(outer, own[:len(outer)], func(a, b fieldpath.Segment) bool {
		return isKey(a) && isKey(b) && a.Key == b.Key
	})
}

// findListItem is the item of a list (or what keys lead to in it) that is.
func (d *document) findListItem(list string, keys []string, is func(string) bool) (*yaml.Node, error) {
	p, err := fieldpath.Parse(list)
	if err != nil {
		return nil, err
	}
	s, err := d.findPath(p)
	if err != nil || s.node == nil || s.node.Kind != yaml.SequenceNode {
		return nil, err
	}
	for _, item := range s.node.Content {
		v, err := findScalar(item, keys)
		if err != nil {
			return nil, err
		}
		if v != nil && is(v.Value) {
			return item, nil
		}
	}
	return nil, nil
}

// findHelmValues is the Helm values among a source's options where they have the field: Argo CD takes no values as text
// where there is an object of them.
func (d *document) findHelmValues(f OptionField) (option string, by *yaml.Node, err error) {
	if f.Path.String() == "" {
		return "", nil, nil
	}
	for _, key := range []string{"helm.valuesObject", "helm.values"} {
		p, err := fieldpath.Parse(key)
		if err != nil {
			return "", nil, err
		}
		s, err := d.findPath(p)
		if err != nil {
			return "", nil, err
		}
		if s.node == nil || s.node.Tag == "!!null" {
			continue
		}
		inner := &document{format: formatYAML, roots: []*yaml.Node{s.node}}
		if s.node.Kind == yaml.ScalarNode {
			if inner, err = parseDocument([]byte(s.node.Value), formatYAML); err != nil {
				return "", nil, newRefusal(s.node.Line, "%s can't be read: %v", key, err)
			}
		}
		if inner.hasValueOnWay(f.Path) {
			return key, s.node, nil
		}
		return "", nil, nil
	}
	return "", nil, nil
}

// hasValueOnWay says that a document has a field, or a value in which the field has no place. It
// counts where that can't be told.
func (d *document) hasValueOnWay(p fieldpath.Path) bool {
	all := p.Segments()
	for n := range all {
		at, err := d.findPath(fieldpath.New(all[:n+1]...))
		if err != nil {
			return true
		}
		isLast := n == len(all)-1
		if at.node != nil && (isLast || resolveAlias(at.node).Kind == yaml.ScalarNode) {
			return true
		}
	}
	return false
}

// ImageName is the name of an image as kustomize's command line takes it:
// name=new:tag, name:tag or name@digest.
func ImageName(arg string) string {
	if name, _, ok := strings.Cut(arg, "="); ok {
		return name
	}
	name, _, _ := strings.Cut(arg, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}
