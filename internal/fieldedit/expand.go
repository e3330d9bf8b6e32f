package fieldedit

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
	"github.com/liftlock/liftlock/internal/pipeline/placeholder"
)

// Bounds of what one pattern may pick in one file, and of the work for it:
// aliases let a small file look like an endless one.
const (
	maxPicked = 2000
	maxSteps  = 200_000
)

// identityKeys are the keys that tell an item of a list apart from its siblings, wherever in the
// list it stands. The first one that the item has counts. They are the names that Kubernetes, Helm
// and Argo CD give their items. A chart's dependencies have alias and name, an Application's
// sources have ref, chart and path, and a list generator's elements have cluster, server and url.
var identityKeys = [][]string{{"alias"}, {"name"}, {"key"}, {"id"}, {"ref"}, {"chart"}, {"path"}, {"cluster"}, {"server"}, {"url"},
	{"metadata", "name"}}

// expandedPath is one address that a template picks, and its place: the same in
// every environment.
type expandedPath struct{ path, placeholderPath fieldpath.Path }

// expansion collects the paths that a template picks.
type expansion struct {
	matchesAll []bool // by segment: it is a selection with a placeholder, which picks every item that it fits
	paths      []fieldpath.Path
	steps      int
}

// expandTemplate lists what a template picks in the document, in its order. An item of
// a list that holds mappings is addressed by its identity, one of another list
// by its place. Items that can't be told apart are refused. A template without
// wildcards has an address also where it leads to nothing yet.
func (d *document) expandTemplate(t pathTemplate) ([]expandedPath, error) {
	if one, ok := t.path.Path(); ok && !t.hasPlaceholders() {
		return []expandedPath{{one, one}}, nil
	}
	e := &expansion{}
	segs := t.filled.Segments()
	for i, s := range segs {
		e.matchesAll = append(e.matchesAll, s.Kind == fieldpath.Match && !s.Equal(t.path.Segments()[i]))
	}
	roots := d.roots
	if d.picksDocument(segs) {
		roots = []*yaml.Node{{Kind: yaml.SequenceNode, Content: d.roots, Line: 1}}
	}
	for _, root := range roots {
		if err := e.expandFrom(root, segs, nil); err != nil {
			return nil, err
		}
	}
	if one, ok := t.filled.Path(); ok && len(e.paths) == 0 {
		e.paths = append(e.paths, one)
	}
	return t.restorePlaceholders(slices.CompactFunc(e.paths, func(a, b fieldpath.Path) bool { return a.String() == b.String() }))
}

// restorePlaceholders puts a template's placeholders back into what it picked.
func (p pathTemplate) restorePlaceholders(paths []fieldpath.Path) ([]expandedPath, error) {
	var out []expandedPath
	for _, at := range paths {
		var segs []fieldpath.Segment
		for i, s := range at.Segments() {
			switch own := p.path.Segments()[i]; {
			case own.Equal(p.filled.Segments()[i]):
				if p.hasPlaceholders() && (placeholder.IsIn(s.Key) || placeholder.IsIn(s.Value)) {
					return nil, newRefusal(0, "%s has {{, which would be taken for a placeholder: name it otherwise", at.UpTo(i+1))
				}
			case own.Kind == fieldpath.Each:
				if placeholder.IsIn(s.Value) {
					return nil, newRefusal(0, "%s has {{, which would be taken for a placeholder: name it otherwise", at.UpTo(i+1))
				}
				s.And = own.And
			default:
				s = own
			}
			segs = append(segs, s)
		}
		out = append(out, expandedPath{at, fieldpath.New(segs...)})
	}
	return out, nil
}

// expandFrom adds what segs pick below n; prefix is how n is reached.
func (e *expansion) expandFrom(n *yaml.Node, segs, prefix []fieldpath.Segment) error {
	if e.steps++; e.steps > maxSteps {
		return newRefusal(n.Line, "the wildcard takes more than %d steps through the file: narrow it", maxSteps)
	}
	n = resolveAlias(n)
	if len(segs) == 0 {
		return e.addPath(n, prefix)
	}
	seg, rest := segs[0], segs[1:]
	switch {
	case seg.Kind == fieldpath.Any && n.Kind == yaml.MappingNode:
		return e.expandKeys(n, rest, prefix)
	case (seg.Kind == fieldpath.Any || seg.Kind == fieldpath.Each) && n.Kind == yaml.SequenceNode:
		return e.expandItems(n, seg, rest, prefix)
	case seg.Kind == fieldpath.Any || seg.Kind == fieldpath.Each:
		return nil
	case e.matchesAll[len(prefix)] && n.Kind == yaml.SequenceNode:
		return e.expandSelected(n, seg, rest, prefix)
	}
	next, err := findChild(n, seg)
	switch {
	case err != nil:
		return err
	case next != nil:
		return e.expandFrom(next, rest, appendSegment(prefix, seg))
	case !slices.Contains(e.matchesAll[:len(prefix)], true) || slices.ContainsFunc(segs, isWildcard):
		return nil
	}
	return e.addPath(n, append(slices.Clip(prefix), segs...)) // beside items that may have it
}

func isWildcard(s fieldpath.Segment) bool { return s.Kind == fieldpath.Any || s.Kind == fieldpath.Each }

func (e *expansion) addPath(n *yaml.Node, path []fieldpath.Segment) error {
	if len(e.paths) == maxPicked {
		return newRefusal(n.Line, "the wildcard picks more than %d values: narrow it", maxPicked)
	}
	e.paths = append(e.paths, fieldpath.New(path...))
	return nil
}

// expandSelected adds what segs pick in every item that a selection fits. Where those are
// several, each is addressed by its identity as well.
func (e *expansion) expandSelected(l *yaml.Node, seg fieldpath.Segment, rest, prefix []fieldpath.Segment) error {
	var fitting []*yaml.Node
	for _, item := range l.Content {
		ok, err := meetsConditions(item, seg.Conditions())
		if err != nil {
			return err
		}
		if ok {
			fitting = append(fitting, item)
		}
	}
	lines := map[string]int{}
	for _, item := range fitting {
		own := seg
		if len(fitting) > 1 {
			id, ok, err := findIdentity(item, rest, func(keys []string) bool {
				return slices.ContainsFunc(seg.Conditions(), func(c fieldpath.Condition) bool { return slices.Equal(c.KeyPath, keys) })
			})
			if err != nil {
				return err
			}
			if ok {
				own.And = append(slices.Clip(seg.And), id)
			}
		}
		name := fieldpath.New(own).String()
		if line, twice := lines[name]; twice {
			return newRefusal(item.Line, "two items have %s (the other is on line %d) and nothing that tells them apart: give each a "+
				"name, or pick them by more, as in [env=qa,cluster=eu]", name, line)
		}
		lines[name] = item.Line
		if err := e.expandFrom(item, rest, appendSegment(prefix, own)); err != nil {
			return err
		}
	}
	return nil
}

// appendSegment is prefix and one segment, in memory of its own.
func appendSegment(prefix []fieldpath.Segment, seg fieldpath.Segment) []fieldpath.Segment {
	return append(slices.Clip(prefix), seg)
}

func (e *expansion) expandKeys(m *yaml.Node, rest, prefix []fieldpath.Segment) error {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k := m.Content[i]; k.Kind == yaml.ScalarNode || k.Kind == yaml.AliasNode {
			v, err := lookupKey(m, k.Value)
			if err != nil {
				return err
			}
			if err := e.expandFrom(v, rest, appendSegment(prefix, fieldpath.Segment{Kind: fieldpath.Key, Key: k.Value})); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *expansion) expandItems(l *yaml.Node, seg fieldpath.Segment, rest, prefix []fieldpath.Segment) error {
	lines := map[string]int{} // of the items, by their identity
	for i, item := range l.Content {
		if ok, err := meetsConditions(item, seg.Conditions()); err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		before := len(e.paths)
		at := appendSegment(prefix, fieldpath.Segment{Kind: fieldpath.Index, Index: i})
		if err := e.expandFrom(item, rest, at); err != nil {
			return err
		}
		if len(e.paths) == before {
			continue // nothing is picked in it, so it needs no name
		}
		id, err := identifyItem(item, seg, rest)
		if err != nil {
			return err
		}
		if id.Kind == fieldpath.Index {
			if seg.Kind == fieldpath.Each {
				return newRefusal(item.Line, "the item has no %s to tell it apart from the others", strings.Join(seg.KeyPath, "."))
			}
			continue
		}
		name := fieldpath.New(id).String()
		if line, twice := lines[name]; twice {
			return newRefusal(item.Line, "two items of the list are %s (the other is on line %d), so a wildcard can't tell them apart: "+
				"pick them by another key, as in [KEY=*]", name, line)
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

// identifyItem is the segment that names an item wherever it stands; its place where the item isn't
// a mapping. Keys that the pattern sets can't identify it.
func identifyItem(item *yaml.Node, seg fieldpath.Segment, rest []fieldpath.Segment) (fieldpath.Segment, error) {
	n := resolveAlias(item)
	place := fieldpath.Segment{Kind: fieldpath.Index}
	if seg.Kind == fieldpath.Each {
		v, err := findScalar(n, seg.KeyPath)
		if err != nil || v == nil {
			return place, err
		}
		if scalarType(v) == TypeNull || v.Value == "" || setsKey(rest, seg.KeyPath) {
			return place, nil
		}
		return fieldpath.Segment{Kind: fieldpath.Match, KeyPath: seg.KeyPath, Value: v.Value, And: seg.And}, nil
	}
	if n.Kind != yaml.MappingNode {
		return place, nil
	}
	id, ok, err := findIdentity(n, rest, func([]string) bool { return false })
	switch {
	case err != nil:
		return place, err
	case !ok:
		return place, newRefusal(item.Line, "the item has no name by which a wildcard could tell it apart from the others: pick it by a "+
			"key that it has, as in [KEY=*], or by its place, as in [0]")
	}
	return fieldpath.Segment{Kind: fieldpath.Match, KeyPath: id.KeyPath, Value: id.Value}, nil
}

// findIdentity is the first of the identities that an item has, but for skipped ones and those that
// the pattern sets. ok is false where it has none.
func findIdentity(n *yaml.Node, rest []fieldpath.Segment, over func(keys []string) bool) (id fieldpath.Condition, ok bool, err error) {
	for _, keys := range identityKeys {
		if over(keys) || setsKey(rest, keys) {
			continue
		}
		v, err := findScalar(n, keys)
		if err != nil {
			return id, false, err
		}
		if v != nil && scalarType(v) != TypeNull && v.Value != "" {
			return fieldpath.Condition{KeyPath: keys, Value: v.Value}, true, nil
		}
	}
	return id, false, nil
}

// setsKey says that a pattern sets the very value to which keys lead.
func setsKey(rest []fieldpath.Segment, keys []string) bool {
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
