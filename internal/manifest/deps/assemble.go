package deps

import (
	"slices"
	"strings"
)

// assembleIndex drops what no reader uses any more, sorts the names and turns
// everything around. statesFor says what lies at names, which come sorted.
func (b *builder) assembleIndex(statesFor func(names []string) []pathState) *Index {
	order := b.listUsedNodes()
	newNumbers := make([]uint32, len(b.nodes))
	for to, from := range order {
		newNumbers[from] = uint32(to)
	}
	x := &Index{specDigests: b.specDigests, nodes: make([]node, len(order)), ids: make([]string, len(b.readers))}
	for i, r := range b.readers {
		x.ids[i] = r.ID
	}
	renamed := b.sortNames(order, x)
	for to, from := range order {
		n := b.nodes[from]
		n.files = remapNumbers(n.files, renamed)
		slices.Sort(n.files)
		n.uses, n.releaseUses = remapNumbers(n.uses, newNumbers), remapNumbers(n.releaseUses, newNumbers)
		x.nodes[to] = n
	}
	x.states = statesFor(x.names)
	x.buildReverseTables()
	return x
}

// remapNumbers maps numbers into a new list.
func remapNumbers(list, to []uint32) []uint32 {
	if len(list) == 0 {
		return nil
	}
	out := make([]uint32, len(list))
	for i, n := range list {
		out[i] = to[n]
	}
	return out
}

// listUsedNodes lists the nodes that readers get to, the readers first.
func (b *builder) listUsedNodes() []uint32 {
	order := make([]uint32, len(b.readers))
	for i := range order {
		order[i] = uint32(i)
	}
	return usedNodes(b.nodes, order)
}

// sortNames gives x the names that its nodes use, in order and in one piece
// of memory, and says which number each had before.
func (b *builder) sortNames(order []uint32, x *Index) (renamed []uint32) {
	renamed = make([]uint32, len(b.previous.names)+len(b.newNameList))
	used := newNodeSet(len(renamed))
	for _, n := range order {
		for _, f := range b.nodes[n].files {
			used.add(f)
		}
	}
	// Those of the index before are in order already.
	first := uint32(len(b.previous.names))
	fresh := make([]uint32, 0, len(b.newNameList))
	for f := first; f < uint32(len(renamed)); f++ {
		if used.has(f) {
			fresh = append(fresh, f)
		}
	}
	slices.SortFunc(fresh, func(x, y uint32) int { return strings.Compare(b.newNameList[x-first], b.newNameList[y-first]) })
	numbers := make([]uint32, 0, len(renamed))
	size := 0
	for old := uint32(0); old < first || len(fresh) > 0; {
		switch {
		case old < first && !used.has(old):
			old++
			continue
		case len(fresh) == 0 || old < first && b.previous.names[old] < b.newNameList[fresh[0]-first]:
			numbers = append(numbers, old)
			old++
		default:
			numbers = append(numbers, fresh[0])
			fresh = fresh[1:]
		}
		size += len(b.nameOf(numbers[len(numbers)-1]))
	}
	var text strings.Builder
	text.Grow(size)
	for _, f := range numbers {
		text.WriteString(b.nameOf(f))
	}
	x.names = make([]string, len(numbers))
	rest := text.String()
	for i, f := range numbers {
		n := len(b.nameOf(f))
		x.names[i], rest = rest[:n], rest[n:]
		renamed[f] = uint32(i)
	}
	return renamed
}

// buildReverseTables makes the ways back: from names to nodes, from nodes to their users,
// and the rules by folder.
func (in *Index) buildReverseTables() {
	in.readersOf = newAdjacency(len(in.names), func(yield func(from, to uint32)) {
		for n := range in.nodes {
			for _, f := range in.nodes[n].files {
				yield(f, uint32(n))
			}
		}
	})
	in.usersOf = newAdjacency(len(in.nodes), func(yield func(from, to uint32)) {
		for n := range in.nodes {
			for _, u := range in.nodes[n].uses {
				yield(u, uint32(n))
			}
			for _, u := range in.nodes[n].releaseUses {
				yield(u, uint32(n))
			}
		}
	})
	for n := range in.nodes {
		if m := in.nodes[n].extras; m != nil {
			for i := range m.rules {
				in.rules = append(in.rules, nodeRule{&m.rules[i], uint32(n)})
			}
		}
	}
	slices.SortFunc(in.rules, func(a, b nodeRule) int { return strings.Compare(a.dir, b.dir) })
}

// statesAt says what lies at each of the sorted names.
func statesAt(v *treeView, names []string) []pathState {
	out := make([]pathState, len(names))
	for i, name := range names {
		out[i] = v.stateAt(name)
	}
	return out
}
