package fieldedit

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"
)

// addition is a new entry: keys nested in each other and, innermost, a value.
type addition struct {
	keys  []string
	value string
	typ   string // of the value; see Field.Type
	after string // the sibling key that it goes behind; empty, or not there: behind the last
}

// insertKey adds the missing segments of a path as keys.
func (d *document) insertKey(s nodeLookup, value, typ, after string) (*document, error) {
	switch {
	case s.uneditable != nil:
		return nil, s.uneditable
	case s.mismatch != nil:
		return nil, s.mismatch
	case s.parent == nil || s.parent.Kind != yaml.MappingNode:
		return nil, newRefusal(0, "there is no mapping to add it to: add it by hand")
	}
	a := addition{value: value, typ: typ, after: after}
	for _, seg := range s.rest {
		a.keys = append(a.keys, seg.Key)
	}
	m := s.parent
	if after == "" {
		a.after = findPrecedingKey(m, a.keys[0])
	}
	index := len(m.Content)
	for i := 0; a.after != "" && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == a.after {
			index = i + 2
		}
	}
	text, err := d.valueText(m, a)
	if err != nil {
		return nil, newRefusal(m.Line, "%v", err)
	}
	key, val := a.expectedNodes()
	c := entryRange{parent: m, index: index, added: []*yaml.Node{key, val}}
	if m.Style&yaml.FlowStyle != 0 {
		return d.insertFlow(c, d.flowEntry(m, a.keys, text))
	}
	return d.insertLines(c, d.blockEntry(m, a.keys, text), d.indentOf(m))
}

// findPrecedingKey is the key behind which a new one goes, so that a mapping in alphabetical order
// stays so. It is empty where the keys aren't in order, where they are too few to tell, and where
// the new one would come first.
func findPrecedingKey(m *yaml.Node, key string) string {
	const telling = 3
	after := ""
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i].Value
		if m.Content[i].Kind != yaml.ScalarNode || i > 0 && m.Content[i-2].Value >= k {
			return ""
		}
		if k < key {
			after = k
		}
	}
	if len(m.Content) < 2*telling {
		return ""
	}
	return after
}

// expectedNodes is what the addition must parse as.
func (a addition) expectedNodes() (key, val *yaml.Node) {
	val = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: a.value}
	switch a.typ {
	case TypeNull:
		val.Tag, val.Value = "!!null", "null"
		if a.value != "" {
			val.Tag, val.Value = "!!str", a.value
		}
	case TypeNumber, TypeBool:
		val.Tag = "" // whatever the text is to the reader
	}
	for i := len(a.keys) - 1; i > 0; i-- {
		val = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{stringNode(a.keys[i]), val}}
	}
	return stringNode(a.keys[0]), val
}

func stringNode(v string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
}

func quotesKeys(m *yaml.Node) bool {
	return len(m.Content) > 0 && m.Content[0].Style&yaml.DoubleQuotedStyle != 0
}

func (d *document) valueText(m *yaml.Node, a addition) (string, error) {
	if d.format == formatJSON {
		return renderNewJSON(a.value, a.typ)
	}
	return renderNewYAML(a.value, a.typ, m.Style&yaml.FlowStyle != 0, quotesKeys(m))
}

func (d *document) keyText(key string, flow, quoted bool) string {
	if d.format == formatJSON || quoted || !plainString(key, flow) {
		return doubleQuoted(key)
	}
	return key
}

// flowEntry is "key: value", or "key: {inner: value}".
func (d *document) flowEntry(m *yaml.Node, keys []string, text string) string {
	colon := ": "
	if d.format == formatJSON && len(m.Content) > 1 {
		colon = d.keySeparator(m.Content[0], m.Content[1], colon)
	}
	quoted := quotesKeys(m)
	entry := text
	for i := len(keys) - 1; i >= 0; i-- {
		entry = d.keyText(keys[i], true, quoted) + colon + entry
		if i > 0 {
			entry = "{" + entry + "}"
		}
	}
	return entry
}

// blockEntry is the entry's lines, not yet indented.
func (d *document) blockEntry(m *yaml.Node, keys []string, text string) []string {
	var lines []string
	indent := ""
	quoted := quotesKeys(m)
	for i, k := range keys {
		line := indent + d.keyText(k, false, quoted) + ":"
		if i == len(keys)-1 {
			line += " " + text
		}
		lines = append(lines, line)
		indent += strings.Repeat(" ", d.indentStep())
	}
	return lines
}

// indentStep is how far the file indents a mapping in a mapping; 2 where it
// has none.
func (d *document) indentStep() int {
	for _, root := range d.roots {
		if root.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(root.Content); i += 2 {
			v := root.Content[i+1]
			if v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 && len(v.Content) > 0 {
				if step := v.Content[0].Column - root.Content[i].Column; step > 0 {
					return step
				}
			}
		}
	}
	return 2
}

// keySeparator is the text that separates a key and its value, such as ":" or ": ".
func (d *document) keySeparator(key, val *yaml.Node, otherwise string) string {
	_, end, err := d.scalarSpan(key)
	if err != nil {
		return otherwise
	}
	start, err := d.nodeOffset(val)
	if err != nil || start < end || bytes.ContainsAny(d.data[end:start], "\r\n") {
		return otherwise
	}
	return string(d.data[end:start])
}

// insertLines puts lines, indented, behind the line on which the node before
// the new ones ends.
func (d *document) insertLines(c entryRange, lines []string, indent int) (*document, error) {
	end, err := d.nodeEnd(c.parent.Content[c.index-1], indent)
	if err != nil {
		return nil, err
	}
	_, at := d.lineBounds(end)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(d.lineBreak() + strings.Repeat(" ", indent) + l)
	}
	return d.acceptChange(spliceBytes(d.data, at, at, b.String()), c.treeChange())
}

// insertFlow puts an entry behind the node before the new ones, on a line of
// its own where that one's entry is.
func (d *document) insertFlow(c entryRange, entry string) (*document, error) {
	if c.index == 0 {
		at, err := d.findOpeningBracket(c.parent)
		if err != nil {
			return nil, err
		}
		return d.acceptChange(spliceBytes(d.data, at+1, at+1, entry), c.treeChange())
	}
	at, err := d.nodeEnd(c.parent.Content[c.index-1], 0)
	if err != nil {
		return nil, err
	}
	first := c.parent.Content[c.index-1]
	if c.parent.Kind == yaml.MappingNode {
		first = c.parent.Content[c.index-2]
	}
	begin, err := d.nodeOffset(first)
	if err != nil {
		return nil, newRefusal(first.Line, "its position can't be found: %v", err)
	}
	lineStart, _ := d.lineBounds(begin)
	sep := ", "
	if lead := d.data[lineStart:begin]; len(bytes.TrimSpace(lead)) == 0 && first.Line > c.parent.Line {
		sep = "," + d.lineBreak() + string(lead)
	} else if d.format == formatJSON && !strings.Contains(entry, ": ") {
		sep = ","
	}
	return d.acceptChange(spliceBytes(d.data, at, at, sep+entry), c.treeChange())
}
