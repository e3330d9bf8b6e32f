package graph

import (
	"cmp"
	"slices"
	"strings"
)

// Node is an environment and those that come right before it.
type Node struct {
	ID    string   // no other node's
	After []string // one that isn't there is passed over
}

// Group is an environment, or several alike that are drawn as one.
type Group struct {
	Node
	Members []string // in the order of the nodes; one: it is that environment
}

// Find returns the index of the group that has an environment; -1 when none has.
func Find(groups []Group, environment string) int {
	return slices.IndexFunc(groups, func(g Group) bool { return slices.Contains(g.Members, environment) })
}

// Collapse makes at most a number of groups of the nodes where their names and places allow it.
// Nodes of a group are as far from the sources, come after the same groups, and their names begin
// alike. First only the last part of the names may differ (prod-eu-1 and prod-eu-2 are prod-eu-*),
// then the last two, and so on. Where there are no more nodes than the number, each is a group of
// its own.
func Collapse(nodes []Node, most int) []Group {
	depth := 0
	for _, n := range nodes {
		depth = max(depth, len(splitName(n.ID)))
	}
	groups := groupBy(nodes, 0)
	for cut := 1; len(groups) > most && cut <= depth; cut++ {
		groups = groupBy(nodes, cut)
	}
	return groups
}

// groupBy groups nodes whose names are alike without the given number of last parts.
func groupBy(nodes []Node, cut int) []Group {
	layers := assignLayers(nodes)
	byID := indexNodes(nodes)
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(layers[a], layers[b]) })
	type alike struct {
		layer       int
		name, after string
	}
	at := map[alike]int{}
	groupOf := make([]int, len(nodes))
	var groups []Group
	for _, i := range order { // those before a node have their groups by now
		var after []int
		for _, k := range predecessors(nodes, byID, layers, i) {
			if g := groupOf[k]; !slices.Contains(after, g) {
				after = append(after, g)
			}
		}
		slices.Sort(after)
		key := alike{layer: layers[i], name: nodes[i].ID}
		if cut > 0 {
			parts := splitName(nodes[i].ID)
			key.name = strings.Join(parts[:max(0, len(parts)-cut)], "")
			for _, g := range after {
				key.after += groups[g].ID + " "
			}
		}
		g, ok := at[key]
		if !ok {
			g = len(groups)
			at[key] = g
			groups = append(groups, Group{Node: Node{ID: nodes[i].ID}})
			for _, k := range after {
				groups[g].After = append(groups[g].After, groups[k].Members[0])
			}
		}
		groupOf[i] = g
		groups[g].Members = append(groups[g].Members, nodes[i].ID)
	}
	return nameGroups(groups)
}

// nameGroups gives each group a name that no other has: what its members' have in common.
func nameGroups(groups []Group) []Group {
	names := map[string]string{} // by the first member
	used := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		first := g.Members[0]
		if len(g.Members) > 1 {
			g.ID = pattern(g.Members)
		}
		if used[g.ID] {
			g.ID += " (" + first + ")"
		}
		used[g.ID], names[first] = true, g.ID
	}
	for i := range groups {
		for k, first := range groups[i].After {
			groups[i].After[k] = names[first]
		}
	}
	return groups
}

// pattern is what names have in common, with * for the rest.
func pattern(names []string) string {
	prefix, suffix := names[0], names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(n, suffix) {
			suffix = suffix[1:]
		}
	}
	for _, n := range names { // of "aa" and "aaa", "aa" is either, not both
		suffix = suffix[max(0, len(prefix)+len(suffix)-len(n)):]
	}
	return prefix + "*" + suffix
}

// splitName cuts a name before each dash, and before the digits at its end.
func splitName(name string) []string {
	var parts []string
	for i, p := range strings.Split(name, "-") {
		if i > 0 {
			p = "-" + p
		}
		if stem := strings.TrimRight(p, "0123456789"); stem != p && strings.Trim(stem, "-") != "" {
			parts = append(parts, stem, p[len(stem):])
			continue
		}
		parts = append(parts, p)
	}
	return parts
}

func indexNodes(nodes []Node) map[string]int {
	byID := make(map[string]int, len(nodes))
	for i, n := range nodes {
		if _, twice := byID[n.ID]; !twice {
			byID[n.ID] = i
		}
	}
	return byID
}

// assignLayers says how far each node is from the sources, by the longest way. An edge
// that closes a circle is passed over; a pipeline file has none.
func assignLayers(nodes []Node) []int {
	byID := indexNodes(nodes)
	layers := make([]int, len(nodes))
	const (
		unseen = iota
		entered
		left
	)
	state := make([]int, len(nodes))
	var visit func(i int)
	visit = func(i int) {
		state[i] = entered
		for _, id := range nodes[i].After {
			k, ok := byID[id]
			if !ok || state[k] == entered {
				continue
			}
			if state[k] == unseen {
				visit(k)
			}
			layers[i] = max(layers[i], layers[k]+1)
		}
		state[i] = left
	}
	for i := range nodes {
		if state[i] == unseen {
			visit(i)
		}
	}
	return layers
}

// predecessors are the indices of the nodes right before one, each once.
func predecessors(nodes []Node, byID map[string]int, layers []int, i int) []int {
	var out []int
	for _, id := range nodes[i].After {
		if k, ok := byID[id]; ok && layers[k] < layers[i] && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
