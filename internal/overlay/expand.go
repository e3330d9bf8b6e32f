package overlay

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/fieldpath"
)

// Bounds of what one pattern may pick in one file, and of the work for it:
// aliases let a small file look like an endless one.
const (
	maxPicked = 2000
	maxSteps  = 200_000
)

// identities are the keys by which an item of a list is told apart from its
// siblings, wherever in the list it stands; the first one that the item has
// counts. They are the names that Kubernetes, Helm and Argo CD give their
// items: alias and name of a chart's dependencies, ref, chart and path of an
// Application's sources, cluster of a list generator's elements.
var identities = [][]string{{"alias"}, {"name"}, {"key"}, {"id"}, {"ref"}, {"chart"}, {"path"}, {"cluster"}, {"metadata", "name"}}

// expansion collects the paths that a pattern picks.
type expansion struct {
	paths []fieldpath.Path
	steps int
}

// expand lists the paths of what a pattern picks in the document, in its
// order. An item of a list that holds mappings is addressed by its identity,
// one of another list by its place. Items that can't be told apart are refused.
func (d *document) expand(p fieldpath.Pattern) ([]fieldpath.Path, error) {
	if one, ok := p.Path(); ok {
		return []fieldpath.Path{one}, nil
	}
	e := &expansion{}
	segs := p.Segments()
	if d.picksDocument(segs) {
		stream := &yaml.Node{Kind: yaml.SequenceNode, Content: d.roots, Line: 1}
		return e.paths, e.from(stream, segs, nil)
	}
	for _, root := range d.roots {
		if err := e.from(root, segs, nil); err != nil {
			return nil, err
		}
	}
	return slices.CompactFunc(e.paths, func(a, b fieldpath.Path) bool { return a.String() == b.String() }), nil
}

// from adds what segs pick below n; prefix is how n is reached.
func (e *expansion) from(n *yaml.Node, segs, prefix []fieldpath.Segment) error {
	if e.steps++; e.steps > maxSteps {
		return refuse(n.Line, "the wildcard takes more than %d steps through the file: narrow it", maxSteps)
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if len(segs) == 0 {
		if len(e.paths) == maxPicked {
			return refuse(n.Line, "the wildcard picks more than %d values: narrow it", maxPicked)
		}
		e.paths = append(e.paths, fieldpath.New(prefix...))
		return nil
	}
	seg, rest := segs[0], segs[1:]
	switch {
	case seg.Kind == fieldpath.Any && n.Kind == yaml.MappingNode:
		return e.keys(n, rest, prefix)
	case (seg.Kind == fieldpath.Any || seg.Kind == fieldpath.Each) && n.Kind == yaml.SequenceNode:
		return e.items(n, seg, rest, prefix)
	case seg.Kind == fieldpath.Any || seg.Kind == fieldpath.Each:
		return nil
	}
	next, err := step(n, seg)
	if err != nil || next == nil {
		return err
	}
	return e.from(next, rest, extended(prefix, seg))
}

// extended is prefix and one segment, in memory of its own.
func extended(prefix []fieldpath.Segment, seg fieldpath.Segment) []fieldpath.Segment {
	return append(slices.Clip(prefix), seg)
}

func (e *expansion) keys(m *yaml.Node, rest, prefix []fieldpath.Segment) error {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k := m.Content[i]; k.Kind == yaml.ScalarNode || k.Kind == yaml.AliasNode {
			v, err := lookup(m, k.Value)
			if err != nil {
				return err
			}
			if err := e.from(v, rest, extended(prefix, fieldpath.Segment{Kind: fieldpath.Key, Key: k.Value})); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *expansion) items(l *yaml.Node, seg fieldpath.Segment, rest, prefix []fieldpath.Segment) error {
	lines := map[string]int{} // of the items, by their identity
	for i, item := range l.Content {
		before := len(e.paths)
		at := extended(prefix, fieldpath.Segment{Kind: fieldpath.Index, Index: i})
		if err := e.from(item, rest, at); err != nil {
			return err
		}
		if len(e.paths) == before {
			continue // nothing is picked in it, so it needs no name
		}
		id, err := identity(item, seg, rest)
		if err != nil {
			return err
		}
		if id.Kind == fieldpath.Index {
			if seg.Kind == fieldpath.Each {
				return refuse(item.Line, "the item has no %s to tell it apart from the others", strings.Join(seg.In, "."))
			}
			continue
		}
		name := fieldpath.New(id).String()
		if line, twice := lines[name]; twice {
			return refuse(item.Line, "two items of the list are %s (the other is on line %d), so a wildcard can't tell them apart: pick them by another key, as in [KEY=*]", name, line)
		}
		lines[name] = item.Line
		for j := before; j < len(e.paths); j++ {
			segs := slices.Clone(e.paths[j].Segments())
			segs[len(prefix)] = id
			e.paths[j] = fieldpath.New(segs...)
		}
	}
	return nil
}

// identity is the segment that names an item wherever it stands; its place
// where the item isn't a mapping. What the pattern sets can't be what names it.
func identity(item *yaml.Node, seg fieldpath.Segment, rest []fieldpath.Segment) (fieldpath.Segment, error) {
	n := item
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	place := fieldpath.Segment{Kind: fieldpath.Index}
	candidates := identities
	switch {
	case seg.Kind == fieldpath.Each:
		candidates = [][]string{seg.In}
	case n.Kind != yaml.MappingNode:
		return place, nil
	}
	for _, keys := range candidates {
		if sets(rest, keys) {
			continue
		}
		v, err := within(n, keys)
		if err != nil {
			return place, err
		}
		if v != nil && scalarType(v) != TypeNull && v.Value != "" {
			return fieldpath.Segment{Kind: fieldpath.Match, In: keys, Value: v.Value}, nil
		}
	}
	if seg.Kind == fieldpath.Each {
		return place, nil
	}
	return place, refuse(item.Line, "the item has no name by which a wildcard could tell it apart from the others: pick it by a key that it has, as in [KEY=*], or by its place, as in [0]")
}

// sets says that a pattern sets the very value to which keys lead.
func sets(rest []fieldpath.Segment, keys []string) bool {
	if len(rest) != len(keys) {
		return false
	}
	for i, s := range rest {
		if s.Kind != fieldpath.Any && (s.Kind != fieldpath.Key || s.Key != keys[i]) {
			return false
		}
	}
	return true
}
