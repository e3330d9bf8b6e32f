package deps

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// encodeDirectoryOptions are the options of a plain folder as a node's argument.
func encodeDirectoryOptions(s *Source) string {
	return strings.Join(append([]string{strconv.FormatBool(s.Recurse), s.Include, s.Exclude}, s.Libs...), "\x00")
}

// followDirectory records a plain folder's manifests, and what Jsonnet among them
// imports.
func (w *walker) followDirectory(dir, options string) {
	at, ok := w.lookUp(dir)
	if !ok {
		return
	}
	dir = at.path
	o := strings.Split(options, "\x00")
	recurse, include, exclude, libs := o[0] == "true", o[1], o[2], o[3:]
	r := rule{dir: dir, shape: shapeManifests}
	if recurse {
		r.shape = shapeRecursive
	}
	var err error
	if r.include, err = compilePattern(include); err != nil {
		w.widenToFolder(dir, dir, fmt.Errorf("include %q is not a glob: %w", include, err))
		return
	}
	if r.exclude, err = compilePattern(exclude); err != nil {
		w.widenToFolder(dir, dir, fmt.Errorf("exclude %q is not a glob: %w", exclude, err))
		return
	}
	w.result.rules = append(w.result.rules, r)
	if at.kind != kindFolder {
		return
	}
	lookup := strings.Join(append([]string{dir}, libs...), "\x00")
	w.recordContents(dir, func(name string) bool {
		covered := r.covers(name)
		if covered && strings.HasSuffix(name, ".jsonnet") {
			w.useNode(roleJsonnet, name, lookup)
		}
		return covered
	})
}

// followJsonnet follows the imports of one Jsonnet file. They are looked up from
// the file's folder and then from the others, so all of these count.
func (w *walker) followJsonnet(name, lookup string) {
	at, ok := w.lookUp(name)
	if !ok || at.kind != kindFile {
		return
	}
	dir := path.Dir(name)
	list, err := w.importsOfFile(at)
	if err != nil {
		w.widenToFolder(dir, name, err)
	}
	from := append([]string{dir}, strings.Split(lookup, "\x00")...)
	for _, i := range list {
		for n, dir := range from {
			p, err := joinPath(dir, i.path)
			if err != nil {
				if n == 0 {
					w.recordProblem(name, err)
				}
				continue
			}
			at, err := w.findPath(p)
			switch {
			case err != nil:
				w.recordProblem(name, err)
			case at.kind == kindFile && i.isJsonnet:
				w.useNode(roleJsonnet, p, lookup)
			}
		}
	}
}

// importsOfFile parses a Jsonnet file once for all that import it.
func (w *walker) importsOfFile(at location) ([]jsonnetImport, error) {
	w.mu.Lock()
	list, ok := w.jsonnet[at.path]
	w.mu.Unlock()
	if ok {
		return list, nil
	}
	data, err := w.readFile(at)
	if err != nil {
		return nil, err
	}
	if list, err = parseImports(data); err != nil {
		return list, err
	}
	w.mu.Lock()
	w.jsonnet[at.path] = list
	w.mu.Unlock()
	return list, nil
}
