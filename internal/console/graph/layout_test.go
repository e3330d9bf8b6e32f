package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var sizes = Sizes{NodeWidth: 180, NodeHeight: 60, GapX: 50, GapY: 16}

func nodesOf(pairs ...string) (out []Node) {
	for _, p := range pairs {
		var n Node
		var after string
		fmt.Sscanf(p, "%s %s", &n.ID, &after)
		if after != "" {
			n.After = strings.Split(after, ",")
		}
		out = append(out, n)
	}
	return out
}

func edgesOf(l Layout) (out []string) {
	for _, e := range l.Edges {
		out = append(out, e.From+">"+e.To)
	}
	slices.Sort(out)
	return out
}

func TestForkHasNoEdgeBetweenItsTines(t *testing.T) {
	nodes := nodesOf("dev", "qa dev", "prod-eu qa", "prod-us qa")
	for _, width := range []int{0, 390} {
		s := sizes
		s.Width = width
		l := Arrange(nodes, s)
		if diff := cmp.Diff([]string{"dev>qa", "qa>prod-eu", "qa>prod-us"}, edgesOf(l)); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
	l := Arrange(nodes, sizes)
	want := []PlacedNode{{"dev", 0, 2, 40}, {"qa", 1, 232, 40}, {"prod-eu", 2, 462, 2}, {"prod-us", 2, 462, 78}}
	if diff := cmp.Diff(want, l.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if got := l.Edges[1].Path(); got != "M412 70C437 70 437 32 462 32" {
		t.Errorf("the way from qa to prod-eu is %s", got)
	}
}

func TestJoinAndLongEdge(t *testing.T) {
	// prod comes after both stages, and right after dev as well.
	l := Arrange(nodesOf("dev", "a dev", "b dev", "prod a,b,dev"), sizes)
	if diff := cmp.Diff([]string{"a>prod", "b>prod", "dev>a", "dev>b", "dev>prod"}, edgesOf(l)); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	for _, e := range l.Edges {
		if want := map[bool]int{true: 4, false: 2}[e.From == "dev" && e.To == "prod"]; len(e.Points) != want {
			t.Errorf("%s to %s has %d points, not %d", e.From, e.To, len(e.Points), want)
		}
	}
	mustBeClear(t, l)
}

func TestColumnFitsAPhone(t *testing.T) {
	s := sizes
	s.Width = 358
	l := Arrange(nodesOf("dev", "a dev", "b dev", "prod a,b,dev"), s)
	if !l.Column || l.Width != 358 {
		t.Fatalf("column %t, width %d", l.Column, l.Width)
	}
	mustBeClear(t, l)
}

func TestCrossingsAreUntangled(t *testing.T) {
	l := Arrange(nodesOf("a", "b", "x b", "y a"), sizes)
	var order []string
	for _, n := range l.Nodes {
		order = append(order, n.ID)
	}
	if diff := cmp.Diff([]string{"a", "b", "y", "x"}, order); diff != "" {
		t.Errorf("the order of the nodes (-want +got):\n%s", diff)
	}
}

func TestNonsenseIsDrawnWithoutIt(t *testing.T) {
	for name, nodes := range map[string][]Node{"none": nil, "unknown": nodesOf("a gone"), "itself": nodesOf("a a"), "circle": nodesOf("a c", "b a", "c b"), "edge twice": nodesOf("a", "b a,a")} {
		t.Run(name, func(t *testing.T) { mustBeClear(t, Arrange(nodes, sizes)) })
	}
}

func TestEveryLayoutIsClear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		s := sizes
		s.Width = rapid.SampledFrom([]int{0, 358, 900}).Draw(t, "width")
		l := Arrange(nodes, s)
		want := []string{}
		for _, n := range nodes {
			for _, a := range n.After {
				want = append(want, a+">"+n.ID)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, append([]string{}, edgesOf(l)...)); diff != "" {
			t.Fatalf("edges (-want +got):\n%s", diff)
		}
		if len(l.Nodes) != len(nodes) {
			t.Fatalf("%d of %d nodes", len(l.Nodes), len(nodes))
		}
		mustBeClear(t, l)
		if diff := cmp.Diff(l, Arrange(nodes, s), cmp.AllowUnexported(Edge{})); diff != "" {
			t.Fatalf("not the same twice:\n%s", diff)
		}
	})
}

func drawNodes(t *rapid.T) []Node {
	nodes := make([]Node, rapid.IntRange(1, 12).Draw(t, "nodes"))
	for i := range nodes {
		nodes[i].ID = fmt.Sprintf("e%d", i)
		for k := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				nodes[i].After = append(nodes[i].After, nodes[k].ID)
			}
		}
	}
	return nodes
}

// mustBeClear holds that everything is inside, no node lies on another, and no edge on a
// node; and that edges begin and end at theirs.
func mustBeClear(t interface {
	Helper()
	Errorf(string, ...any)
}, l Layout) {
	t.Helper()
	at := map[string]PlacedNode{}
	for i, n := range l.Nodes {
		if n.X < 0 || n.Y < 0 || n.X+l.NodeWidth > l.Width || n.Y+l.NodeHeight > l.Height {
			t.Errorf("%s at %d,%d sticks out of %d×%d", n.ID, n.X, n.Y, l.Width, l.Height)
		}
		for _, o := range l.Nodes[i+1:] {
			if n.X < o.X+l.NodeWidth && o.X < n.X+l.NodeWidth && n.Y < o.Y+l.NodeHeight && o.Y < n.Y+l.NodeHeight {
				t.Errorf("%s and %s lie on each other", n.ID, o.ID)
			}
		}
		at[n.ID] = n
	}
	for _, e := range l.Edges {
		if at[e.From].Layer >= at[e.To].Layer {
			t.Errorf("%s to %s doesn't lead forward", e.From, e.To)
		}
		if !onBorder(e.Points[0], at[e.From], l) || !onBorder(e.Points[len(e.Points)-1], at[e.To], l) {
			t.Errorf("%s to %s doesn't begin and end at its nodes: %v", e.From, e.To, e.Points)
		}
		for _, p := range e.trace() {
			if p.X < 0 || p.Y < 0 || p.X > float64(l.Width) || p.Y > float64(l.Height) {
				t.Errorf("%s to %s leaves the picture at %v", e.From, e.To, p)
			}
			for _, n := range l.Nodes {
				if p.X > float64(n.X) && p.X < float64(n.X+l.NodeWidth) && p.Y > float64(n.Y) && p.Y < float64(n.Y+l.NodeHeight) {
					t.Errorf("%s to %s passes through %s at %v", e.From, e.To, n.ID, p)
				}
			}
		}
	}
}

func onBorder(p Point, n PlacedNode, l Layout) bool {
	inside := p.X >= n.X && p.X <= n.X+l.NodeWidth && p.Y >= n.Y && p.Y <= n.Y+l.NodeHeight
	return inside && (p.X == n.X || p.X == n.X+l.NodeWidth || p.Y == n.Y || p.Y == n.Y+l.NodeHeight)
}

type spot struct{ X, Y float64 }

// trace are points all along an edge, by the same curves as Path.
func (e *Edge) trace() (out []spot) {
	for i := 1; i < len(e.Points); i++ {
		p, q := e.Points[i-1], e.Points[i]
		for k := range 41 {
			u := float64(k) / 40
			s := spot{float64(p.X) + u*float64(q.X-p.X), float64(p.Y) + u*float64(q.Y-p.Y)}
			if e.curved && p.Y != q.Y {
				v, mid := 1-u, float64((p.X+q.X)/2)
				s.X = v*v*v*float64(p.X) + 3*v*v*u*mid + 3*v*u*u*mid + u*u*u*float64(q.X)
				s.Y = v*v*v*float64(p.Y) + 3*v*v*u*float64(p.Y) + 3*v*u*u*float64(q.Y) + u*u*u*float64(q.Y)
			}
			out = append(out, s)
		}
	}
	return out
}
