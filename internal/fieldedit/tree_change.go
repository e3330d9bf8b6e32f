package fieldedit

import "gopkg.in/yaml.v3"

// treeChange is the one difference that an edit may make to a tree.
type treeChange interface {
	lineNumber() int
	// compareNodes compares where the change is: old and new are the nodes at the same
	// place in both trees. done is false where old isn't the changed node.
	compareNodes(old, new *yaml.Node) (same, done bool)
}

// replacedScalar is a scalar with another value.
type replacedScalar struct {
	node  *yaml.Node
	value string
}

func (c replacedScalar) lineNumber() int { return c.node.Line }

func (c replacedScalar) compareNodes(old, new *yaml.Node) (same, done bool) {
	if old != c.node {
		return false, false
	}
	if new.Kind != yaml.ScalarNode || new.Value != c.value || new.Anchor != "" || new.Style&yaml.TaggedStyle != 0 {
		return false, true
	}
	if new.Style&quotedStyles != 0 {
		return new.Tag == "!!str", true
	}
	// A plain scalar is a string to every reader, or of its old type to all.
	return plainString(c.value, false) || classifyYAML11(old.Value) == classifyYAML11(c.value) && classifyYAML12(old.Value) == classifyYAML12(c.value), true
}

// copiedScalar is a scalar that became what it is in another document.
type copiedScalar struct{ node, from *yaml.Node }

func (c copiedScalar) lineNumber() int { return c.node.Line }

func (c copiedScalar) compareNodes(old, new *yaml.Node) (same, done bool) {
	return old == c.node && sameTree(c.from, new, nil), old == c.node
}

// insertedNodes is a mapping's new entry, or a list's new item where key is nil.
type insertedNodes struct {
	parent *yaml.Node
	index  int // in parent.Content
	nodes  []*yaml.Node
}

func (c insertedNodes) lineNumber() int { return c.parent.Line }

func (c insertedNodes) compareNodes(old, new *yaml.Node) (same, done bool) {
	if old != c.parent {
		return false, false
	}
	n := len(c.nodes)
	if new.Kind != old.Kind || new.Tag != old.Tag || new.Anchor != old.Anchor || len(new.Content) != len(old.Content)+n {
		return false, true
	}
	for i, want := range c.nodes {
		if !matchesAddition(want, new.Content[c.index+i]) {
			return false, true
		}
	}
	for i, o := range old.Content {
		j := i
		if i >= c.index {
			j += n
		}
		if !sameTree(o, new.Content[j], nil) {
			return false, true
		}
	}
	return true, true
}

// removedNodes is entries that a mapping or list has no more.
type removedNodes struct {
	parent   *yaml.Node
	index, n int // in parent.Content
}

func (c removedNodes) lineNumber() int { return c.parent.Line }

func (c removedNodes) compareNodes(old, new *yaml.Node) (same, done bool) {
	if old != c.parent {
		return false, false
	}
	if new.Kind != old.Kind || new.Tag != old.Tag || new.Anchor != old.Anchor || len(new.Content) != len(old.Content)-c.n {
		return false, true
	}
	for i, n := range new.Content {
		j := i
		if i >= c.index {
			j += c.n
		}
		if !sameTree(old.Content[j], n, nil) {
			return false, true
		}
	}
	return true, true
}

// matchesAddition says that an added node is what was to be added; a want without a tag
// leaves the scalar's type open.
func matchesAddition(want, got *yaml.Node) bool {
	if want.Kind != got.Kind || want.Value != got.Value || want.Tag != "" && want.Tag != got.Tag ||
		got.Anchor != "" || got.Style&yaml.TaggedStyle != 0 || len(want.Content) != len(got.Content) {
		return false
	}
	for i := range want.Content {
		if !matchesAddition(want.Content[i], got.Content[i]) {
			return false
		}
	}
	return true
}

func checkOnlyChange(old, new []*yaml.Node, c treeChange) error {
	same := len(old) == len(new)
	for i := 0; same && i < len(old); i++ {
		same = sameTree(old[i], new[i], c)
	}
	if !same {
		return newRefusal(c.lineNumber(), "the edit would change more than this value: edit it by hand")
	}
	return nil
}

// sameTree compares everything that a reader of the file can see. Aliases are
// compared by name and not followed, so that the work is bounded by the file.
func sameTree(old, new *yaml.Node, c treeChange) bool {
	if c != nil {
		if same, done := c.compareNodes(old, new); done {
			return same
		}
	}
	if old.Kind != new.Kind || old.Tag != new.Tag || old.Value != new.Value || old.Anchor != new.Anchor || len(old.Content) != len(new.Content) {
		return false
	}
	for i := range old.Content {
		if !sameTree(old.Content[i], new.Content[i], c) {
			return false
		}
	}
	return true
}
