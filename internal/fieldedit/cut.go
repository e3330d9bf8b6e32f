package fieldedit

import (
	"bytes"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// firstMissing is as much of a path as leads to the first thing on it that the
// document doesn't have.
func (d *document) firstMissing(p fieldpath.Path) (fieldpath.Path, error) {
	s, err := d.findPath(p)
	if err != nil {
		return fieldpath.Path{}, err
	}
	segs := p.Segments()
	if s.node != nil || len(s.rest) == 0 {
		return fieldpath.Path{}, newRefusal(0, "what the promotion added for it can't be told: remove it by hand")
	}
	return fieldpath.New(segs[:len(segs)-len(s.rest)+1]...), nil
}

// cutEntry takes the entry that was found out of the mapping or list that holds it. It does so only
// where the entry has its lines, or its place between two commas, to itself.
func (d *document) cutEntry(s nodeLookup) (*document, error) {
	m := s.parent
	if s.uneditable != nil {
		return nil, s.uneditable
	}
	at := -1
	if m != nil {
		at = slices.Index(m.Content, s.node)
	}
	if at < 0 {
		return nil, newRefusal(s.node.Line, "what holds it can't be found: remove it by hand")
	}
	c := entryRange{parent: m, index: at, n: 1}
	if m.Kind == yaml.MappingNode {
		c.index, c.n = at-1, 2
	}
	if m.Style&yaml.FlowStyle != 0 {
		return d.cutFlow(c)
	}
	return d.cutLines(c)
}

// cutLines removes the lines of an entry, with the break before them: what
// insertLines put there.
func (d *document) cutLines(c entryRange) (*document, error) {
	first := c.parent.Content[c.index]
	begin, err := d.nodeOffset(first)
	if err != nil {
		return nil, newRefusal(first.Line, "its position can't be found: %v", err)
	}
	start, _ := d.lineBounds(begin)
	end, err := d.nodeEnd(c.parent.Content[c.index+c.n-1], c.parent.Column-1)
	if err != nil {
		return nil, err
	}
	_, stop := d.lineBounds(end)
	lead := bytes.TrimLeft(d.data[start:begin], " ")
	if c.n == 1 {
		lead = bytes.TrimSpace(bytes.TrimPrefix(lead, []byte("-")))
	}
	if len(lead) > 0 || len(bytes.TrimSpace(d.data[end:stop])) > 0 {
		return nil, newRefusal(first.Line, "it shares its line: remove it by hand")
	}
	from := start
	for n := 1; n <= 3 && n <= start; n++ { // the break before it; the longest of several readings
		if d.breakAt(start-n) == n {
			from = start - n
		}
	}
	return d.acceptChange(spliceBytes(d.data, from, stop, ""), c.treeChange())
}

// cutFlow removes an entry with the comma before it or, where it is the first,
// behind it.
func (d *document) cutFlow(c entryRange) (*document, error) {
	start, err := d.nodeOffset(c.parent.Content[c.index])
	if err != nil {
		return nil, newRefusal(c.parent.Line, "its position can't be found: %v", err)
	}
	end, err := d.nodeEnd(c.parent.Content[c.index+c.n-1], 0)
	if err != nil {
		return nil, err
	}
	switch next := c.index + c.n; {
	case c.index > 0:
		if start, err = d.nodeEnd(c.parent.Content[c.index-1], 0); err != nil {
			return nil, err
		}
	case next < len(c.parent.Content):
		if end, err = d.nodeOffset(c.parent.Content[next]); err != nil {
			return nil, newRefusal(c.parent.Line, "its position can't be found: %v", err)
		}
	}
	return d.acceptChange(spliceBytes(d.data, start, end, ""), c.treeChange())
}
