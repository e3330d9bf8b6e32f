package prtext

import (
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// Rendered is what an edit does to one target's manifests.
type Rendered struct {
	Target  string
	Spec    bool   // the Application itself changes
	Summary string // e.g. "1 added, 2 changed"; empty: the manifests stay as they are
	Diff    string // the changes in the manner of a unified diff, cut, without secrets
	Why     string // why the manifests can't be told; then there is neither of the two
	// Ignored is what of it Argo CD ignores, and Disagreement how Argo CD's rendering parts from Liftlock's; empty: nothing, or
	// that isn't known.
	Ignored, Disagreement string
}

const (
	// maxRendered bounds all diffs of a body together: the rest of it comes first.
	maxRendered = 24 << 10
	// RenderedBytes and RenderedLines are what one target's diff has at most.
	RenderedBytes = 8 << 10
	RenderedLines = 200
	// RenderedObject is how many lines of one object a body shows.
	RenderedObject = 60

	openDiffLines = 20 // of all diffs together that are shown unfolded
	openGroups    = 3  // of targets that change alike; more of them are one fold
)

// writeRendered says what the manifests gain and lose. Targets with the same
// changes share one diff.
func writeRendered(p *page, in Input) {
	if in.RenderedErr == "" && len(in.Rendered) == 0 {
		return
	}
	p.writeParagraph("### Rendered manifests")
	if in.RenderedErr != "" {
		p.writeParagraph("They could not be compared: %s", escapeText(in.RenderedErr, maxReason))
		writeDiffLink(p, in)
		return
	}
	groups := groupByChange(in.Rendered)
	open := countDiffLines(groups) <= openDiffLines
	folded := !open && len(groups) > openGroups
	if folded {
		groups = p.writeNotRendered(groups)
		targets := 0
		for i := range groups {
			targets += len(groups[i].targets)
		}
		p.writeParagraph("<details><summary>%s: %s</summary>", wording.Count(targets, "target"),
			wording.Plural(len(groups), "change", "different changes"))
	}
	left := min(maxRendered, max(0, maxBody/2-p.Len()))
	for i, g := range groups {
		r := g.Rendered
		p.writeLine("%s", g.describe())
		if r.Diff == "" {
			continue
		}
		p.writeGap()
		if len(r.Diff) > left {
			p.writeLine("  *Its diff doesn't fit here: %s.*", diffLocation(in))
			continue
		}
		left -= len(r.Diff)
		if open {
			writeFenced(p, "  ", r.Diff)
			if i < len(groups)-1 {
				p.writeGap()
			}
			continue
		}
		p.writeParagraph("  <details><summary>Show %s</summary>", wording.Count(countLines(r.Diff), "line"))
		writeFenced(p, "  ", r.Diff)
		p.writeGap()
		p.writeLine("  </details>")
		if i < len(groups)-1 {
			p.writeGap()
		}
	}
	p.writeGap()
	if folded {
		p.writeParagraph("</details>")
	}
	writeDiffLink(p, in)
}

// writeNotRendered writes the groups that can't be told, which no fold may hide, and gives
// the others.
func (p *page) writeNotRendered(groups []renderedGroup) (others []renderedGroup) {
	var rows []string
	for _, g := range groups {
		if g.Why == "" {
			others = append(others, g)
			continue
		}
		rows = append(rows, g.describe())
	}
	p.writeFoldedAfter(openGroups, "", rows)
	return others
}

// describe is the group's targets and what happens to them, an item of a list.
func (r *renderedGroup) describe() string {
	return "- " + targetNames(r.targets) + ": " + r.describeOutcome(func(s string) string { return escapeText(s, maxReason) })
}

// countDiffLines counts the lines that groups of targets have to show.
func countDiffLines(groups []renderedGroup) int {
	n := 0
	for i := range groups {
		n += countLines(groups[i].Diff)
	}
	return n
}

// countLines counts the lines of a diff, whose last may end or not.
func countLines(diff string) int {
	if diff == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(diff, "\n"), "\n") + 1
}

// writeDiffLink links to all of it: what is folded here is cut.
func writeDiffLink(p *page, in Input) {
	if in.DiffURL == "" {
		return
	}
	p.writeParagraph("[The whole difference](%s).", escapeURL(in.DiffURL))
}

// diffLocation says where a diff is that the body has no room for.
func diffLocation(in Input) string {
	if in.DiffURL != "" {
		return "the link below has it"
	}
	return "`" + commandPrefix(in) + "diff` shows it"
}

// renderedGroup is the targets for which a change is the same.
type renderedGroup struct {
	Rendered
	targets []string
}

// groupByChange groups targets, in the order of the first of each group.
func groupByChange(list []Rendered) []renderedGroup {
	var out []renderedGroup
	at := map[Rendered]int{}
	for _, r := range list {
		key := r
		key.Target = ""
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, renderedGroup{Rendered: key})
		}
		out[i].targets = append(out[i].targets, r.Target)
	}
	return out
}

// describeOutcome is what happens to the group's targets, in one line; said makes
// outside text safe where it is written.
func (r *renderedGroup) describeOutcome(said func(string) string) string {
	out := r.describeChange(said)
	if r.Ignored != "" {
		out += "; Argo CD ignores " + said(r.Ignored) + " and says Synced whether that arrives or not"
	}
	if r.Disagreement != "" {
		out += "; Liftlock renders it otherwise: " + said(r.Disagreement)
	}
	return out
}

func (r *renderedGroup) describeChange(said func(string) string) string {
	switch {
	case r.Why != "":
		return "not rendered: " + said(r.Why)
	case r.Summary == "" && r.Spec:
		return "the Application changes, its manifests stay as they are"
	case r.Summary == "":
		return "nothing changes"
	case r.Spec:
		return r.Summary + "; the Application itself changes too"
	}
	return r.Summary
}

// targetNames lists targets, not too many of them.
func targetNames(targets []string) string {
	return strings.Join(listSome(targets, openRows, func(t string) string { return codeSpan(t, maxName) }), ", ")
}

// writeFenced writes a diff as a block that nothing in it can end.
func writeFenced(p *page, indent, diff string) {
	fence := diffFence(diff)
	p.writeLine("%s%sdiff", indent, fence)
	for l := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		p.writeLine("%s%s", indent, l)
	}
	p.writeLine("%s%s", indent, fence)
}

// DiffText answers /liftlock diff: what a pull request changes in files and in
// rendered manifests. The text is for Answer, and readable as it is.
func DiffText(in Input) string {
	var p page
	p.writeParagraph("These fields change:")
	for i, c := range in.Changes {
		if i == maxRows {
			p.writeLine("- and %d more", len(in.Changes)-i)
			break
		}
		p.writeLine("- %s: %s to %s, in %s", quoteName(c.Path), quoteName(c.Old), quoteName(c.New), quoteName(c.File))
	}
	if in.RenderedErr != "" {
		p.writeGap()
		p.writeLine("The rendered manifests could not be compared: %s", replyText(in.RenderedErr))
	}
	writeProseRendered(&p, in.Rendered)
	return p.String()
}

// writeProseRendered writes into an answer what manifests gain and lose, a difference for all
// targets with the same.
func writeProseRendered(p *page, rendered []Rendered) {
	left := maxRendered
	for _, g := range groupByChange(rendered) {
		p.writeGap()
		names := make([]string, len(g.targets))
		for i, t := range g.targets {
			names[i] = quoteName(t)
		}
		p.writeParagraph("%s: %s", strings.Join(names[:min(len(names), openRows)], ", "), g.describeOutcome(replyText))
		if len(g.Diff) > left {
			p.writeParagraph("- its difference doesn't fit here")
			continue
		}
		left -= len(g.Diff)
		writeProseDiff(p, g.Diff)
	}
}

// writeProseDiff writes a difference into an answer.
func writeProseDiff(p *page, diff string) {
	if diff == "" {
		return
	}
	p.writeLine("%s", proseDiff)
	for l := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		if l == proseEnd {
			l = " " + l
		}
		p.writeLine("%s", l)
	}
	p.writeLine("%s", proseEnd)
}

func commandPrefix(in Input) string {
	if in.BareCommands {
		return "/"
	}
	return "/liftlock "
}
