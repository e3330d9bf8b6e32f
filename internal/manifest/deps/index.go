package deps

import (
	"cmp"
	"encoding/binary"
	"path"
	"slices"
	"strings"
)

// Index answers which reader reads which file of one commit. It doesn't
// change once built and is safe for concurrent use.
//
// It is a graph: readers use folders and files, those use further ones. A
// base that a thousand readers share is in it once.
type Index struct {
	ids         []string   // the readers', sorted
	specDigests [][32]byte // what they were, to tell changed ones from others
	nodes       []node     // the readers first, in the order of ids

	names     []string    // files by number, sorted; folders that were read included
	states    []pathState // by name
	readersOf adjacency   // name → nodes that read it
	usersOf   adjacency   // node → nodes that use it
	rules     []nodeRule  // by folder
}

// node is one reader, folder or file, with what it reads by itself.
type node struct {
	key         nodeKey
	files       []uint32 // names, ascending
	uses        []uint32 // nodes, as they were found
	releaseUses []uint32 // of a reader: nodes that only all its Helm charts together tell
	traits      traits
	extras      *nodeExtras // nil for nothing
}

// nodeExtras is what few nodes have.
type nodeExtras struct {
	rules    []rule
	remotes  []string
	problems []Problem
}

// equal says that a node reads and uses the same as another of the same
// index, or of one with the same numbers.
func (n *node) equal(o *node) bool {
	if n.key != o.key || n.traits != o.traits || !slices.Equal(n.files, o.files) {
		return false
	}
	return slices.Equal(n.uses, o.uses) && slices.Equal(n.releaseUses, o.releaseUses) && n.extras.equal(o.extras)
}

func (n *nodeExtras) equal(o *nodeExtras) bool {
	if n == nil || o == nil {
		return n == o
	}
	return slices.EqualFunc(n.rules, o.rules, rule.equal) && slices.Equal(n.remotes, o.remotes) && slices.Equal(n.problems, o.problems)
}

// nodeRule is a rule and the node that it is of.
type nodeRule struct {
	*rule
	node uint32
}

// pathState is what lies at a name itself, no links followed.
type pathState uint8

const (
	stateAbsent pathState = iota
	statePresent
	stateFolder
)

// adjacency maps numbers to lists of numbers.
type adjacency struct{ start, list []uint32 }

// newAdjacency turns pairs, given twice by each, into a table of n lists.
func newAdjacency(n int, each func(yield func(from, to uint32))) adjacency {
	t := adjacency{start: make([]uint32, n+1)}
	each(func(from, _ uint32) { t.start[from+1]++ })
	for i := range n {
		t.start[i+1] += t.start[i]
	}
	t.list = make([]uint32, t.start[n])
	next := slices.Clone(t.start)
	each(func(from, to uint32) {
		t.list[next[from]] = to
		next[from]++
	})
	return t
}

func (a *adjacency) listOf(i uint32) []uint32 { return a.list[a.start[i]:a.start[i+1]] }

// findReader finds a reader's node.
func (in *Index) findReader(id string) (uint32, bool) {
	i, ok := slices.BinarySearch(in.ids, id)
	return uint32(i), ok
}

// Files lists what a reader reads, sorted: files that are there, and files
// whose absence it depends on. nil for an unknown reader.
func (in *Index) Files(id string) []string {
	r, ok := in.findReader(id)
	if !ok {
		return nil
	}
	var numbers []uint32
	for _, n := range in.nodesBelow(r) {
		for _, f := range in.nodes[n].files {
			if in.states[f] != stateFolder {
				numbers = append(numbers, f)
			}
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	out := make([]string, len(numbers))
	for i, f := range numbers {
		out[i] = in.names[f]
	}
	return out
}

// Readers lists who reads a file, or would if it existed; sorted, nil for
// nobody. For a folder it lists who would notice a link in its place.
func (in *Index) Readers(name string) []string {
	nodes := in.nodesReading(name)
	if len(nodes) == 0 {
		return nil
	}
	var out []string
	for _, r := range in.readersUsing(nodes, newNodeSet(len(in.nodes))) {
		out = append(out, in.ids[r])
	}
	return out
}

// AffectedReaders maps every reader that reads one of the files to those of them that
// it reads, sorted. Files are what a change created, changed or deleted, by
// their paths before and after. Readers that read the same of them share one
// list: don't change it.
func (in *Index) AffectedReaders(files []string) map[string][]string {
	sorted := slices.Clone(files)
	slices.Sort(sorted)
	// Files that the same nodes read have the same readers.
	groups := map[string]int{}
	var members [][]string
	var reach [][]uint32
	visited := newNodeSet(len(in.nodes))
	for _, name := range slices.Compact(sorted) {
		nodes := in.nodesReading(name)
		if len(nodes) == 0 {
			continue
		}
		k := numbersKey(nodes)
		g, ok := groups[k]
		if !ok {
			g = len(members)
			groups[k] = g
			members = append(members, nil)
			reach = append(reach, in.readersUsing(nodes, visited))
		}
		members[g] = append(members[g], name)
	}
	groupsOf := map[uint32][]uint32{}
	for g, readers := range reach {
		for _, r := range readers {
			groupsOf[r] = append(groupsOf[r], uint32(g))
		}
	}
	lists := map[string][]string{}
	out := make(map[string][]string, len(groupsOf))
	for r, of := range groupsOf {
		if len(of) == 1 {
			out[in.ids[r]] = members[of[0]]
			continue
		}
		k := numbersKey(of)
		list, ok := lists[k]
		if !ok {
			for _, g := range of {
				list = append(list, members[g]...)
			}
			slices.Sort(list)
			lists[k] = list
		}
		out[in.ids[r]] = list
	}
	return out
}

func numbersKey(numbers []uint32) string {
	b := make([]byte, 0, 4*len(numbers))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return string(b)
}

// Remote lists what a reader takes from outside the repository, as it is
// written there; sorted.
func (in *Index) Remote(id string) []string {
	r, ok := in.findReader(id)
	if !ok {
		return nil
	}
	var out []string
	for _, n := range in.nodesBelow(r) {
		if m := in.nodes[n].extras; m != nil {
			out = append(out, m.remotes...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Problems lists what could not be followed, by reader and file.
func (in *Index) Problems() []Problem {
	var out []Problem
	visited := newNodeSet(len(in.nodes))
	for n := range in.nodes {
		m := in.nodes[n].extras
		if m == nil || len(m.problems) == 0 {
			continue
		}
		for _, r := range in.readersUsing([]uint32{uint32(n)}, visited) {
			for _, p := range m.problems {
				p.Reader = in.ids[r]
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Reader, b.Reader), strings.Compare(a.File, b.File), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}

// nodesReading finds the nodes that read a file by themselves, whether it exists or not, ascending.
// They name the file, something missing above it (it may become a folder) or something below it (it
// may become a link). Nodes with a rule that covers it count too.
func (in *Index) nodesReading(name string) []uint32 {
	var out []uint32
	first, end := rangeBelow(in.names, name)
	for f := first; f < end; f++ {
		out = append(out, in.readersOf.listOf(uint32(f))...)
	}
	for _, r := range in.rulesFrom(name) {
		if rest, below := strings.CutPrefix(r.dir, name); !below {
			break
		} else if rest == "" || rest[0] == '/' {
			out = append(out, r.node)
		}
	}
	for at := name; ; at = path.Dir(at) {
		if f, ok := slices.BinarySearch(in.names, at); ok && (at == name || in.states[f] == stateAbsent) {
			out = append(out, in.readersOf.listOf(uint32(f))...)
		}
		for _, r := range in.rulesFrom(at) {
			if at == name || r.dir != at {
				break
			}
			if r.covers(name) {
				out = append(out, r.node)
			}
		}
		if at == "." || at == "/" {
			break
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rulesFrom are the rules of a folder and of those that sort behind it.
func (in *Index) rulesFrom(dir string) []nodeRule {
	i, _ := slices.BinarySearchFunc(in.rules, dir, func(r nodeRule, dir string) int { return strings.Compare(r.dir, dir) })
	return in.rules[i:]
}

// nodeSet says which nodes were seen.
type nodeSet []uint64

func newNodeSet(n int) nodeSet { return make(nodeSet, (n+63)/64) }

// add marks a node and says whether it wasn't before.
func (ns nodeSet) add(n uint32) bool {
	bit := uint64(1) << (n % 64)
	was := ns[n/64] & bit
	ns[n/64] |= bit
	return was == 0
}

func (ns nodeSet) has(n uint32) bool { return ns[n/64]&(1<<(n%64)) != 0 }

func (ns nodeSet) remove(n uint32) { ns[n/64] &^= 1 << (n % 64) }

// readersUsing finds the readers that use one of the nodes, ascending. The marks
// come and go empty.
func (in *Index) readersUsing(nodes []uint32, seen nodeSet) []uint32 {
	var all, readers []uint32
	for _, n := range nodes {
		if seen.add(n) {
			all = append(all, n)
		}
	}
	for i := 0; i < len(all); i++ {
		if int(all[i]) < len(in.ids) {
			readers = append(readers, all[i])
			continue // nobody uses a reader
		}
		for _, u := range in.usersOf.listOf(all[i]) {
			if seen.add(u) {
				all = append(all, u)
			}
		}
	}
	for _, n := range all {
		seen.remove(n)
	}
	slices.Sort(readers)
	return readers
}

// nodesBelow finds a node and all that it uses.
func (in *Index) nodesBelow(n uint32) []uint32 {
	return usedNodes(in.nodes, []uint32{n})
}

// usedNodes are nodes with all that they use, those that are given first.
func usedNodes(nodes []node, all []uint32) []uint32 {
	seen := newNodeSet(len(nodes))
	for _, n := range all {
		seen.add(n)
	}
	for i := 0; i < len(all); i++ {
		at := &nodes[all[i]]
		for _, list := range [][]uint32{at.uses, at.releaseUses} {
			for _, u := range list {
				if seen.add(u) {
					all = append(all, u)
				}
			}
		}
	}
	return all
}
