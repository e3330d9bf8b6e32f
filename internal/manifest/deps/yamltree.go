package deps

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// maxPathBytes is the longest path that git on Linux checks out.
const maxPathBytes = 4096

// parseDocument parses the first document of a YAML file and gives its mapping;
// nil for an empty one. Aliases are left as they are, so that a bomb of them
// stays small. The nodes are good until the parser is used again.
func parseDocument(data []byte, plain *plainParser) (*yaml.Node, error) {
	if doc, ok := plain.parse(data); ok {
		return doc, nil
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		// kustomize has another parser, which takes some files that this one
		// doesn't; what that one makes of it, this one can read.
		j, err2 := sigsyaml.YAMLToJSON(data)
		if err2 != nil || yaml.Unmarshal(j, &n) != nil {
			return nil, fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	if n.Kind == 0 || len(n.Content) == 0 || isNull(n.Content[0]) {
		return nil, nil
	}
	doc := resolveAlias(n.Content[0])
	if doc.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it is not a mapping", doc.Line)
	}
	return doc, nil
}

// resolveAlias is what an alias stands for.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// collectStrings lists the scalars of a YAML stream that may be paths: a plugin's configuration may
// name files under any key, also in YAML within YAML. Text that can't be read as YAML names
// nothing; errTooMany when the list was cut.
func collectStrings(data []byte) ([]string, error) {
	out := appendStrings(nil, data, 0)
	if len(out) >= maxReferences {
		return out, errTooMany
	}
	return out, nil
}

func appendStrings(out []string, data []byte, depth int) []string {
	for dec := yaml.NewDecoder(bytes.NewReader(data)); len(out) < maxReferences; {
		var n yaml.Node
		if dec.Decode(&n) != nil {
			break
		}
		out = appendScalars(out, &n, depth)
	}
	return out
}

func appendScalars(out []string, n *yaml.Node, depth int) []string {
	switch {
	case len(out) >= maxReferences:
		return out
	case n.Kind != yaml.ScalarNode || n.Value == "":
	case strings.Contains(n.Value, "\n"):
		if depth < 2 {
			out = appendStrings(out, []byte(n.Value), depth+1)
		}
	case len(n.Value) <= maxPathBytes:
		out = append(out, n.Value)
	}
	for _, child := range n.Content { // aliases have none: their anchor was seen
		out = appendScalars(out, child, depth)
	}
	return out
}
