package strictyaml

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Has says whether the document gives a value at a path such as
// "spec.environments[2].verify.watch". Aliases and merge keys are followed.
func (d *Document) Has(path string) bool {
	_, found := d.find(path)
	return found
}

// Errorf is an error about the value at a path: at its key's position (an
// element's own) or, where it is absent, at that of the nearest thing around
// it. The message begins with the path.
func (d *Document) Errorf(path, format string, args ...any) Error {
	n, _ := d.find(path)
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	return Error{File: d.file, Line: n.Line, Column: n.Column, Message: message}
}

// find returns what marks the place of a path (a key, or an element of a list)
// and true, or that of the innermost existing thing around it and false.
func (d *Document) find(path string) (place *yaml.Node, found bool) {
	place, value := d.root, d.root
	for _, step := range steps(path) {
		e, ok := child(resolved(value), step)
		if !ok {
			return place, false
		}
		place, value = e.key, e.value
	}
	return place, true
}

// steps splits "a.b[2].c" into "a", "b", "[2]", "c".
func steps(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(strings.ReplaceAll(path, "[", ".["), "."), ".")
}

// child is one step into a node; for a list's element, it is its own key.
func child(n *yaml.Node, step string) (entry, bool) {
	if index, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || n.Kind != yaml.SequenceNode || i < 0 || i >= len(n.Content) {
			return entry{}, false
		}
		return entry{key: n.Content[i], value: n.Content[i]}, true
	}
	if n.Kind != yaml.MappingNode {
		return entry{}, false
	}
	for _, e := range entries(n, nil) {
		if e.key.Value == step {
			return e, true
		}
	}
	return entry{}, false
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// at appends an index to a path.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
