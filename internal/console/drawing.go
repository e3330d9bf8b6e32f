package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/graph"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxDrawn is how many environments are drawn one by one; of more, those alike are one.
	maxDrawn = 16
	// phoneWidth is what the drawing in one column has, in pixels: a phone's 390 without
	// the page's margins.
	phoneWidth = 358
	// lineLength is how many characters of a line fit into a node.
	lineLength  = 30
	titleLength = 24
)

// drawingSizes are those of the drawing with the layers side by side.
var drawingSizes = graph.Sizes{NodeWidth: 232, NodeHeight: 84, GapX: 44, GapY: 18}

// pipelineGraph is a pipeline as it is drawn: twice, since a page doesn't know how wide its
// window is, with the same nodes.
type pipelineGraph struct {
	Name   string // what it is of
	Nodes  []graphNode
	Height int // of each node
	Wide   graph.Layout
	Narrow graph.Layout
}

// graphNode is what is said in one of a drawing's boxes.
type graphNode struct {
	ID    string
	Key   string // names it on the page; another where it comes after others, or has other members
	Title string
	After []string
	Tone  string
	Lines []graphLine
	Link  string // empty: there is none
	Names string // of the environments, where they are several
}

// graphLine is a line of a node.
type graphLine struct {
	Text string // as it fits
	Full string // all of it
	Tone string // of its icon; empty: it has none
}

func newGraphLine(tone, text string) graphLine {
	return graphLine{clipLine(text, lineLength), text, tone}
}

// newCountLines are lines of counts, each of which is whole: what doesn't fit goes to the next line. All of it is said by
// the first.
func newCountLines(tone, head string, counts []string) []graphLine {
	var out []graphLine
	line := head
	for i, c := range counts {
		if i+1 < len(counts) {
			c += ","
		}
		switch {
		case line == "":
			line = c
		case len([]rune(line+" "+c)) > lineLength:
			out, line = append(out, graphLine{Text: line}), c
		default:
			line += " " + c
		}
	}
	out = append(out, graphLine{Text: line})
	out[0].Full, out[0].Tone = strings.TrimSpace(head+" "+strings.Join(counts, ", ")), tone
	return out
}

// clipLine cuts a text to a number of characters.
func clipLine(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return strings.TrimRight(string(r[:most-1]), " ") + "…"
	}
	return text
}

// drawGraph lays a pipeline's environments out; nil where it isn't known how they follow
// each other.
func drawGraph(name string, p *api.Pipeline, describe func(*graph.Group) graphNode) *pipelineGraph {
	if len(p.Graph) == 0 {
		return nil
	}
	groups := graph.Collapse(graphNodes(p), maxDrawn)
	out := &pipelineGraph{Name: name}
	nodes := make([]graph.Node, 0, len(groups))
	for i := range groups {
		g := &groups[i]
		nodes = append(nodes, g.Node)
		n := describe(g)
		n.ID, n.Key, n.Title, n.After = g.ID, nodeKey(g), clipLine(g.ID, titleLength), g.After
		if len(g.Members) > 1 {
			n.Title = fmt.Sprintf("%s ×%d", clipLine(g.ID, titleLength-4), len(g.Members))
			n.Names = strings.Join(g.Members, ", ")
		}
		out.Nodes = append(out.Nodes, n)
	}
	wide := drawingSizes
	for i := range out.Nodes {
		wide.NodeHeight = max(wide.NodeHeight, lineAt(len(out.Nodes[i].Lines), lineMargin))
	}
	narrow := wide
	narrow.Width = phoneWidth
	out.Height, out.Wide, out.Narrow = wide.NodeHeight, graph.Arrange(nodes, wide), graph.Arrange(nodes, narrow)
	return out
}

func nodeKey(g *graph.Group) string {
	return hashID("g", slices.Concat([]string{g.ID}, g.After, []string{""}, g.Members)...)
}

// graphDrawing is one of a graph's drawings, for its template.
type graphDrawing struct {
	Graph  *pipelineGraph
	Layout *graph.Layout
	Kind   string // wide or narrow
}

func newGraphDrawing(g *pipelineGraph, l graph.Layout, kind string) graphDrawing {
	return graphDrawing{g, &l, kind}
}

// lineMargin is what a node has below its last line, from where the next would be.
const lineMargin = -10

// lineAt is where a line of a node is, from its top.
func lineAt(line, offset int) int { return 40 + 18*line + offset }

// Node is a node by its name.
func (p *pipelineGraph) Node(id string) *graphNode {
	return &p.Nodes[slices.IndexFunc(p.Nodes, func(n graphNode) bool { return n.ID == id })]
}

// drawPipeline draws a pipeline with how many of its components are how in each environment.
func (se *server) drawPipeline(p *pipelineUnits) *pipelineGraph {
	owner := ""
	if se.reader.isAmbiguous(p.Name) {
		owner = p.Repository
	}
	return drawGraph("the pipeline "+p.Name, &p.Pipeline, func(g *graph.Group) graphNode {
		q := gridQuery{Show: showAll, Environment: g.Members[0], Sort: sortByNeed, Page: 1}
		if len(g.Members) > 1 {
			q.Environment, _, _ = strings.Cut(g.ID, " ")
		}
		n := graphNode{Link: gridURL(se.pages.pageURL("pipelines", p.Name), owner, &q)}
		n.Tone, n.Lines = tallyEnvironments(p.units, g.Members)
		return n
	})
}

// tallyEnvironments says of all components what is in some environments, what is on its way
// into them, and what waits and why.
func tallyEnvironments(units []*shownUnit, members []string) (tone string, lines []graphLine) {
	states, waits := map[string]int{}, map[string]int{}
	all, incoming, waiting, attention := 0, 0, 0, 0
	for _, u := range units {
		for i := range u.component.Environments {
			e := &u.component.Environments[i]
			if !slices.Contains(members, e.Environment) {
				continue
			}
			all++
			states[e.State]++
			if e.Attention() {
				attention++
			}
			if e.Incoming != nil && e.Incoming.Pull != nil {
				incoming++
			}
			if e.Waiting() {
				waiting++
				for _, w := range waitingFor(e) {
					waits[w]++
				}
			}
		}
	}
	if all == 0 {
		return "quiet", []graphLine{newGraphLine("", "no component is here")}
	}
	order := sortedCounts(states, severity)
	tone = stateTone(order[0])
	if attention > 0 && severity(order[0]) > slices.Index(toneOrder, "hold") {
		tone = "hold"
	}
	var parts []string
	for _, s := range order {
		parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
	}
	lines = append(lines, newCountLines(stateTone(order[0]), "", parts)...)
	switch {
	case incoming > 0 && attention > 0:
		lines = append(lines, newGraphLine("busy", fmt.Sprintf("%d coming, %s a look", incoming, needs(attention))))
	case incoming > 0:
		lines = append(lines, newGraphLine("busy", fmt.Sprintf("%d coming", incoming)))
	case attention > 0:
		lines = append(lines, newGraphLine("hand", needs(attention)+" a look"))
	}
	if waiting > 0 {
		why := sortedCounts(waits, func(w string) int { return -waits[w] })
		for i, w := range why {
			why[i] = fmt.Sprintf("%s (%d)", w, waits[w])
		}
		text := fmt.Sprintf("%d waiting", waiting)
		if len(why) > 0 {
			text += ":"
		}
		lines = append(lines, newCountLines("wait", text, why)...)
	}
	return tone, lines
}

func needs(n int) string {
	if n == 1 {
		return "1 needs"
	}
	return fmt.Sprintf("%d need", n)
}

// waitingFor names the gates that an environment's release waits for, or, without any, the
// codes of the reasons.
func waitingFor(e *api.Environment) (out []string) {
	if e.Incoming != nil {
		for _, g := range e.Incoming.Gates {
			if g.Outcome != "pass" {
				out = append(out, g.Gate)
			}
		}
	}
	if len(out) == 0 {
		for _, w := range e.Why {
			out = append(out, string(w.Code))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sortedCounts are a map's keys in an order, and by name.
func sortedCounts(m map[string]int, order func(string) int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) })
	return keys
}

// isChain says that each environment comes right after the one before it, and after no other:
// then a row of them says it all.
func isChain(p *api.Pipeline) bool {
	for i, e := range p.Graph {
		if i == 0 && len(e.After) > 0 || i > 0 && !slices.Equal(e.After, []string{p.Graph[i-1].Name}) {
			return false
		}
	}
	return len(p.Graph) > 0
}

// drawComponent draws a pipeline with what one component has in each environment.
func drawComponent(p *api.Pipeline, comp *api.Component) *pipelineGraph {
	return drawGraph(comp.Component, p, func(g *graph.Group) graphNode {
		cell := buildCell(comp, g)
		if len(g.Members) > 1 {
			tone, lines := tallyEnvironments([]*shownUnit{{component: *comp}}, g.Members)
			return graphNode{Tone: tone, Lines: lines}
		}
		if cell.Env == nil {
			return graphNode{Tone: "quiet", Lines: []graphLine{newGraphLine("", "not in this environment")}}
		}
		return graphNode{Tone: stateTone(cell.Env.State), Lines: describeNode(cell.Env), Link: "#env-" + cell.Env.Environment}
	})
}

// describeNode says what is in an environment, what comes, and what that waits for.
func describeNode(e *api.Environment) []graphLine {
	lines := []graphLine{newGraphLine(stateTone(e.State), cmp.Or(e.Name, "nothing that can be read")+", "+e.State)}
	switch {
	case e.Revert != nil:
		lines = append(lines, newGraphLine("undo", fmt.Sprintf("revert %s is open", &e.Revert.Pull)))
	case e.Incoming != nil:
		in := e.Incoming
		text := cmp.Or(in.Name, wording.Short(in.Release)) + " " + in.State
		if in.Pull != nil {
			text += fmt.Sprintf(" in %s", in.Pull)
		}
		lines = append(lines, newGraphLine(stateTone(in.State), text))
	}
	if waits := e.WaitReasons(); len(waits) > 0 && waits[0] != e.Reason {
		lines = append(lines, newGraphLine("wait", waits[0]))
	}
	return lines
}
