package deps

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// rebuildThreshold is how many nodes have to be followed again for building anew, in
// large steps, to be faster than updating.
const rebuildThreshold = 2_000

// Update gives the index of another commit. Changed must list every file that
// differs between the two trees, by the paths before and after. Only what
// they can have changed, and readers that are new or different, are followed
// again; where nothing comes out different the index itself is returned. The
// answers are those that [Build] would give, and so are the errors.
func (in *Index) Update(ctx context.Context, tree fs.FS, readers []Reader, changed []string) (*Index, error) {
	v, err := newTreeView(ctx, tree, false)
	if err != nil {
		return nil, fmt.Errorf("reading the commit's files: %w", err)
	}
	b, err := newBuilder(ctx, v, readers, in)
	if err != nil {
		return nil, err
	}
	different := b.reuseNodes(in.findStaleNodes(changed, findRemovedFolders(v, changed)))
	if _, ok := tree.(BulkFS); ok && len(b.pending) > rebuildThreshold {
		return Build(ctx, tree, readers)
	}
	if err := b.followPending(); err != nil {
		return nil, err
	}
	changedNames := namesWithParents(changed)
	if different || !b.isUnchanged() {
		return b.assembleIndex(func(names []string) []pathState { return in.statesAfter(v, names, changedNames) }), nil
	}
	states := in.statesAfter(v, in.names, changedNames)
	if slices.Equal(states, in.states) {
		return in, nil
	}
	updated := *in
	updated.states = states
	return &updated, nil
}

// isUnchanged says that following again changed nothing; only for the same readers.
func (b *builder) isUnchanged() bool {
	if len(b.nodes) != len(b.previous.nodes) {
		return false
	}
	for n := range b.nodes {
		if !b.nodes[n].equal(&b.previous.nodes[n]) {
			return false
		}
	}
	return true
}

// statesAfter says what lies at sorted names after a change that touched some.
func (in *Index) statesAfter(v *treeView, names []string, changedNames map[string]bool) []pathState {
	out := make([]pathState, len(names))
	old := 0
	for i, name := range names {
		for old < len(in.names) && in.names[old] < name {
			old++
		}
		if old < len(in.names) && in.names[old] == name && !changedNames[name] {
			out[i] = in.states[old]
		} else {
			out[i] = v.stateAt(name)
		}
	}
	return out
}

// findRemovedFolders finds the folders above changed files that are not there any more.
func findRemovedFolders(v *treeView, changed []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, name := range changed {
		for dir := path.Dir(name); dir != "." && dir != "/" && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if v.stateAt(dir) != stateFolder {
				out = append(out, dir)
			}
		}
	}
	return out
}

// namesWithParents are names whose state can be another after a change.
func namesWithParents(changed []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range changed {
		for ; name != "." && name != "/" && !out[name]; name = path.Dir(name) {
			out[name] = true
		}
	}
	return out
}

// findStaleNodes finds the nodes that have to be followed again.
func (in *Index) findStaleNodes(changed, removed []string) nodeSet {
	stale := newNodeSet(len(in.nodes))
	for _, list := range [][]string{changed, removed} {
		for _, name := range list {
			for _, n := range in.nodesReading(name) {
				stale.add(n)
			}
		}
	}
	return stale
}

// reuseNodes takes the nodes of the index before over, under new numbers because
// the readers may be others, and notes which have to be followed. It says
// whether the readers are others.
func (b *builder) reuseNodes(stale nodeSet) (different bool) {
	x := b.previous
	newNumbers := make([]uint32, len(x.nodes))
	known := make([]bool, len(b.readers))
	for i, r := range b.readers {
		old, ok := x.findReader(r.ID)
		if !ok {
			continue
		}
		newNumbers[old] = uint32(i)
		if known[i] = x.specDigests[old] == b.specDigests[i]; known[i] {
			n := x.nodes[old]
			b.nodes[i].files, b.nodes[i].traits, b.nodes[i].extras = n.files, n.traits, n.extras
		}
	}
	for n := len(x.ids); n < len(x.nodes); n++ {
		newNumbers[n] = uint32(len(b.nodes))
		old := &x.nodes[n]
		b.nodeNumbers[old.key] = newNumbers[n]
		b.nodes = append(b.nodes, node{key: old.key, files: old.files, traits: old.traits, extras: old.extras})
	}
	different = len(b.readers) != len(x.ids)
	for i, r := range b.readers {
		old, _ := x.findReader(r.ID)
		if known[i] {
			b.nodes[i].uses = remapNumbers(x.nodes[old].uses, newNumbers)
		}
		if !known[i] || stale.has(old) {
			b.pending = append(b.pending, uint32(i))
		}
		different = different || !known[i]
	}
	for n := len(x.ids); n < len(x.nodes); n++ {
		b.nodes[newNumbers[n]].uses = remapNumbers(x.nodes[n].uses, newNumbers)
		if stale.has(uint32(n)) {
			b.pending = append(b.pending, newNumbers[n])
		}
	}
	return different
}
