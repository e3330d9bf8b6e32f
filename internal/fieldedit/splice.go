package fieldedit

import (
	"bytes"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

const quotedStyles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle

// spliceBytes replaces data[start:end] by text, in a copy.
func spliceBytes(data []byte, start, end int, text string) []byte {
	return slices.Concat(data[:start], []byte(text), data[end:])
}

// checkEditable refuses the scalars that can't be replaced surely.
func checkEditable(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return newRefusal(n.Line, "it is the alias *%s: write the value out here", n.Value)
	case n.Kind != yaml.ScalarNode:
		return newRefusal(n.Line, "it is %s, not a single value", kindName(n))
	case n.Anchor != "":
		return newRefusal(n.Line, "it has the anchor &%s, so that its aliases would change too: edit it by hand", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		return newRefusal(n.Line, "it has the tag %s: remove the tag or edit it by hand", n.Tag)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return newRefusal(n.Line, "it is a block scalar (| or >): write it on one line")
	case strings.Contains(n.Value, "{{"):
		return newRefusal(n.Line, "it is a template ({{ … }}), not a value")
	}
	return nil
}

// scalarSpan is where a scalar's own bytes are. For an empty one it is the place
// where a value goes, start = end, right behind its colon or dash.
func (d *document) scalarSpan(n *yaml.Node) (start, end int, err error) {
	start, err = d.nodeOffset(n)
	if err != nil {
		return 0, 0, newRefusal(n.Line, "its position can't be found: %v", err)
	}
	rest := d.data[start:]
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		end = quotedEnd(rest, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		end = quotedEnd(rest, '\'')
	case n.Value == "":
		for start > 0 && (d.data[start-1] == ' ' || d.data[start-1] == '\t') {
			start--
		}
		if start == 0 || d.data[start-1] != ':' && d.data[start-1] != '-' {
			return 0, 0, newRefusal(n.Line, "it has no value to replace: write one")
		}
		return start, start, nil
	case bytes.HasPrefix(rest, []byte(n.Value)):
		end = len(n.Value)
	default:
		end = -1
	}
	if end < 0 {
		return 0, 0, newRefusal(n.Line, "it spans several lines: write it on one")
	}
	for i := start; i < start+end; i++ {
		if d.breakAt(i) > 0 {
			return 0, 0, newRefusal(n.Line, "it spans several lines: write it on one")
		}
	}
	return start, start + end, nil
}

// quotedEnd is the length of the quoted scalar that s starts with, -1 if it
// doesn't start with one.
func quotedEnd(s []byte, q byte) int {
	if len(s) == 0 || s[0] != q {
		return -1
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && q == '"':
			i++
		case s[i] == q && q == '\'' && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return -1
}

// setScalar replaces the scalar that was found by another value.
func (d *document) setScalar(s nodeLookup, value string, asString bool) (*document, error) {
	if s.uneditable != nil {
		return nil, s.uneditable
	}
	n := s.node
	if err := checkEditable(n); err != nil {
		return nil, err
	}
	start, end, err := d.scalarSpan(n)
	if err != nil {
		return nil, err
	}
	var text string
	if d.format == formatJSON {
		text, err = renderJSON(n, value)
	} else {
		text, err = renderYAML(n, value, asString, s.flow)
	}
	if err != nil {
		return nil, newRefusal(n.Line, "%v", err)
	}
	if start == end {
		text = " " + text
	}
	return d.acceptChange(spliceBytes(d.data, start, end, text), replaceScalar(n, value))
}

// acceptChange parses an edited file again and compares it with the document it
// came from: exactly the change may be different.
func (d *document) acceptChange(after []byte, c *treeChange) (*document, error) {
	next, err := parseDocument(after, d.format)
	if err != nil {
		return nil, newRefusal(c.at.Line, "the edit would break the file (%v): edit it by hand", err)
	}
	if !sameTrees(d.roots, next.roots, c) {
		return nil, newRefusal(c.at.Line, "the edit would change more than this value: edit it by hand")
	}
	return next, nil
}

// copyFieldText sets a field to what it is in another document, with the text it has
// there. ok is false where that text can't stand here, or means something else.
func (d *document) copyFieldText(a fieldAddress, other *document) (next *document, c Change, ok bool) {
	from, fromStart, fromEnd, ok := other.findEditable(a)
	if !ok {
		return nil, Change{}, false
	}
	to, start, end, ok := d.findEditable(a)
	if !ok {
		return nil, Change{}, false
	}
	text := string(other.data[fromStart:fromEnd])
	switch {
	case text == "": // the space went in with the value
		for start > 0 && d.data[start-1] == ' ' {
			start--
		}
	case start == end:
		text = " " + text
	}
	next, err := d.acceptChange(spliceBytes(d.data, start, end, text), copyScalar(to, from))
	return next, Change{Kind: a.kind, Path: a.String(), Old: scalarValue(to), New: scalarValue(from), Line: to.Line}, err == nil
}

// findEditable is a field's scalar and where its bytes are; ok is false where it
// isn't there or can't be replaced surely.
func (d *document) findEditable(a fieldAddress) (n *yaml.Node, start, end int, ok bool) {
	s, err := d.findAddress(a)
	if err != nil || s.node == nil || s.uneditable != nil || checkEditable(s.node) != nil {
		return nil, 0, 0, false
	}
	start, end, err = d.scalarSpan(s.node)
	return s.node, start, end, err == nil
}
