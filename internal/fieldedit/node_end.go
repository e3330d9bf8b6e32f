package fieldedit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// The parser tells where a node begins but not where it ends; what follows
// works that out. A wrong answer can't do harm: the edit that is based on it
// doesn't compare equal and is refused.

// nodeEnd is the offset behind a node. indent is that of the mapping or list that
// holds it: lines indented deeper belong to a block scalar.
func (d *document) nodeEnd(n *yaml.Node, indent int) (int, error) {
	at, err := d.nodeOffset(n)
	if err != nil {
		return 0, newRefusal(n.Line, "its position can't be found: %v", err)
	}
	at = d.skipProperties(at)
	switch {
	case n.Kind == yaml.AliasNode:
		return at + 1 + len(n.Value), nil
	case n.Kind == yaml.ScalarNode:
		return d.scalarEnd(n, at, indent), nil
	case n.Style&yaml.FlowStyle != 0:
		return d.flowEnd(n)
	case len(n.Content) == 0:
		return at, nil
	}
	own := n.Column - 1
	if n.Kind == yaml.MappingNode {
		own = d.indentOf(n)
	}
	return d.nodeEnd(n.Content[len(n.Content)-1], own)
}

// indentOf is how far the keys of a block mapping are indented. The first may
// be written behind a question mark.
func (d *document) indentOf(m *yaml.Node) int {
	first := m.Content[0]
	at, err := d.nodeOffset(first)
	if err != nil {
		return first.Column - 1
	}
	start, _ := d.lineBounds(at)
	lead := bytes.TrimRight(d.data[start:at], " \t")
	if len(lead) > 0 && lead[len(lead)-1] == '?' {
		return first.Column - 1 - utf8.RuneCount(d.data[start+len(lead)-1:at])
	}
	return first.Column - 1
}

func (d *document) scalarEnd(n *yaml.Node, at, indent int) int {
	rest := d.data[at:]
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return at + max(0, quotedEnd(rest, '"'))
	case n.Style&yaml.SingleQuotedStyle != 0:
		return at + max(0, quotedEnd(rest, '\''))
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && bytes.HasPrefix(rest, []byte(n.Value)):
		return at + len(n.Value)
	}
	// A block scalar or a plain one over several lines: as far as the lines
	// are indented deeper.
	_, end := d.lineBounds(at)
	for next := end; next < len(d.data); {
		next += d.breakAt(next)
		_, stop := d.lineBounds(next)
		line := string(d.data[next:stop])
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" {
			if len(line)-len(text) <= indent {
				break
			}
			end = stop
		}
		next = stop
	}
	return end
}

// flowEnd is the offset behind the closing bracket.
func (d *document) flowEnd(n *yaml.Node) (int, error) {
	at, err := d.findOpeningBracket(n)
	if err != nil {
		return 0, err
	}
	at++
	if len(n.Content) > 0 {
		if at, err = d.nodeEnd(n.Content[len(n.Content)-1], 0); err != nil {
			return 0, err
		}
	}
	closer := byte('}')
	if n.Kind == yaml.SequenceNode {
		closer = ']'
	}
	for ; at < len(d.data); at++ {
		switch c := d.data[at]; {
		case c == closer:
			return at + 1, nil
		case c == '#':
			_, at = d.lineBounds(at)
			at--
		case strings.IndexByte(",: \t\r\n", c) < 0:
			return 0, newRefusal(n.Line, "the end of the list or mapping can't be found: edit it by hand")
		}
	}
	return 0, newRefusal(n.Line, "the end of the list or mapping can't be found: edit it by hand")
}

// findOpeningBracket is the offset of a flow collection's opening bracket.
func (d *document) findOpeningBracket(n *yaml.Node) (int, error) {
	at, err := d.nodeOffset(n)
	if err == nil {
		at = d.skipProperties(at)
		if at < len(d.data) && (d.data[at] == '{' || d.data[at] == '[') {
			return at, nil
		}
	}
	return 0, newRefusal(n.Line, "the start of the list or mapping can't be found: edit it by hand")
}

// skipProperties steps over anchors and tags.
func (d *document) skipProperties(at int) int {
	if d.format == formatJSON {
		return at
	}
	for at < len(d.data) && (d.data[at] == '&' || d.data[at] == '!') {
		for at < len(d.data) && !strings.ContainsRune(" \t\r\n", rune(d.data[at])) {
			at++
		}
		for at < len(d.data) && strings.ContainsRune(" \t\r\n", rune(d.data[at])) {
			at++
		}
	}
	return at
}
