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
	_, _, found := d.locatePath(path)
	return found
}

// Text is the text at a path as the file has it, before variables are replaced; empty where there is none, or
// no text.
func (d *Document) Text(path string) string {
	_, value, found := d.locatePath(path)
	if value = followAlias(value); !found || value.Kind != yaml.ScalarNode {
		return ""
	}
	return value.Value
}

// Errorf is an error about the value at a path. It is at its key's position (an element's own) or,
// where it is absent, at that of the nearest thing around it. The message begins with the path.
func (d *Document) Errorf(path, format string, args ...any) Error {
	n, _, _ := d.locatePath(path)
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	return Error{File: d.file, Line: n.Line, Column: n.Column, Message: message}
}

// locatePath returns what marks the place of a path (a key, or an element of a list), its value
// and true, or those of the innermost existing thing around it and false.
func (d *Document) locatePath(path string) (place, value *yaml.Node, found bool) {
	place, value = d.root, d.root
	for _, step := range splitPath(path) {
		e, ok := findChild(followAlias(value), step)
		if !ok {
			return place, value, false
		}
		place, value = e.key, e.value
	}
	return place, value, true
}

// splitPath splits "a.b[2].c" into "a", "b", "[2]", "c".
func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(strings.ReplaceAll(path, "[", ".["), "."), ".")
}

// findChild is one step into a node; for a list's element, it is its own key.
func findChild(n *yaml.Node, step string) (mappingEntry, bool) {
	if index, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || n.Kind != yaml.SequenceNode || i < 0 || i >= len(n.Content) {
			return mappingEntry{}, false
		}
		return mappingEntry{key: n.Content[i], value: n.Content[i]}, true
	}
	if n.Kind != yaml.MappingNode {
		return mappingEntry{}, false
	}
	for _, e := range mappingEntries(n, func(*yaml.Node, string, ...any) {}) {
		if e.key.Value == step {
			return e, true
		}
	}
	return mappingEntry{}, false
}

// appendKey appends a key to a path.
func appendKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// appendIndex appends an index to a path.
func appendIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
