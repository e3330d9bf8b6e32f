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

// Arrange lays nodes out: by layers from left to right, every node after all those that it
// comes after, with few crossings; or in one column where that is wider than there is room.
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

func (g *layered) addSlot(node, layer int) int {
	for len(g.layers) <= layer {
		g.layers = append(g.layers, nil)
	}
	g.slots = append(g.slots, slot{node: node, layer: layer})
	g.layers[layer] = append(g.layers[layer], len(g.slots)-1)
	return len(g.slots) - 1
}

func (g *layered) join(from, to int) {
	g.slots[from].after = append(g.slots[from].after, to)
	g.slots[to].before = append(g.slots[to].before, from)
}

// untangle orders the layers so that few edges cross: each slot goes to the middle of
// those that it is joined with, forth and back, and the best order is kept.
func (g *layered) untangle() {
	best, fewest := cloneLayers(g.layers), g.crossings()
	for sweep := range sweeps {
		if fewest == 0 {
			break
		}
		for n := range g.layers {
			layer, forward := n, sweep%2 == 0
			if !forward {
				layer = len(g.layers) - 1 - n
			}
			g.sortLayer(layer, forward)
		}
		if c := g.crossings(); c < fewest {
			best, fewest = cloneLayers(g.layers), c
		}
	}
	g.layers = best
}

func (g *layered) sortLayer(layer int, forward bool) {
	positions := g.positions()
	weight := map[int]float64{}
	for _, i := range g.layers[layer] {
		joined := g.slots[i].after
		if forward {
			joined = g.slots[i].before
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
	slices.SortStableFunc(g.layers[layer], func(a, b int) int { return cmp.Compare(weight[a], weight[b]) })
}

// positions are the slots' places in their layers.
func (g *layered) positions() []int {
	out := make([]int, len(g.slots))
	for _, l := range g.layers {
		for n, i := range l {
			out[i] = n
		}
	}
	return out
}

func (g *layered) crossings() int {
	positions, n := g.positions(), 0
	for _, l := range g.layers {
		type line struct{ from, to int }
		var lines []line
		for _, i := range l {
			for _, k := range g.slots[i].after {
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
func (g *layered) spread(s Sizes, width int) Layout {
	g.placeVertically(s)
	top, bottom := 0, 0
	for i := range g.slots {
		h := g.height(i, s)
		if i == 0 || g.slots[i].center-h/2 < top {
			top = g.slots[i].center - h/2
		}
		bottom = max(bottom, g.slots[i].center+h-h/2)
	}
	for i := range g.slots {
		g.slots[i].center += margin - top
	}
	out := Layout{Width: width, Height: bottom - top + 2*margin, NodeWidth: s.NodeWidth, NodeHeight: s.NodeHeight}
	left := func(layer int) int { return margin + layer*(s.NodeWidth+s.GapX) }
	for layer, l := range g.layers {
		for _, i := range l {
			if k := g.slots[i].node; k >= 0 {
				out.Nodes = append(out.Nodes, PlacedNode{g.nodes[k].ID, layer, left(layer), g.slots[i].center - s.NodeHeight/2})
			}
		}
	}
	for i := range g.nodes { // the first slots are the nodes'
		for _, k := range g.slots[i].after {
			e := Edge{From: g.nodes[i].ID, curved: true, Points: []Point{{left(g.slots[i].layer) + s.NodeWidth, g.slots[i].center}}}
			for ; g.slots[k].node < 0; k = g.slots[k].after[0] {
				x := left(g.slots[k].layer)
				e.Points = append(e.Points, Point{x, g.slots[k].center}, Point{x + s.NodeWidth, g.slots[k].center})
			}
			e.To = g.nodes[g.slots[k].node].ID
			e.Points = append(e.Points, Point{left(g.slots[k].layer), g.slots[k].center})
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

func (g *layered) height(i int, s Sizes) int {
	if g.slots[i].node < 0 {
		return passing
	}
	return s.NodeHeight
}

// placeVertically puts every slot near the middle of those that it is joined with, in
// the order of its layer and clear of the next.
func (g *layered) placeVertically(s Sizes) {
	for _, l := range g.layers {
		y := 0
		for n, i := range l {
			if n > 0 {
				y += g.distance(l[n-1], i, s)
			}
			g.slots[i].center = y
		}
		for _, i := range l { // around 0
			g.slots[i].center -= y / 2
		}
	}
	for sweep := range sweeps {
		for n := range g.layers {
			layer, forward := n, sweep%2 == 0
			if !forward {
				layer = len(g.layers) - 1 - n
			}
			g.alignLayer(g.layers[layer], forward, s)
		}
	}
}

// distance is the least one between the centers of two slots of a layer, one below the other.
func (g *layered) distance(upper, lower int, s Sizes) int {
	return (g.height(upper, s)+1)/2 + s.GapY + (g.height(lower, s)+1)/2
}

func (g *layered) alignLayer(l []int, forward bool, s Sizes) {
	wanted := make([]int, len(l))
	for n, i := range l {
		joined := g.slots[i].after
		if forward {
			joined = g.slots[i].before
		}
		wanted[n] = g.slots[i].center
		if len(joined) > 0 {
			sum := 0
			for _, k := range joined {
				sum += g.slots[k].center
			}
			wanted[n] = sum / len(joined)
		}
	}
	// As low as the ones above need it, and, on the whole, neither above nor below what is wanted.
	off := 0
	for n, i := range l {
		g.slots[i].center = wanted[n]
		if n > 0 {
			g.slots[i].center = max(wanted[n], g.slots[l[n-1]].center+g.distance(l[n-1], i, s))
		}
		off += g.slots[i].center - wanted[n]
	}
	for _, i := range l {
		g.slots[i].center -= off / len(l)
	}
}

// stack puts the nodes below each other. An edge to the next one is a straight arrow, any
// other goes along the left side, on a lane of its own where others do.
func (g *layered) stack(s Sizes) Layout {
	var order []int
	row := make([]int, len(g.nodes))
	out := Layout{Width: s.Width, Column: true, NodeHeight: s.NodeHeight}
	for _, l := range g.layers {
		for _, i := range l {
			if k := g.slots[i].node; k >= 0 {
				row[k] = len(order)
				order = append(order, k)
			}
		}
	}
	lanes, used := map[[2]int]int{}, 0
	edges := slices.Clone(g.edges)
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
		out.Nodes = append(out.Nodes, PlacedNode{g.nodes[k].ID, g.slots[k].layer, left, top(k)})
	}
	for _, e := range g.edges {
		from, to := e[0], e[1]
		edge := Edge{From: g.nodes[from].ID, To: g.nodes[to].ID}
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
