package deps

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// rebuildAt is how many nodes have to be followed again for building anew, in
// large steps, to be faster than updating.
const rebuildAt = 2_000

// Update gives the index of another commit. Changed must list every file that
// differs between the two trees, by the paths before and after. Only what
// they can have changed, and readers that are new or different, are followed
// again; where nothing comes out different the index itself is returned. The
// answers are those that [Build] would give, and so are the errors.
func (x *Index) Update(ctx context.Context, tree fs.FS, readers []Reader, changed []string) (*Index, error) {
	v, err := newView(ctx, tree, false)
	if err != nil {
		return nil, fmt.Errorf("reading the commit's files: %w", err)
	}
	b, err := newBuilder(ctx, v, readers, x)
	if err != nil {
		return nil, err
	}
	different := b.adopt(x.staleBy(changed, vanished(v, changed)))
	if _, ok := tree.(Bulk); ok && len(b.todo) > rebuildAt {
		return Build(ctx, tree, readers)
	}
	if err := b.run(); err != nil {
		return nil, err
	}
	touched := touchedNames(changed)
	if different || !b.same() {
		return b.finish(func(names []string) []state { return x.statesAfter(v, names, touched) }), nil
	}
	states := x.statesAfter(v, x.names, touched)
	if slices.Equal(states, x.states) {
		return x, nil
	}
	same := *x
	same.states = states
	return &same, nil
}

// same says that following again changed nothing; only for the same readers.
func (b *builder) same() bool {
	if len(b.nodes) != len(b.before.nodes) {
		return false
	}
	for n := range b.nodes {
		if !b.nodes[n].equal(&b.before.nodes[n]) {
			return false
		}
	}
	return true
}

// statesAfter says what lies at sorted names after a change that touched some.
func (x *Index) statesAfter(v *view, names []string, touched map[string]bool) []state {
	out := make([]state, len(names))
	old := 0
	for i, name := range names {
		for old < len(x.names) && x.names[old] < name {
			old++
		}
		if old < len(x.names) && x.names[old] == name && !touched[name] {
			out[i] = x.states[old]
		} else {
			out[i] = v.state(name)
		}
	}
	return out
}

// vanished finds the folders above changed files that are not there any more.
func vanished(v *view, changed []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, name := range changed {
		for dir := path.Dir(name); dir != "." && dir != "/" && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if v.state(dir) != aFolder {
				out = append(out, dir)
			}
		}
	}
	return out
}

// touchedNames are names whose state can be another after a change.
func touchedNames(changed []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range changed {
		for ; name != "." && name != "/" && !out[name]; name = path.Dir(name) {
			out[name] = true
		}
	}
	return out
}

// staleBy finds the nodes that have to be followed again.
func (x *Index) staleBy(changed, gone []string) marks {
	stale := newMarks(len(x.nodes))
	for _, list := range [][]string{changed, gone} {
		for _, name := range list {
			for _, n := range x.readBy(name) {
				stale.add(n)
			}
		}
	}
	return stale
}

// adopt takes the nodes of the index before over, under new numbers because
// the readers may be others, and notes which have to be followed. It says
// whether the readers are others.
func (b *builder) adopt(stale marks) (different bool) {
	x := b.before
	place := make([]uint32, len(x.nodes))
	known := make([]bool, len(b.readers))
	for i, r := range b.readers {
		old, ok := x.reader(r.ID)
		if !ok {
			continue
		}
		place[old] = uint32(i)
		if known[i] = x.specs[old] == b.specs[i]; known[i] {
			n := x.nodes[old]
			b.nodes[i].files, b.nodes[i].traits, b.nodes[i].more = n.files, n.traits, n.more
		}
	}
	for n := len(x.ids); n < len(x.nodes); n++ {
		place[n] = uint32(len(b.nodes))
		old := &x.nodes[n]
		b.numbers[old.key] = place[n]
		b.nodes = append(b.nodes, node{key: old.key, files: old.files, traits: old.traits, more: old.more})
	}
	different = len(b.readers) != len(x.ids)
	for i, r := range b.readers {
		old, _ := x.reader(r.ID)
		if known[i] {
			b.nodes[i].uses = renumber(x.nodes[old].uses, place)
		}
		if !known[i] || stale.has(old) {
			b.todo = append(b.todo, uint32(i))
		}
		different = different || !known[i]
	}
	for n := len(x.ids); n < len(x.nodes); n++ {
		b.nodes[place[n]].uses = renumber(x.nodes[n].uses, place)
		if stale.has(uint32(n)) {
			b.todo = append(b.todo, place[n])
		}
	}
	return different
}
