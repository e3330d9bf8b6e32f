package overlay

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// spot is where a path leads in one document.
type spot struct {
	node   *yaml.Node // the value; nil where it is absent
	parent *yaml.Node // the mapping or list that holds it or, where it is absent, the deepest that exists
	rest   []segment  // the segments from parent on that don't exist; empty where node is set
	depth  int        // how many segments lead to parent
	flow   bool       // parent is written in flow style
	entry  bool       // for an image: parent is its entry
	others string     // for an image without an entry: which there are

	// uneditable says why the value, though read surely, can't be edited:
	// an alias or an anchor on the way would carry the change elsewhere.
	uneditable error
	mismatch   error // absent, and can't be added: what is in the way
}

// find follows a path through every document of the file. It is absent, with
// spot.node nil, or in exactly one; anything less sure is a refusal.
func (d *document) find(p Path) (spot, error) {
	var hits, misses []spot
	for _, root := range d.roots {
		s, err := walk(root, p)
		if err != nil {
			return spot{}, err
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
		return spot{}, refuse(hits[1].node.Line, "it is in several documents of the file (also on line %d): split the file", hits[0].node.Line)
	case len(misses) == 1:
		return misses[0], nil
	case len(misses) == 0:
		return spot{mismatch: refuse(0, "the file is empty")}, nil
	}
	return spot{mismatch: refuse(0, "the file has %d documents and none has it: add it where it belongs", len(misses))}, nil
}

func walk(root *yaml.Node, p Path) (spot, error) {
	s := spot{}
	cur := root
	for i, seg := range p.segs {
		cur = s.enter(cur)
		if cur.Kind == yaml.MappingNode || cur.Kind == yaml.SequenceNode {
			s.parent, s.depth, s.flow = cur, i, cur.Style&yaml.FlowStyle != 0
		}
		next, err := step(cur, seg)
		if err != nil {
			return spot{}, err
		}
		if next == nil {
			s.rest = p.segs[i:]
			s.mismatch = s.obstacle(cur, p, i)
			return s, nil
		}
		cur = next
	}
	if cur.Kind == yaml.AliasNode {
		s.enter(cur)
	}
	s.node = cur
	return s, nil
}

// enter follows an alias and notes what forbids edits from here on down.
func (s *spot) enter(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		s.forbid(n.Line, "it is reached through the alias *%s, which others may share: write the value out here", n.Value)
		n = n.Alias
	}
	if n.Anchor != "" {
		s.forbid(n.Line, "it is under the anchor &%s, so that its aliases would change too: edit it by hand", n.Anchor)
	}
	return n
}

func (s *spot) forbid(line int, format string, args ...any) {
	if s.uneditable == nil {
		s.uneditable = refuse(line, format, args...)
	}
}

// step is the child that a segment names; nil where there is none.
func step(n *yaml.Node, seg segment) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.MappingNode:
		if seg.kind != segKey && seg.kind != segToken {
			return nil, nil
		}
		return lookup(n, seg.key)
	case yaml.SequenceNode:
		switch seg.kind {
		case segIndex:
			if seg.index < len(n.Content) {
				return n.Content[seg.index], nil
			}
		case segToken:
			if i, err := strconv.Atoi(seg.key); err == nil && i >= 0 && strconv.Itoa(i) == seg.key && i < len(n.Content) {
				return n.Content[i], nil
			}
		case segMatch:
			return match(n, seg.key, seg.value)
		}
	}
	return nil, nil
}

// lookup finds a mapping's value. A merge key beside it, or the key twice,
// means different things to different readers.
func lookup(m *yaml.Node, key string) (*yaml.Node, error) {
	var found *yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k.Tag == "!!merge" {
			return nil, refuse(k.Line, "a merge key (<<) is on the way, and readers disagree about what it overrides: write the values out")
		}
		if k.Kind == yaml.AliasNode {
			return nil, refuse(k.Line, "a key on the way is an alias (*%s): write the key out", k.Value)
		}
		if k.Kind == yaml.ScalarNode && k.Style == 0 && strings.HasSuffix(k.Value, ":") {
			return nil, refuse(k.Line, "the key %q ends in a colon, and readers disagree whether it is a key of its own: add a space behind the colon", k.Value)
		}
		if k.Kind != yaml.ScalarNode || k.Value != key {
			continue
		}
		if found != nil {
			return nil, refuse(k.Line, "the key %q is there twice (also on line %d): remove one", key, found.Line)
		}
		found = m.Content[i+1]
	}
	return found, nil
}

// match finds the one mapping in a list whose key has the value.
func match(l *yaml.Node, key, value string) (*yaml.Node, error) {
	var found *yaml.Node
	for _, item := range l.Content {
		m := item
		if m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if m.Kind != yaml.MappingNode {
			continue
		}
		v, err := lookup(m, key)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if v.Kind != yaml.ScalarNode || v.Value != value {
			continue
		}
		if found != nil {
			return nil, refuse(item.Line, "two items have %s=%s (also on line %d): remove one", key, value, found.Line)
		}
		found = item
	}
	return found, nil
}

// obstacle says why what is missing below cur at segment i can't simply be
// added as keys; nil when it can.
func (s *spot) obstacle(cur *yaml.Node, p Path, i int) error {
	at, what := p.upTo(i), kindName(cur)
	seg := p.segs[i]
	switch {
	case cur.Kind == yaml.ScalarNode || cur.Kind == yaml.AliasNode:
		return refuse(cur.Line, "%s is %s, so there is no %s in it", at, what, p.upTo(i+1))
	case cur.Kind == yaml.SequenceNode && seg.kind == segKey:
		return refuse(cur.Line, "%s is a list: pick an item as %s[0] or %s[key=value] instead of %q", at, at, at, seg.key)
	case cur.Kind == yaml.SequenceNode && seg.kind == segMatch:
		return refuse(cur.Line, "no item of %s has %s=%s%s", at, seg.key, seg.value, others(cur, seg.key))
	case cur.Kind == yaml.SequenceNode:
		return refuse(cur.Line, "%s has only %d items, so there is no %s", at, len(cur.Content), p.upTo(i+1))
	case seg.kind == segIndex || seg.kind == segMatch:
		return refuse(cur.Line, "%s is a mapping, not a list, so there is no %s", at, p.upTo(i+1))
	}
	for j, r := range p.segs[i:] {
		if r.kind == segIndex || r.kind == segMatch {
			return refuse(cur.Line, "there is no %s: add the list by hand", p.upTo(i+j))
		}
	}
	return nil
}

// others lists what the items of a list have, at most five, to help with a typo.
func others(l *yaml.Node, key string) string {
	var have []string
	for _, item := range l.Content {
		if item.Kind != yaml.MappingNode {
			continue
		}
		if v, err := lookup(item, key); err == nil && v != nil && v.Kind == yaml.ScalarNode {
			if len(have) == 5 {
				have = append(have, "…")
				break
			}
			have = append(have, v.Value)
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

// readable is the scalar at a spot, its alias followed.
func readable(n *yaml.Node) (*yaml.Node, error) {
	at := n
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return nil, refuse(at.Line, "it is %s, not a single value", kindName(n))
	}
	return n, nil
}
