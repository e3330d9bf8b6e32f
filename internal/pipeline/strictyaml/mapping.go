package strictyaml

import (
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/wording"
)

// mappingEntry is a key of a mapping with its value.
type mappingEntry struct{ key, value *yaml.Node }

// reporter takes an error about a node.
type reporter func(n *yaml.Node, format string, args ...any)

// mappingEntries are a mapping's own entries and then those that merge keys (<<) bring
// and it doesn't have itself. Keys that can't be used and repeated ones are
// reported and left out.
func mappingEntries(n *yaml.Node, report reporter) []mappingEntry {
	var own []mappingEntry
	var merged []*yaml.Node
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := followAlias(n.Content[i]), n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			report(n.Content[i], "a key must be plain text")
			continue
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if before, repeated := first[key.Value]; repeated {
			report(n.Content[i], "the key %s is given twice, first in line %d", quoteKey(key.Value), before.Line)
			continue
		}
		first[key.Value] = n.Content[i]
		own = append(own, mappingEntry{key: key, value: value})
	}
	for _, m := range merged {
		for _, source := range mergeSources(m, report) {
			for _, e := range mappingEntries(source, report) {
				if _, has := first[e.key.Value]; !has {
					first[e.key.Value] = e.key
					own = append(own, e)
				}
			}
		}
	}
	return own
}

// mergeSources are the mappings that a merge key names: one, or a list.
func mergeSources(n *yaml.Node, report reporter) []*yaml.Node {
	value := followAlias(n)
	candidates := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		candidates = value.Content
	}
	var sources []*yaml.Node
	for _, c := range candidates {
		if c = followAlias(c); c.Kind != yaml.MappingNode {
			report(n, "<< merges mappings; this is %s", describeKind(c))
			continue
		}
		sources = append(sources, c)
	}
	return sources
}

// quoteKey shows a key, cut so that a key of a megabyte stays readable.
func quoteKey(key string) string {
	return strconv.Quote(wording.ClipRunes(key, 81))
}

// describeKind names what a node is, never its value.
func describeKind(n *yaml.Node) string {
	n = followAlias(n)
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	default:
		return "a value with a tag of its own"
	}
}
