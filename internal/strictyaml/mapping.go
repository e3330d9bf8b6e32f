package strictyaml

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// entry is a key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// reporter takes an error about a node; nil where nobody listens.
type reporter func(n *yaml.Node, format string, args ...any)

// entries are a mapping's own entries and then those that merge keys (<<) bring
// and it doesn't have itself. Keys that can't be used and repeated ones are
// reported and left out.
func entries(n *yaml.Node, report reporter) []entry {
	if report == nil {
		report = func(*yaml.Node, string, ...any) {}
	}
	var own []entry
	var merged []*yaml.Node
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			report(n.Content[i], "a key must be plain text")
			continue
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if before, repeated := first[key.Value]; repeated {
			report(n.Content[i], "the key %s is given twice, first in line %d", quoted(key.Value), before.Line)
			continue
		}
		first[key.Value] = n.Content[i]
		own = append(own, entry{key: key, value: value})
	}
	for _, m := range merged {
		for _, source := range mergeSources(m, report) {
			for _, e := range entries(source, report) {
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
	value := resolved(n)
	candidates := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		candidates = value.Content
	}
	var sources []*yaml.Node
	for _, c := range candidates {
		if c = resolved(c); c.Kind != yaml.MappingNode {
			report(n, "<< merges mappings; this is %s", kindOf(c))
			continue
		}
		sources = append(sources, c)
	}
	return sources
}

// quoted shows a key, cut so that a key of a megabyte stays readable.
func quoted(key string) string {
	const most = 80
	if runes := []rune(key); len(runes) > most {
		key = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", key)
}

// kindOf names what a node is, never its value.
func kindOf(n *yaml.Node) string {
	n = resolved(n)
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
