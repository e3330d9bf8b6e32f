package appset

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// explainYAML says what is wrong with a file's document, by the file's own lines: what the parser
// of a document says counts from that one's beginning.
func explainYAML(file []byte, document int, err error) error {
	reader := yaml.NewDecoder(bytes.NewReader(file))
	for {
		var node yaml.Node
		if wrong := reader.Decode(&node); wrong != nil {
			if strings.HasPrefix(wrong.Error(), "yaml: ") {
				return fmt.Errorf("document %d is not YAML: %w", document, wrong)
			}
			break // the end: it takes what the other parser doesn't
		}
		if first, again := keyTwice(&node); again != nil {
			return fmt.Errorf("document %d is not YAML: the key %q is given twice, in line %d and in line %d", document, again.Value,
				first.Line, again.Line)
		}
	}
	return fmt.Errorf("document %d is not YAML: %w", document, err)
}

// keyTwice finds a key that a mapping has twice; nil where none has.
func keyTwice(node *yaml.Node) (first, again *yaml.Node) {
	if node.Kind == yaml.MappingNode {
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yaml.ScalarNode {
				continue
			}
			if first := seen[key.Tag+key.Value]; first != nil {
				return first, key
			}
			seen[key.Tag+key.Value] = key
		}
	}
	for _, child := range node.Content {
		if first, again := keyTwice(child); again != nil {
			return first, again
		}
	}
	return nil, nil
}
