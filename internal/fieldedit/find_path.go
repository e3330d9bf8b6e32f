package fieldedit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// nodeLookup is where a path leads in one document.
type nodeLookup struct {
	node        *yaml.Node          // the value; nil where it is absent
	parent      *yaml.Node          // the mapping or list that holds it or, where it is absent, the deepest that exists
	rest        []fieldpath.Segment // the segments from parent on that don't exist; empty where node is set
	depth       int                 // how many segments lead to parent
	flow        bool                // parent is written in flow style
	inEntry     bool                // for an image: parent is its entry
	otherImages string              // for an image without an entry: which there are

	// uneditable says why the value, though read surely, can't be edited:
	// an alias or an anchor on the way would carry the change elsewhere.
	uneditable error
	mismatch   error // absent, and can't be added: what is in the way
}

// findPath follows a path through the file's documents. It is absent, with
// node nil, or in exactly one; anything less sure is a refusal.
func (d *document) findPath(p fieldpath.Path) (nodeLookup, error) {
	if d.picksDocument(p.Segments()) {
		return d.findInPickedDocument(p)
	}
	var hits, misses []nodeLookup
	for _, root := range d.roots {
		s, err := walkPath(root, p, 0)
		if err != nil {
			return nodeLookup{}, err
		}
		if s.node != nil {
			hits = append(hits, s)
		} else {
			misses = append(misses, s)
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return nodeLookup{}, newRefusal(hits[1].node.Line, "it is in several documents of the file (also on line %d): name the document, "+
			"as in [metadata.name=web].%s",
			hits[0].node.Line, p)
	case len(misses) == 1:
		return misses[0], nil
	case len(misses) == 0:
		return nodeLookup{mismatch: newRefusal(0, "the file is empty")}, nil
	}
	return nodeLookup{mismatch: newRefusal(0, "the file has %d documents and none has it: name the document, as in [metadata.name=web].%s",
		len(misses), p)}, nil
}

// picksDocument says that a path starts by naming one of the file's documents. It does so with a
// bracket, unless that is an item of the list that the only one is.
func (d *document) picksDocument(segs []fieldpath.Segment) bool {
	if d.format == formatJSON || len(segs) == 0 || len(d.roots) == 0 {
		return false
	}
	switch segs[0].Kind {
	case fieldpath.Index, fieldpath.Match, fieldpath.Each:
		return len(d.roots) > 1 || d.roots[0].Kind != yaml.SequenceNode
	}
	return false
}

// findInPickedDocument follows a path whose first segment names the document.
func (d *document) findInPickedDocument(p fieldpath.Path) (nodeLookup, error) {
	stream := &yaml.Node{Kind: yaml.SequenceNode, Content: d.roots, Line: 1}
	root, err := findChild(stream, p.Segments()[0])
	if err != nil {
		return nodeLookup{}, err
	}
	if root == nil {
		seg := p.Segments()[0]
		if seg.Kind == fieldpath.Match {
			return nodeLookup{mismatch: newRefusal(0, "no document of the file has %s%s", describeConditions(seg),
				describeItems(stream, seg))}, nil
		}
		return nodeLookup{mismatch: newRefusal(0, "the file has only %d documents, so there is no %s", len(d.roots), p.UpTo(1))}, nil
	}
	return walkPath(root, p, 1)
}

// walkPath follows a path's segments from the given one on.
func walkPath(root *yaml.Node, p fieldpath.Path, from int) (nodeLookup, error) {
	s := nodeLookup{}
	cur := root
	segs := p.Segments()
	for i := from; i < len(segs); i++ {
		cur = s.followAlias(cur)
		if cur.Kind == yaml.MappingNode || cur.Kind == yaml.SequenceNode {
			s.parent, s.depth, s.flow = cur, i, cur.Style&yaml.FlowStyle != 0
		}
		next, err := findChild(cur, segs[i])
		if err != nil {
			return nodeLookup{}, err
		}
		if next == nil {
			s.rest = segs[i:]
			s.mismatch = s.explainMismatch(cur, p, i)
			return s, nil
		}
		cur = next
	}
	if cur.Kind == yaml.AliasNode {
		s.followAlias(cur)
	}
	s.node = cur
	return s, nil
}

// followAlias follows an alias and notes what forbids edits from here on down.
func (nl *nodeLookup) followAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		nl.markUneditable(n.Line, "it is reached through the alias *%s, which others may share: write the value out here", n.Value)
		n = n.Alias
	}
	if n.Anchor != "" {
		nl.markUneditable(n.Line, "it is under the anchor &%s, so that its aliases would change too: edit it by hand", n.Anchor)
	}
	return n
}

func (nl *nodeLookup) markUneditable(line int, format string, args ...any) {
	if nl.uneditable == nil {
		nl.uneditable = newRefusal(line, format, args...)
	}
}

// resolveAlias is what an alias stands for, and any other node itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// findChild is the child that a segment names; nil where there is none.
func findChild(n *yaml.Node, seg fieldpath.Segment) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.MappingNode:
		if seg.Kind != fieldpath.Key && seg.Kind != fieldpath.Token {
			return nil, nil
		}
		return lookupKey(n, seg.Key)
	case yaml.SequenceNode:
		switch seg.Kind {
		case fieldpath.Index:
			if seg.Index < len(n.Content) {
				return n.Content[seg.Index], nil
			}
		case fieldpath.Token:
			if i, err := strconv.Atoi(seg.Key); err == nil && i >= 0 && strconv.Itoa(i) == seg.Key && i < len(n.Content) {
				return n.Content[i], nil
			}
		case fieldpath.Match:
			return findMatchingItem(n, seg)
		}
	}
	return nil, nil
}

// lookupKey finds a mapping's value. A merge key beside it, or the key twice,
// means different things to different readers.
func lookupKey(m *yaml.Node, key string) (*yaml.Node, error) {
	var found, by *yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k.Tag == "!!merge" {
			return nil, newRefusal(k.Line, "a merge key (<<) is on the way, and readers disagree about what it overrides: write the "+
				"values out")
		}
		if k.Kind == yaml.AliasNode {
			return nil, newRefusal(k.Line, "a key on the way is an alias (*%s): write the key out", k.Value)
		}
		if k.Kind == yaml.ScalarNode && k.Style == 0 && strings.HasSuffix(k.Value, ":") {
			return nil, newRefusal(k.Line, "the key %q ends in a colon, and readers disagree whether it is a key of its own: add a space "+
				"behind the colon", k.Value)
		}
		if k.Kind != yaml.ScalarNode || k.Value != key {
			continue
		}
		if found != nil {
			return nil, newRefusal(k.Line, "the key %q is there twice (also on line %d): remove one", key, found.Line)
		}
		found, by = m.Content[i+1], k
	}
	return found, checkDistinctKey(m, by)
}

// checkDistinctKey refuses a key that readers of YAML 1.1 take for the same as another
// one of the mapping, such as on and yes, or 1 and 0x1.
func checkDistinctKey(m, key *yaml.Node) error {
	if key == nil || key.Style != 0 || classifyYAML11(key.Value) == classString {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k != key && k.Kind == yaml.ScalarNode && k.Style == 0 && canonicalYAML11(k.Value) == canonicalYAML11(key.Value) {
			return newRefusal(k.Line, "the keys %q and %q (on line %d) are the same to some readers: quote them or remove one", k.Value,
				key.Value, key.Line)
		}
	}
	return nil
}

// findScalar is the scalar to which keys lead from an item of a list; nil where
// there is none.
func findScalar(item *yaml.Node, keys []string) (*yaml.Node, error) {
	n := item
	for _, key := range keys {
		n = resolveAlias(n)
		if n.Kind != yaml.MappingNode {
			return nil, nil
		}
		v, err := lookupKey(n, key)
		if err != nil || v == nil {
			return nil, err
		}
		n = v
	}
	n = resolveAlias(n)
	if n.Kind != yaml.ScalarNode {
		return nil, nil
	}
	return n, nil
}

// meetsConditions says that conditions hold of an item.
func meetsConditions(item *yaml.Node, all []fieldpath.Condition) (bool, error) {
	for _, c := range all {
		v, err := findScalar(item, c.KeyPath)
		if err != nil || v == nil || v.Value != c.Value {
			return false, err
		}
	}
	return true, nil
}

// describeConditions are those of a selection, for messages.
func describeConditions(seg fieldpath.Segment) string {
	return joinTexts(seg.Conditions(), " and ", func(c fieldpath.Condition) string { return strings.Join(c.KeyPath, ".") + "=" + c.Value })
}

// findMatchingItem finds the one item of a list in which keys have the values.
func findMatchingItem(l *yaml.Node, seg fieldpath.Segment) (*yaml.Node, error) {
	var found *yaml.Node
	for _, item := range l.Content {
		ok, err := meetsConditions(item, seg.Conditions())
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if found != nil {
			return nil, newRefusal(item.Line, "two items have %s (also on line %d): pick it by another key, or remove one",
				describeConditions(seg), found.Line)
		}
		found = item
	}
	return found, nil
}

// explainMismatch says why what is missing below cur at segment i can't simply be
// added as keys; nil when it can.
func (nl *nodeLookup) explainMismatch(cur *yaml.Node, p fieldpath.Path, i int) error {
	at, what := p.UpTo(i), kindName(cur)
	seg := p.Segments()[i]
	switch {
	case cur.Kind == yaml.ScalarNode || cur.Kind == yaml.AliasNode:
		return newRefusal(cur.Line, "%s is %s, so there is no %s in it", at, what, p.UpTo(i+1))
	case cur.Kind == yaml.SequenceNode && seg.Kind == fieldpath.Key:
		return newRefusal(cur.Line, "%s is a list: pick an item as %s[0] or %s[key=value] instead of %q", at, at, at, seg.Key)
	case cur.Kind == yaml.SequenceNode && seg.Kind == fieldpath.Match:
		return newRefusal(cur.Line, "no item of %s has %s%s", at, describeConditions(seg), describeItems(cur, seg))
	case cur.Kind == yaml.SequenceNode:
		return newRefusal(cur.Line, "%s has only %d items, so there is no %s", at, len(cur.Content), p.UpTo(i+1))
	case seg.Kind == fieldpath.Index || seg.Kind == fieldpath.Match:
		return newRefusal(cur.Line, "%s is a mapping, not a list, so there is no %s", at, p.UpTo(i+1))
	}
	for j, r := range p.Segments()[i:] {
		if r.Kind == fieldpath.Index || r.Kind == fieldpath.Match {
			return newRefusal(cur.Line, "there is no %s: add the list by hand", p.UpTo(i+j))
		}
	}
	return nil
}

// describeItems lists what the items of a list have, at most five, to help with a typo.
func describeItems(l *yaml.Node, seg fieldpath.Segment) string {
	var have []string
	for _, item := range l.Content {
		var values []string
		for _, c := range seg.Conditions() {
			if v, err := findScalar(item, c.KeyPath); err == nil && v != nil {
				values = append(values, v.Value)
			}
		}
		if value := strings.Join(values, " and "); len(values) == len(seg.Conditions()) && !slices.Contains(have, value) {
			if len(have) == 5 {
				have = append(have, "…")
				break
			}
			have = append(have, value)
		}
	}
	if len(have) == 0 {
		return ""
	}
	return fmt.Sprintf("; there are %s", strings.Join(have, ", "))
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if scalarType(n) == TypeNull {
		return "empty"
	}
	return "a scalar"
}

// requireScalar is the scalar that a node is, its alias followed.
func requireScalar(n *yaml.Node) (*yaml.Node, error) {
	at := n
	n = resolveAlias(n)
	if n.Kind != yaml.ScalarNode {
		return nil, newRefusal(at.Line, "it is %s, not a single value", kindName(n))
	}
	return n, nil
}
