package propose

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// maxDocuments bounds the documents of a file: one with more is not looked into.
const maxDocuments = 500

// readDocuments reads a file's documents but for empty ones; none where one can't be read, or is a template.
func readDocuments(data []byte) []*yaml.Node {
	var out []*yaml.Node
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var root yaml.Node
		err := dec.Decode(&root)
		switch {
		case errors.Is(err, io.EOF):
			return out
		case err != nil, len(root.Content) != 1, len(out) == maxDocuments, isTemplate(root.Content[0]):
			return nil
		case root.Content[0].Tag != "!!null":
			out = append(out, root.Content[0])
		}
	}
}

// isTemplate says that YAML was read where {{ begins an expression: as a mapping whose key is one.
func isTemplate(n *yaml.Node) bool {
	for i, child := range n.Content {
		isKey := n.Kind == yaml.MappingNode && i%2 == 0
		if isKey && child.Kind == yaml.MappingNode || isTemplate(child) {
			return true
		}
	}
	return false
}

// documentKeys lead to what people tell the manifests of a file apart by.
var documentKeys = [][]string{{"metadata", "name"}, {"spec", "source", "chart"}}

// documentPicks are the selections that pick a document, and none of the file's others.
func documentPicks(all []*yaml.Node, document *yaml.Node) []fieldpath.Segment {
	var out []fieldpath.Segment
	for _, keys := range documentKeys {
		valueOf := func(n *yaml.Node) string {
			last := len(keys) - 1
			return mappingValue(mappingAt(n, keys[:last]), keys[last])
		}
		value := valueOf(document)
		if value == "" || slices.ContainsFunc(all, func(n *yaml.Node) bool { return n != document && valueOf(n) == value }) {
			continue
		}
		out = append(out, fieldpath.Segment{Kind: fieldpath.Match, KeyPath: keys, Value: value})
	}
	return out
}

// isDocumentPick says that a segment is a selection of one of a file's documents.
func isDocumentPick(s fieldpath.Segment) bool {
	isKey := func(keys []string) bool { return slices.Equal(s.KeyPath, keys) }
	return s.Kind == fieldpath.Match && slices.ContainsFunc(documentKeys, isKey)
}

// pickDocuments writes the document into the paths that several of a file's have: without that no
// path may lead somewhere in more than one. Documents that can't be told apart are left out.
func pickDocuments(all []scalar) []scalar {
	count := map[string]int{}
	for _, v := range all {
		count[v.path]++
	}
	var out []scalar
	for _, v := range all {
		if count[v.path] > 1 {
			if len(v.picks) == 0 {
				continue
			}
			v.segments = slices.Concat(v.picks[:1], v.segments)
			path, ok := nameablePath(v.segments)
			if !ok {
				continue
			}
			v.path = path
		}
		out = append(out, v)
	}
	return out
}

// pickByComponent writes the path of a value in a document that the component's name picks, the file being one that others
// have as well: [metadata.name={{component}}-{{environment}}].spec. isAlone says that no other environment of
// the component has the file, so that the environment's name needn't pick the document.
func (s *scalar) pickByComponent(component, environment string, isAlone func() bool) ([]fieldpath.Segment, bool) {
	rest := s.segments
	if isDocumentPick(rest[0]) {
		rest = rest[1:]
	}
	for _, pick := range s.picks {
		text := withWords(pick.Value, component, environment)
		if !strings.Contains(text, "{{component}}") || !strings.Contains(text, "{{environment}}") && !isAlone() {
			continue
		}
		pick.Value = text
		return slices.Concat([]fieldpath.Segment{pick}, rest), true
	}
	return nil, false
}

// withWords writes the placeholders for both names into a text, each where it is first a word of it, the longer name first.
func withWords(text, component, environment string) string {
	type word struct{ name, placeholder string }
	words := []word{{component, "{{component}}"}, {environment, "{{environment}}"}}
	if len(environment) > len(component) {
		slices.Reverse(words)
	}
	for _, w := range words {
		text = withWord(text, w.name, w.placeholder)
	}
	return text
}
