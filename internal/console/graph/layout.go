package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Sizes are in pixels.
type Sizes struct {
	// Width is what there is; 0: as much as it takes. Where the layers don't fit into it
	// side by side, the nodes stand below each other, as wide as there is room.
	Width                 int
	NodeWidth, NodeHeight int
	GapX, GapY            int // between layers, and between the nodes of one
}

// Layout is where everything is.
type Layout struct {
	Width, Height int
	Column        bool // the nodes stand below each other
	NodeWidth     int
	NodeHeight    int
	Nodes         []PlacedNode // by layer, and in it from the top
	Edges         []Edge
}

// PlacedNode is where a node's upper left corner is.
type PlacedNode struct {
	ID          string
	Layer, X, Y int
}

// Point is a place.
type Point struct{ X, Y int }

// Edge leads from one node to one that comes right after it.
type Edge struct {
	From, To string
	// Points are where it begins, where it turns, and where it ends. Side by side they
	// are joined by curves that leave and arrive level, in a column by straight lines.
	Points []Point
	curved bool
}

const (
	margin    = 2
	laneWidth = 12 // of an edge beside a column
	passing   = 14 // the height that an edge takes up that passes a layer
	sweeps    = 8
)

// Path is the edge as the d of an SVG path.
func (e *Edge) Path() string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", e.Points[0].X, e.Points[0].Y)
	for i := 1; i < len(e.Points); i++ {
		p, q := e.Points[i-1], e.Points[i]
		if e.curved && p.Y != q.Y {
			mid := (p.X + q.X) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", mid, p.Y, mid, q.Y, q.X, q.Y)
			continue
		}
		fmt.Fprintf(&b, "L%d %d", q.X, q.Y)
	}
	return b.String()
}

// Arrange lays nodes out by layers from left to right, every node after all those that it comes
// after, with few crossings. It lays them out in one column where that is wider than there is room.
// No edge passes through a node.
func Arrange(nodes []Node, s Sizes) Layout {
	g := newLayered(nodes)
	width := len(g.layers)*s.NodeWidth + max(0, len(g.layers)-1)*s.GapX + 2*margin
	if s.Width > 0 && width > s.Width {
		return g.stack(s)
	}
	return g.spread(s, width)
}

// layered is a graph whose nodes are in layers; an edge over several layers passes
// through a place of its own in each one between.
type layered struct {
	nodes  []Node
	edges  [][2]int
	slots  []slot
	layers [][]int // of slots, from the top
}

// slot is a node's place, or that of an edge which passes.
type slot struct {
	node, layer   int // node -1: an edge passes
	before, after []int
	center        int // from the top
}

func newLayered(nodes []Node) *layered {
	g := &layered{nodes: nodes}
	depth := assignLayers(nodes)
	byID := indexNodes(nodes)
	for i := range nodes {
		g.addSlot(i, depth[i])
	}
	for i := range nodes {
		for _, k := range predecessors(nodes, byID, depth, i) {
			g.edges = append(g.edges, [2]int{k, i})
			from := k
			for l := depth[k] + 1; l < depth[i]; l++ {
				via := g.addSlot(-1, l)
				g.join(from, via)
				from = via
			}
			g.join(from, i)
		}
	}
	g.untangle()
	return g
}

func (la *layered) addSlot(node, layer int) int {
	for len(la.layers) <= layer {
		la.layers = append(la.layers, nil)
	}
	la.slots = append(la.slots, slot{node: node, layer: layer})
	la.layers[layer] = append(la.layers[layer], len(la.slots)-1)
	return len(la.slots) - 1
}

func (la *layered) join(from, to int) {
	la.slots[from].after = append(la.slots[from].after, to)
	la.slots[to].before = append(la.slots[to].before, from)
}

// untangle orders the layers so that few edges cross. Each slot goes to the middle of those that it
// is joined with, forth and back, and the best order is kept.
func (la *layered) untangle() {
	best, fewest := cloneLayers(la.layers), la.crossings()
	for sweep := range sweeps {
		if fewest == 0 {
			break
		}
		for n := range la.layers {
			layer, forward := n, sweep%2 == 0
			if !forward {
				layer = len(la.layers) - 1 - n
			}
			la.sortLayer(layer, forward)
		}
		if c := la.crossings(); c < fewest {
			best, fewest = cloneLayers(la.layers), c
		}
	}
	la.layers = best
}

func (la *layered) sortLayer(layer int, forward bool) {
	positions := la.positions()
	weight := map[int]float64{}
	for _, i := range la.layers[layer] {
		joined := la.slots[i].after
		if forward {
			joined = la.slots[i].before
		}
		weight[i] = float64(positions[i])
		if len(joined) > 0 {
			sum := 0
			for _, k := range joined {
				sum += positions[k]
			}
			weight[i] = float64(sum) / float64(len(joined))
		}
	}
	slices.SortStableFunc(la.layers[layer], func(a, b int) int { return cmp.Compare(weight[a], weight[b]) })
}

// positions are the slots' places in their layers.
func (la *layered) positions() []int {
	out := make([]int, len(la.slots))
	for _, l := range la.layers {
		for n, i := range l {
			out[i] = n
		}
	}
	return out
}

func (la *layered) crossings() int {
	positions, n := la.positions(), 0
	for _, l := range la.layers {
		type line struct{ from, to int }
		var lines []line
		for _, i := range l {
			for _, k := range la.slots[i].after {
				lines = append(lines, line{positions[i], positions[k]})
			}
		}
		for i := range lines {
			for _, b := range lines[i+1:] {
				if a := lines[i]; a.from < b.from && a.to > b.to || a.from > b.from && a.to < b.to {
					n++
				}
			}
		}
	}
	return n
}

func cloneLayers(layers [][]int) [][]int {
	out := make([][]int, len(layers))
	for i := range layers {
		out[i] = slices.Clone(layers[i])
	}
	return out
}

// spread puts the layers side by side.
func (la *layered) spread(s Sizes, width int) Layout {
	la.placeVertically(s)
	top, bottom := 0, 0
	for i := range la.slots {
		h := la.height(i, s)
		if i == 0 || la.slots[i].center-h/2 < top {
			top = la.slots[i].center - h/2
		}
		bottom = max(bottom, la.slots[i].center+h-h/2)
	}
	for i := range la.slots {
		la.slots[i].center += margin - top
	}
	out := Layout{Width: width, Height: bottom - top + 2*margin, NodeWidth: s.NodeWidth, NodeHeight: s.NodeHeight}
	left := func(layer int) int { return margin + layer*(s.NodeWidth+s.GapX) }
	for layer, l := range la.layers {
		for _, i := range l {
			if k := la.slots[i].node; k >= 0 {
				out.Nodes = append(out.Nodes, PlacedNode{la.nodes[k].ID, layer, left(layer), la.slots[i].center - s.NodeHeight/2})
			}
		}
	}
	for i := range la.nodes { // the first slots are the nodes'
		for _, k := range la.slots[i].after {
			e := Edge{From: la.nodes[i].ID, curved: true, Points: []Point{{left(la.slots[i].layer) + s.NodeWidth, la.slots[i].center}}}
			for ; la.slots[k].node < 0; k = la.slots[k].after[0] {
				x := left(la.slots[k].layer)
				e.Points = append(e.Points, Point{x, la.slots[k].center}, Point{x + s.NodeWidth, la.slots[k].center})
			}
			e.To = la.nodes[la.slots[k].node].ID
			e.Points = append(e.Points, Point{left(la.slots[k].layer), la.slots[k].center})
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

func (la *layered) height(i int, s Sizes) int {
	if la.slots[i].node < 0 {
		return passing
	}
	return s.NodeHeight
}

// placeVertically puts every slot near the middle of those that it is joined with, in
// the order of its layer and clear of the next.
func (la *layered) placeVertically(s Sizes) {
	for _, l := range la.layers {
		y := 0
		for n, i := range l {
			if n > 0 {
				y += la.distance(l[n-1], i, s)
			}
			la.slots[i].center = y
		}
		for _, i := range l { // around 0
			la.slots[i].center -= y / 2
		}
	}
	for sweep := range sweeps {
		for n := range la.layers {
			layer, forward := n, sweep%2 == 0
			if !forward {
				layer = len(la.layers) - 1 - n
			}
			la.alignLayer(la.layers[layer], forward, s)
		}
	}
}

// distance is the least one between the centers of two slots of a layer, one below the other.
func (la *layered) distance(upper, lower int, s Sizes) int {
	return (la.height(upper, s)+1)/2 + s.GapY + (la.height(lower, s)+1)/2
}

func (la *layered) alignLayer(l []int, forward bool, s Sizes) {
	wanted := make([]int, len(l))
	for n, i := range l {
		joined := la.slots[i].after
		if forward {
			joined = la.slots[i].before
		}
		wanted[n] = la.slots[i].center
		if len(joined) > 0 {
			sum := 0
			for _, k := range joined {
				sum += la.slots[k].center
			}
			wanted[n] = sum / len(joined)
		}
	}
	// As low as the ones above need it, and, on the whole, neither above nor below what is wanted.
	off := 0
	for n, i := range l {
		la.slots[i].center = wanted[n]
		if n > 0 {
			la.slots[i].center = max(wanted[n], la.slots[l[n-1]].center+la.distance(l[n-1], i, s))
		}
		off += la.slots[i].center - wanted[n]
	}
	for _, i := range l {
		la.slots[i].center -= off / len(l)
	}
}

// stack puts the nodes below each other. An edge to the next one is a straight arrow, any
// other goes along the left side, on a lane of its own where others do.
func (la *layered) stack(s Sizes) Layout {
	var order []int
	row := make([]int, len(la.nodes))
	out := Layout{Width: s.Width, Column: true, NodeHeight: s.NodeHeight}
	for _, l := range la.layers {
		for _, i := range l {
			if k := la.slots[i].node; k >= 0 {
				row[k] = len(order)
				order = append(order, k)
			}
		}
	}
	lanes, used := map[[2]int]int{}, 0
	edges := slices.Clone(la.edges)
	slices.SortStableFunc(edges, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(row[a[1]]-row[a[0]], row[b[1]]-row[b[0]]), cmp.Compare(row[a[0]], row[b[0]]))
	})
	for _, e := range edges { // the short ones are next to the nodes
		if row[e[1]] == row[e[0]]+1 {
			continue
		}
		lane := 0
		for other, n := range lanes {
			if row[other[0]] <= row[e[1]] && row[e[0]] <= row[other[1]] {
				lane = max(lane, n+1)
			}
		}
		lanes[e] = lane
		used = max(used, lane+1)
	}
	left := margin + used*laneWidth
	if used > 0 {
		left += laneWidth / 2 // for the arrow's head
	}
	out.NodeWidth = max(1, s.Width-left-margin)
	top := func(node int) int { return margin + row[node]*(s.NodeHeight+s.GapY) }
	out.Height = 2*margin + len(order)*s.NodeHeight + max(0, len(order)-1)*s.GapY
	for _, k := range order {
		out.Nodes = append(out.Nodes, PlacedNode{la.nodes[k].ID, la.slots[k].layer, left, top(k)})
	}
	for _, e := range la.edges {
		from, to := e[0], e[1]
		edge := Edge{From: la.nodes[from].ID, To: la.nodes[to].ID}
		if lane, beside := lanes[e]; beside {
			x := left - (lane+1)*laneWidth
			// It leaves below the middle and arrives above it, so that it can be seen which way.
			y1, y2 := top(from)+s.NodeHeight*2/3, top(to)+s.NodeHeight/3
			edge.Points = []Point{{left, y1}, {x, y1}, {x, y2}, {left, y2}}
		} else {
			x := left + out.NodeWidth/2
			edge.Points = []Point{{x, top(from) + s.NodeHeight}, {x, top(to)}}
		}
		out.Edges = append(out.Edges, edge)
	}
	return out
}
