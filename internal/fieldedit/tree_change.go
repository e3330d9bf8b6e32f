package fieldedit

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// treeChange is the one difference that an edit may make to a tree.
type treeChange struct {
	at      *yaml.Node                // in the old tree: what is another node now
	matches func(new *yaml.Node) bool // the node in its place is what was meant
}

// replaceScalar is a scalar with another value.
func replaceScalar(n *yaml.Node, value string) *treeChange {
	return &treeChange{n, func(new *yaml.Node) bool {
		switch {
		case new.Kind != yaml.ScalarNode || new.Value != value || new.Anchor != "" || new.Style&yaml.TaggedStyle != 0:
			return false
		case new.Style&quotedStyles != 0:
			return new.Tag == "!!str"
		}
		// A plain scalar is a string to every reader, or of its old type to all.
		return plainString(value, false) || classifyYAML11(n.Value) == classifyYAML11(value) &&
			classifyYAML12(n.Value) == classifyYAML12(value)
	}}
}

// copyScalar is a scalar that became what it is in another document.
func copyScalar(n, from *yaml.Node) *treeChange {
	return &treeChange{n, func(new *yaml.Node) bool { return sameTree(from, new, nil) }}
}

// entryRange is where a mapping or list has nodes more, or has them no more.
type entryRange struct {
	parent *yaml.Node
	index  int          // in parent.Content
	n      int          // how many go
	added  []*yaml.Node // what comes; a mapping's key and value, or a list's item
}

// treeChange is the range's change.
func (e entryRange) treeChange() *treeChange {
	return &treeChange{e.parent, func(new *yaml.Node) bool {
		old, n := e.parent, len(e.added)
		isSame := new.Kind == old.Kind && new.Tag == old.Tag && new.Anchor == old.Anchor
		if !isSame || len(new.Content) != len(old.Content)-e.n+n {
			return false
		}
		if !slices.EqualFunc(e.added, new.Content[e.index:e.index+n], matchesAddition) {
			return false
		}
		others := slices.Delete(slices.Clone(old.Content), e.index, e.index+e.n)
		return sameTrees(others, slices.Delete(slices.Clone(new.Content), e.index, e.index+n), nil)
	}}
}

// matchesAddition says that an added node is the wanted one; a want without a tag leaves the
// scalar's type open.
func matchesAddition(want, got *yaml.Node) bool {
	if got.Anchor != "" || got.Style&yaml.TaggedStyle != 0 {
		return false
	}
	fitsTag := want.Tag == "" || want.Tag == got.Tag
	return fitsTag && want.Kind == got.Kind && want.Value == got.Value && slices.EqualFunc(want.Content, got.Content, matchesAddition)
}

func sameTrees(old, new []*yaml.Node, c *treeChange) bool {
	return slices.EqualFunc(old, new, func(a, b *yaml.Node) bool { return sameTree(a, b, c) })
}

// sameTree compares everything that a reader of the file can see. Aliases are
// compared by name and not followed, so that the work is bounded by the file.
func sameTree(old, new *yaml.Node, c *treeChange) bool {
	if c != nil && old == c.at {
		return c.matches(new)
	}
	isSame := old.Kind == new.Kind && old.Tag == new.Tag && old.Value == new.Value && old.Anchor == new.Anchor
	return isSame && sameTrees(old.Content, new.Content, c)
}
