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

// rendered says what the manifests gain and lose. Targets with the same
// changes share one diff.
func rendered(p *page, in Input) {
	if in.RenderedErr == "" && len(in.Rendered) == 0 {
		return
	}
	p.line("### Rendered manifests")
	p.gap()
	if in.RenderedErr != "" {
		p.line("They could not be compared: %s", text(in.RenderedErr, maxReason))
		p.gap()
		whole(p, in)
		return
	}
	left := min(maxRendered, max(0, maxBody/2-p.Len()))
	for _, g := range alike(in.Rendered) {
		r := g.Rendered
		p.line("- %s: %s", targetNames(g.targets), g.outcome(func(s string) string { return text(s, maxReason) }))
		if r.Diff == "" {
			continue
		}
		if len(r.Diff) > left {
			p.gap()
			p.line("  *Its diff doesn't fit here: %s.*", elsewhere(in))
			continue
		}
		left -= len(r.Diff)
		p.gap()
		p.line("  <details><summary>Show</summary>")
		p.gap()
		fenced(p, "  ", r.Diff)
		p.gap()
		p.line("  </details>")
		p.gap()
	}
	p.gap()
	whole(p, in)
}

// whole links to all of it: what is folded here is cut.
func whole(p *page, in Input) {
	if in.Whole == "" {
		return
	}
	p.line("[The whole difference](%s).", address(in.Whole))
	p.gap()
}

// elsewhere says where a diff is that the body has no room for.
func elsewhere(in Input) string {
	if in.Whole != "" {
		return "the link below has it"
	}
	return "`" + prefix(in) + "diff` shows it"
}

// group is the targets for which a change is the same.
type group struct {
	Rendered
	targets []string
}

// alike groups targets, in the order of the first of each group.
func alike(list []Rendered) []group {
	var out []group
	at := map[Rendered]int{}
	for _, r := range list {
		key := r
		key.Target = ""
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, group{Rendered: key})
		}
		out[i].targets = append(out[i].targets, r.Target)
	}
	return out
}

// outcome is what happens to the group's targets, in one line; said makes
// outside text safe where it is written.
func (g *group) outcome(said func(string) string) string {
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
	var out []string
	for i, t := range targets {
		if i == openRows {
			out = append(out, plural(len(targets)-i, "more", "more"))
			break
		}
		out = append(out, code(t, maxName))
	}
	return strings.Join(out, ", ")
}

// fenced writes a diff as a block that nothing in it can end.
func fenced(p *page, indent, diff string) {
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
	p.line("%s%sdiff", indent, fence)
	for l := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		p.line("%s%s", indent, l)
	}
	p.line("%s%s", indent, fence)
}

// DiffText answers /liftlock diff: what a pull request changes in files and in
// rendered manifests. The text is for Answer, and readable as it is.
func DiffText(in Input) string {
	var p page
	p.line("These fields change:")
	p.gap()
	for i, c := range in.Changes {
		if i == maxRows {
			p.line("- and %d more", len(in.Changes)-i)
			break
		}
		p.line("- %s: %s to %s, in %s", quote(c.Path), quote(c.Old), quote(c.New), quote(c.File))
	}
	if in.RenderedErr != "" {
		p.gap()
		p.line("The rendered manifests could not be compared: %s", line(in.RenderedErr))
	}
	for _, g := range alike(in.Rendered) {
		p.gap()
		names := make([]string, len(g.targets))
		for i, t := range g.targets {
			names[i] = quote(t)
		}
		p.line("%s: %s", strings.Join(names[:min(len(names), openRows)], ", "), g.outcome(line))
		p.gap()
		if g.Diff != "" {
			for l := range strings.SplitSeq(strings.TrimSuffix(g.Diff, "\n"), "\n") {
				p.line("- `%s`", strings.ReplaceAll(clean(l, maxLine/2), "`", "'"))
			}
		}
	}
	return p.String()
}

func prefix(in Input) string {
	if in.Bare {
		return "/"
	}
	return "/liftlock "
}
