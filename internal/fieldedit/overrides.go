package fieldedit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// checkOverrides refuses fields that an .argocd-source file in a root overrides (in
// a shared one only the file that is for all Applications):
// Argo CD lays those files over what is beside them (Argo CD's documentation,
// "Parameter Overrides"; Argo CD Image Updater writes them), so that the field
// isn't what runs.
func (f *commitFiles) checkOverrides(b *resolvedOverlay, found []Location) error {
	for _, root := range b.roots {
		entries, err := fs.ReadDir(f.tree, root)
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
			if err := f.checkOverrideFile(root, joinRoot(root, e.Name()), found); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedOverrideFile is the file that Argo CD lays over a folder for all Applications.
const sharedOverrideFile = ".argocd-source.yaml"

// isOverrideFile says that a file in a root, by its name, may override fields there.
func (b *resolvedOverlay) isOverrideFile(root, name string) bool {
	if b.shared[root] {
		return name == sharedOverrideFile
	}
	return strings.HasPrefix(name, ".argocd-source") && strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/")
}

func (f *commitFiles) checkOverrideFile(root, file string, found []Location) error {
	var fields []Location
	for _, l := range found {
		if l.Field.Kind == KindYAML && l.File != file || l.Field.Kind == KindImage && l.Root == root {
			fields = append(fields, l)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	d, err := f.readDocument(file, formatYAML)
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
				Reason: fmt.Sprintf("Argo CD lays this file over %s, so that what is carried there isn't what runs: remove it from here", l.File)}
		}
	}
	return nil
}

// findOverride is what in an .argocd-source file overrides a field; nil without.
func (d *document) findOverride(l Location, all []Location) (*yaml.Node, error) {
	if l.Field.Kind == KindImage {
		image, _, err := parseImagePath(l.Field.Path)
		if err != nil {
			return nil, err
		}
		names := map[string]bool{image: true}
		for _, o := range all { // what is renamed goes by its new name, too
			if o.Root == l.Root && o.Field.Path == imagePath(image, imageNewName) {
				names[o.Field.Value] = true
			}
		}
		return d.findListItem("kustomize.images", nil, func(v string) bool { return names[ImageName(v)] })
	}
	by, err := d.findListItem("helm.parameters", []string{"name"}, func(v string) bool { return v == l.Path() })
	if by != nil || err != nil {
		return by, err
	}
	return d.findHelmValues(l)
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

// findHelmValues is the inline Helm values of an .argocd-source file where they have
// the field.
func (d *document) findHelmValues(l Location) (*yaml.Node, error) {
	for _, key := range []string{"helm.values", "helm.valuesObject"} {
		p, err := fieldpath.Parse(key)
		if err != nil {
			return nil, err
		}
		s, err := d.findPath(p)
		if err != nil {
			return nil, err
		}
		if s.node == nil {
			continue
		}
		inner := &document{format: formatYAML, roots: []*yaml.Node{s.node}}
		if s.node.Kind == yaml.ScalarNode {
			if inner, err = parseDocument([]byte(s.node.Value), formatYAML); err != nil {
				return nil, newRefusal(s.node.Line, "%s can't be read: %v", key, err)
			}
		}
		if at, err := inner.findPath(l.address.path); err != nil || at.node != nil {
			return s.node, nil // what can't be told counts as overridden
		}
	}
	return nil, nil
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
