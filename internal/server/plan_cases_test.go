package server_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// planCase is a random set of components in environments, and what happens to them.
type planCase struct {
	components   []string
	environments []planEnvironment // in the order of the pipeline, sources first
	layout       string            // directories, second (two overlays everywhere), shared (one file for all environments of a component) or branches
	batch        bool              // batch: environment
	limit        int               // openPerEnvironment
	events       []planEvent
}

// planEnvironment is an environment of a case.
type planEnvironment struct {
	name  string
	after []string
	extra string // a further line of its entry
}

// planGraphs are the environments that are drawn.
var planGraphs = map[string][]planEnvironment{
	"line":    {{name: "dev"}, {name: "qa", after: []string{"dev"}}, {name: "prod", after: []string{"qa"}}},
	"fork":    {{name: "dev"}, {name: "qa", after: []string{"dev"}}, {name: "prod-eu", after: []string{"qa"}}, {name: "prod-us", after: []string{"qa"}}},
	"join":    {{name: "dev"}, {name: "qa", after: []string{"dev"}}, {name: "perf", after: []string{"dev"}}, {name: "prod", after: []string{"qa", "perf"}}},
	"sources": {{name: "dev"}, {name: "lab"}, {name: "qa", after: []string{"dev", "lab"}}, {name: "prod", after: []string{"qa"}}},
}

// planEvent is one thing that somebody does.
type planEvent struct {
	kind         string
	components   []string
	environments []string
	tag          string
	pick         int // which of those that there are then
}

func (p planEvent) String() string {
	return fmt.Sprintf("%s %v %v %s %d", p.kind, p.components, p.environments, p.tag, p.pick)
}

// The kinds of events; the first two are the most frequent.
const (
	planRelease = "release" // a release, an earlier one too, arrives in sources
	planMerge   = "merge"   // a person merges one of the open pull requests
	planEdit    = "edit"    // a hotfix, a rollback or a promotion by hand
	planBreak   = "break"   // a file becomes unreadable
	planMix     = "mix"     // the two overlays get different tags
	planDrop    = "drop"    // a component leaves an environment
	planOther   = "other"   // a commit that is no release
	planHold    = "hold"    // of a component, an environment or the pipeline
	planUnhold  = "unhold"  // of all that is held
	planRevert  = "revert"  // a person has what a promotion brought taken back
	planPromote = "promote" // a person has a release promoted all the same, and merges it
	planVeto    = "veto"    // a person closes an open pull request
	planLabel   = "label"   // a person holds an open pull request; the last event only
	planFlip    = "flip"    // the pipeline's batch is changed
)

func drawNames(t *rapid.T, from []string, most int, label string) []string {
	var out []string
	for range rapid.IntRange(1, most).Draw(t, label+"s") {
		out = append(out, rapid.SampledFrom(from).Draw(t, label))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// drawPlanCase draws a case. Every release is healthy where it comes: that is
// what a plan takes for granted, so no other is drawn.
func drawPlanCase(t *rapid.T) planCase {
	graph := rapid.SampledFrom([]string{"line", "line", "fork", "join", "sources"}).Draw(t, "graph")
	c := planCase{
		components:   []string{"web", "api", "db"}[:rapid.IntRange(1, 3).Draw(t, "components")],
		environments: slices.Clone(planGraphs[graph]),
		layout:       rapid.SampledFrom([]string{"directories", "directories", "second", "shared", "branches"}).Draw(t, "layout"),
		batch:        rapid.Bool().Draw(t, "batch"),
		limit:        100,
	}
	if rapid.IntRange(0, 7).Draw(t, "manual") == 0 {
		c.environments[len(c.environments)-1].extra = "open: manual"
	}
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		c.batch, c.limit, c.components = false, rapid.IntRange(1, 2).Draw(t, "limit"), []string{"web", "api", "db", "jobs"}
		c.drawLimited(t)
		return c
	}
	tags := []string{"1.0.0"}
	held := false
	for i := range rapid.IntRange(2, 8).Draw(t, "events") {
		e := c.drawEvent(t, i, tags, held)
		held = held && e.kind != planUnhold || e.kind == planHold
		tags = append(tags, e.tag)
		c.events = append(c.events, e)
	}
	if !held && rapid.IntRange(0, 5).Draw(t, "labels") == 0 {
		c.events = append(c.events, planEvent{kind: planLabel, pick: rapid.IntRange(0, 3).Draw(t, "pick")})
	}
	return c
}

// drawEvent draws the i-th event. The first is a release, without which nothing would
// ever open. tags are those that there were; held says that something is on hold.
func (p *planCase) drawEvent(t *rapid.T, i int, tags []string, held bool) planEvent {
	kinds := slices.Concat(slices.Repeat([]string{planRelease}, 6), slices.Repeat([]string{planMerge}, 8), []string{planEdit, planEdit, planBreak, planOther, planHold, planRevert, planRevert, planVeto, planFlip})
	if p.layout == "second" {
		kinds = append(kinds, planMix, planMix)
	}
	if p.layout == "directories" {
		kinds = append(kinds, planDrop)
	}
	if held {
		kinds = append(kinds, planUnhold, planUnhold, planUnhold, planUnhold)
	} else {
		kinds = append(kinds, planPromote, planPromote) // one that waits for a hold to end would be known to the server only
	}
	e := planEvent{kind: planRelease}
	if i > 0 {
		e.kind = rapid.SampledFrom(kinds).Draw(t, "kind")
	}
	sources, others := p.names(true), p.names(false)
	switch e.kind {
	case planRelease:
		e.components, e.environments, e.tag = drawNames(t, p.components, 2, "component"), drawNames(t, sources, 2, "environment"), fmt.Sprintf("2.%d.0", i)
		if len(tags) > 1 && rapid.IntRange(0, 4).Draw(t, "earlier") == 0 {
			e.tag = rapid.SampledFrom(tags).Draw(t, "tag")
		}
	case planMerge, planVeto:
		e.pick = rapid.IntRange(0, 3).Draw(t, "pick")
	case planEdit, planBreak, planMix, planDrop:
		e.components, e.environments = drawNames(t, p.components, 1, "component"), drawNames(t, slices.Concat(others, others, sources), 1, "environment")
		e.tag = rapid.SampledFrom(slices.Concat(tags, tags, []string{fmt.Sprintf("1.%d.0", i)})).Draw(t, "tag")
	case planHold:
		e.pick = rapid.IntRange(0, 2).Draw(t, "pick")
		e.components, e.environments = drawNames(t, p.components, 1, "component"), drawNames(t, others, 1, "environment")
	case planRevert, planPromote:
		e.components, e.environments = drawNames(t, p.components, 1, "component"), drawNames(t, others, 1, "environment")
	}
	return e
}

// drawLimited draws events where few pull requests may be open. Open ones keep their places
// whatever is in them, and a plan takes for granted that none is open. So no event is drawn that
// gives a component a place out of turn.
func (p *planCase) drawLimited(t *rapid.T) {
	waiting := rapid.Permutation(p.components).Draw(t, "order")
	for i := range rapid.IntRange(3, 9).Draw(t, "events") {
		kind := planRelease
		if i > 0 {
			kind = rapid.SampledFrom([]string{planRelease, planRelease, planRelease, planMerge, planMerge, planMerge, planRevert, planHold}).Draw(t, "kind")
		}
		e := planEvent{kind: kind, pick: rapid.IntRange(0, 3).Draw(t, "pick")}
		switch {
		case kind == planMerge:
		case kind == planRevert:
			e.components, e.environments = drawNames(t, p.components, 1, "component"), drawNames(t, p.names(false), 1, "environment")
		case len(waiting) == 0:
			continue
		case kind == planHold:
			e.pick, e.components, e.environments = 0, waiting[:1], p.names(true)[:1]
		default:
			e.components, e.environments, e.tag = waiting[:1], p.names(true), fmt.Sprintf("2.%d.0", i)
			waiting = waiting[1:]
		}
		p.events = append(p.events, e)
	}
}

// names are the environments that are sources, or those that aren't.
func (p *planCase) names(sources bool) []string {
	var out []string
	for _, e := range p.environments {
		if (len(e.after) == 0) == sources {
			out = append(out, e.name)
		}
	}
	return out
}

// pipelineText is the pipeline file. Everything opens by itself and nothing merges
// by itself. The times are so long that a slow machine fails no verification. With
// layout: branches it lacks these yet.
func (p *planCase) pipelineText(batch bool) string {
	const verify = "verify: {arriveWithin: 10h, timeout: 10h, healthyFor: 50ms, watch: 2m, debounce: 50ms}"
	spec := []string{fmt.Sprintf("limits: {openPerEnvironment: %d}", p.limit)}
	if batch {
		spec = append(spec, "batch: environment")
	}
	var environments []string
	for _, e := range p.environments {
		text := "name: " + e.name
		if len(e.after) > 0 {
			text += "\nafter: [" + strings.Join(e.after, ", ") + "]\nmerge: manual"
		}
		if e.extra != "" {
			text += "\n" + e.extra
		}
		environments = append(environments, text+"\n"+verify)
	}
	text := pipelineYAML(spec, environments...)
	if p.layout == "shared" {
		text = strings.NewReplacer(`- kustomizeImages: ["registry.example/*"]`, `- yaml: {files: ["tags.yaml"], paths: ["{{environment}}.tag"]}`,
			"'{{ index .path.segments 1 }}'", "'{{ .component }}'", "'{{ .path.basename }}'", "'{{ .env }}'").Replace(text)
	}
	return text
}

// branches are the environments' branches with layout: branches; else none.
func (p *planCase) branches() map[string]string {
	if p.layout != "branches" {
		return nil
	}
	out := map[string]string{}
	for _, e := range p.environments {
		out[e.name] = "env/" + e.name
	}
	out[p.environments[len(p.environments)-1].name] = "main"
	return out
}
