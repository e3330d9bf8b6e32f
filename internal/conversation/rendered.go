package conversation

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
		return
	}
	left := min(maxRendered, max(0, maxBody/2-p.Len()))
	for _, g := range alike(in.Rendered) {
		r := g.Rendered
		line := "- " + targetNames(g.targets) + ": "
		switch {
		case r.Why != "":
			line += "can't be rendered here: " + text(r.Why, maxReason)
		case r.Summary == "" && r.Spec:
			line += "the Application changes, its manifests stay as they are"
		case r.Summary == "":
			line += "nothing changes"
		case r.Spec:
			line += r.Summary + "; the Application itself changes too"
		default:
			line += r.Summary
		}
		p.line("%s", line)
		if r.Diff == "" {
			continue
		}
		if len(r.Diff) > left {
			p.gap()
			p.line("  *Its diff doesn't fit here: `%sdiff` and the console show it.*", prefix(in))
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

// DiffText answers /liftlock diff: what the pull request changes in files and in
// rendered manifests.
func DiffText(in Input) string {
	var p page
	moves(&p, in)
	rendered(&p, in)
	return strings.TrimRight(p.String(), "\n")
}

func prefix(in Input) string {
	if in.Bare {
		return "/"
	}
	return "/liftlock "
}
