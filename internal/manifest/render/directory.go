package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/gobwas/glob"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// manifestNamePattern is what counts as a manifest in a plain folder.
var manifestNamePattern = regexp.MustCompile(`\.(yaml|yml|json|jsonnet)$`)

// renderDirectory takes a plain folder's manifests as they are.
func (r *rendering) renderDirectory(dir string, o *directoryOptions) error {
	d := &directoryWalk{files: r.files, dir: dir, recurse: o.Recurse}
	var err error
	if d.include, err = compileGlob(o.Include); err != nil {
		return fmt.Errorf("directory.include: %w", err)
	}
	if d.exclude, err = compileGlob(o.Exclude); err != nil {
		return fmt.Errorf("directory.exclude: %w", err)
	}
	if err := d.walk("."); err != nil {
		return err
	}
	for _, name := range d.found {
		if strings.HasSuffix(name, ".jsonnet") {
			return newUnrenderable(name + " is Jsonnet, which is not evaluated")
		}
		if err := r.addManifestFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// compileGlob compiles a glob in which * crosses slashes; nil for none.
func compileGlob(pattern string) (glob.Glob, error) {
	if pattern == "" {
		return nil, nil // no pattern, no filter
	}
	return glob.Compile(pattern)
}

// directoryWalk is the walk through a plain folder. Links to folders aren't
// followed, as in Argo CD.
type directoryWalk struct {
	files            *treeReader
	dir              string
	recurse          bool
	include, exclude glob.Glob
	found            []string // from the tree's root, in order
}

// walk collects the manifests below a folder of the source, given relative to it. Which folders and files count is
// Argo CD's choice: recurse, include and exclude of the source's directory.
func (d *directoryWalk) walk(below string) error {
	entries, err := d.files.list(path.Join(d.dir, below))
	if err != nil {
		return err
	}
	for _, e := range entries {
		rel := path.Join(below, e.Name())
		if e.IsDir() {
			if d.recurse {
				if err := d.walk(rel); err != nil {
					return err
				}
			}
			continue
		}
		if !manifestNamePattern.MatchString(e.Name()) {
			continue
		}
		if d.exclude != nil && d.exclude.Match(rel) || d.include != nil && !d.include.Match(rel) {
			continue
		}
		found, err := d.files.find(path.Join(d.dir, rel))
		if err != nil {
			return err
		}
		if found.kind != kindFile {
			continue // a dangling link, or a link to a folder
		}
		if d.found = append(d.found, path.Join(d.dir, rel)); len(d.found) > maxFiles {
			return fmt.Errorf("%w: more than %d manifest files", ErrLimit, maxFiles)
		}
	}
	return nil
}

// addManifestFile takes the objects of one file. A YAML file that has no object and
// doesn't look like one is passed over: not every YAML file is a manifest.
func (r *rendering) addManifestFile(name string) error {
	raw, err := r.files.read(name)
	if err != nil {
		return err
	}
	data, err := decodeText(raw)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, ".json") {
		return r.addJSONFile(data)
	}
	before := r.out
	err = r.out.addYAML(data)
	if err == nil || errors.Is(err, ErrLimit) {
		return err
	}
	looksLikeManifest := bytes.Contains(data, []byte("apiVersion:")) && bytes.Contains(data, []byte("kind:")) && bytes.Contains(data,
		[]byte("metadata:"))
	if looksLikeManifest || len(r.out.objects) > len(before.objects) {
		return err
	}
	r.out = before
	return nil
}

// addJSONFile takes the one object of a JSON file.
func (r *rendering) addJSONFile(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it has more than one JSON object, and may have only one")
	}
	return r.out.addJSON(raw)
}

// decodeText is text without its byte order mark, which may say that it is UTF-16.
func decodeText(raw []byte) ([]byte, error) {
	data, _, err := transform.Bytes(unicode.BOMOverride(unicode.UTF8.NewDecoder()), raw)
	if err != nil {
		return nil, fmt.Errorf("reading its text: %w", err)
	}
	return data, nil
}
