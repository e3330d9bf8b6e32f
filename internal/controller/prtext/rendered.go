package prtext

import (
	"strings"
)

// Rendered is what an edit does to one target's manifests.
type Rendered struct {
	Target  string
	Spec    bool   // the Application itself changes
	Summary string // e.g. "1 added, 2 changed"; empty: the manifests stay as they are
	Diff    string // the changes in the manner of a unified diff, cut, without secrets
	Why     string // why the manifests can't be told; then there is neither of the two
}

const (
	// maxRendered bounds all diffs of a body together: the rest of it comes first.
	maxRendered = 24 << 10
	// RenderedBytes and RenderedLines are what one target's diff has at most.
	RenderedBytes = 8 << 10
	RenderedLines = 200
	// RenderedObject is how many lines of one object a body shows.
	RenderedObject = 60
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
	left := min(maxRendered, max(0, maxBody/2-p.Len()))
	for _, g := range groupByChange(in.Rendered) {
		r := g.Rendered
		p.writeLine("- %s: %s", targetNames(g.targets), g.describeOutcome(func(s string) string { return escapeText(s, maxReason) }))
		if r.Diff == "" {
			continue
		}
		if len(r.Diff) > left {
			p.writeGap()
			p.writeLine("  *Its diff doesn't fit here: %s.*", diffLocation(in))
			continue
		}
		left -= len(r.Diff)
		p.writeGap()
		p.writeParagraph("  <details><summary>Show</summary>")
		writeFenced(p, "  ", r.Diff)
		p.writeGap()
		p.writeParagraph("  </details>")
	}
	p.writeGap()
	writeDiffLink(p, in)
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
func (g *renderedGroup) describeOutcome(said func(string) string) string {
	switch {
	case g.Why != "":
		return "can't be rendered here: " + said(g.Why)
	case g.Summary == "" && g.Spec:
		return "the Application changes, its manifests stay as they are"
	case g.Summary == "":
		return "nothing changes"
	case g.Spec:
		return g.Summary + "; the Application itself changes too"
	}
	return g.Summary
}

// targetNames lists targets, not too many of them.
func targetNames(targets []string) string {
	return strings.Join(listSome(targets, openRows, func(t string) string { return codeSpan(t, maxName) }), ", ")
}

// writeFenced writes a diff as a block that nothing in it can end.
func writeFenced(p *page, indent, diff string) {
	longest, run := 0, 0
	for _, r := range diff {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
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
	for _, g := range groupByChange(in.Rendered) {
		p.writeGap()
		names := make([]string, len(g.targets))
		for i, t := range g.targets {
			names[i] = quoteName(t)
		}
		p.writeParagraph("%s: %s", strings.Join(names[:min(len(names), openRows)], ", "), g.describeOutcome(replyText))
		if g.Diff != "" {
			for l := range strings.SplitSeq(strings.TrimSuffix(g.Diff, "\n"), "\n") {
				p.writeLine("- `%s`", strings.ReplaceAll(cleanLine(l, maxLine/2), "`", "'"))
			}
		}
	}
	return p.String()
}

func commandPrefix(in Input) string {
	if in.BareCommands {
		return "/"
	}
	return "/liftlock "
}
