package prtext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
)

// page collects a text's lines.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

func (p *page) gap() { p.WriteByte('\n') }

// folded writes lines that belong together: the first ones openly, the rest
// folded, and what is past maxFolded only counted. head is a table's head, empty
// for a list.
func (p *page) folded(head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	open := lines[:min(len(lines), openRows)]
	fold := lines[len(open):min(len(lines), maxFolded)]
	p.block(head, open)
	if len(fold) == 0 {
		return
	}
	p.line("<details><summary>%d more</summary>", len(lines)-len(open))
	p.gap()
	p.block(head, fold)
	if cut := len(lines) - len(open) - len(fold); cut > 0 {
		p.line("And %d that don't fit here.", cut)
		p.gap()
	}
	p.line("</details>")
	p.gap()
}

func (p *page) block(head string, lines []string) {
	if head != "" {
		p.line("%s", head)
	}
	for _, l := range lines {
		p.line("%s", l)
	}
	p.gap()
}

func promotionBody(in Input) string {
	var p page
	if in.Mark != "" {
		p.line("%s", in.Mark)
		p.gap()
	}
	opening(&p, in)
	moves(&p, in)
	reach(&p, in)
	rendered(&p, in)
	whereabouts(&p, in)
	p.line("### What it waits for")
	p.gap()
	for _, rule := range rules(in) {
		p.line("- %s", rule)
	}
	p.gap()
	p.line("How far that is: the comment below and the commit status `liftlock`.")
	footer(&p, in)
	return p.String()
}

// moves is the table of what changes, a row a field.
func moves(p *page, in Input) {
	if several(in) {
		movesOf(p, in)
		return
	}
	p.line("### What moves")
	p.gap()
	if len(in.Changes) == 0 {
		p.line("See the diff.")
		p.gap()
		return
	}
	p.folded(moveHead, moveRows(in.Changes))
}

const moveHead = "| field | from | to | where |\n|---|---|---|---|"

func moveRows(changes []Change) []string {
	var rows []string
	for _, c := range changes {
		where := c.File
		if c.Line > 0 {
			where = fmt.Sprintf("%s:%d", c.File, c.Line)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", code(c.Path, maxAddress), code(c.Old, maxValue), code(c.New, maxValue), code(where, maxAddress)))
	}
	return rows
}

// reach says which targets the change reaches and which it provably doesn't.
func reach(p *page, in Input) {
	p.line("### What it reaches")
	p.gap()
	beyond := 0
	var rows []string
	for _, t := range in.Reached {
		if strays(in, t) {
			beyond++
		}
		rows = append(rows, "- "+target(in, t))
	}
	p.folded("", rows)
	if len(rows) == 0 && in.OthersErr == "" {
		p.line("No target reads these files.")
		p.gap()
	}
	if len(in.Same) > 0 {
		var names []string
		for _, t := range in.Same {
			names = append(names, t.Name)
		}
		p.line("These read a changed file too, and stay exactly as they are, which their Applications and manifests before and after show: %s.", targetNames(names))
		p.gap()
	}
	if beyond > 0 {
		p.line("**Careful: it reaches %s (⚠) that %s %s in %s.**", plural(beyond, "target", "targets"), isnt(beyond), whose(in), text(in.Environment, maxName))
		p.gap()
	}
	switch {
	case in.OthersErr != "":
		p.line("Which targets read these files could not be worked out: %s", text(in.OthersErr, maxReason))
		p.gap()
	case len(in.Reached) == 0:
	case len(in.Others) > 0:
		p.line("No other target reads these files: %s.", others(in))
		p.gap()
	default:
		p.line("The pipeline has no other targets.")
		p.gap()
	}
}

func whose(in Input) string {
	if several(in) {
		return "of these components"
	}
	return text(component(in), maxName)
}

func isnt(n int) string {
	if n == 1 {
		return "isn't"
	}
	return "aren't"
}

// strays says whether a target is not what the pull request is about.
func strays(in Input, t Target) bool {
	return t.Environment != in.Environment || t.Component != "" && !belongs(in, t.Component)
}

func target(in Input, t Target) string {
	s := code(t.Name, maxName)
	if strays(in, t) {
		s = "⚠ " + s + ", " + text(t.Component, maxName)
	}
	s += " in " + text(t.Environment, maxName)
	if t.Cluster != "" {
		s += " on " + code(t.Cluster, maxName)
	}
	return s
}

// others are the counts of untouched targets, in the pipeline's order.
func others(in Input) string {
	var names []string
	if in.Facts != nil {
		for i := range in.Facts.Envs {
			names = append(names, in.Facts.Envs[i].Name)
		}
	}
	var rest []string
	for n := range in.Others {
		if !slices.Contains(names, n) {
			rest = append(rest, n)
		}
	}
	slices.Sort(rest)
	var out []string
	for _, n := range append(names, rest...) {
		if c := in.Others[n]; c > 0 && len(out) < maxRows {
			out = append(out, fmt.Sprintf("%d in %s", c, text(n, maxName)))
		}
	}
	return strings.Join(out, ", ")
}

// whereabouts says where the release has been and for how long it was healthy there.
func whereabouts(p *page, in Input) {
	if several(in) {
		stays(p, in)
		return
	}
	lines := stayLines(in)
	if len(lines) == 0 {
		return
	}
	p.line("### Where this release has been")
	p.gap()
	p.folded("", lines)
}

// stayLines are the environments that the release has been in, a line each.
func stayLines(in Input) []string {
	if in.Facts == nil || in.Release == "" {
		return nil
	}
	var lines []string
	for i := range in.Facts.Envs {
		e := &in.Facts.Envs[i]
		if s := stay(e, in.Release); s != "" {
			lines = append(lines, fmt.Sprintf("- %s: %s", text(e.Name, maxName), s))
		} else if here := environment(in); here != nil && slices.Contains(here.Spec.After, e.Name) {
			lines = append(lines, fmt.Sprintf("- %s: never there as far as is known", text(e.Name, maxName)))
		}
	}
	return lines
}

// stay tells of a release's newest stay in an environment; empty when it was
// never there.
func stay(e *promotion.Env, release string) string {
	for i := range e.History {
		a := &e.History[i]
		if a.Release != release {
			continue
		}
		s := "since " + stamp(a.At)
		var until string
		if i > 0 {
			next := &e.History[i-1]
			until = stamp(next.At)
			s = "from " + stamp(a.At) + " until " + until
		}
		s += how(a.By)
		degraded := !a.DegradedAt.IsZero() && !a.DegradedAt.Before(a.VerifiedAt)
		switch {
		case a.VerifiedAt.IsZero() && degraded:
			s += "; **degraded** " + stamp(a.DegradedAt) + ", never verified"
		case a.VerifiedAt.IsZero():
			s += "; not verified"
		case degraded:
			s += fmt.Sprintf("; verified %s, healthy for %s, then **degraded** %s", stamp(a.VerifiedAt), span(a.DegradedAt.Sub(a.VerifiedAt)), stamp(a.DegradedAt))
		case i > 0:
			s += fmt.Sprintf("; verified %s, healthy until it was replaced (%s)", stamp(a.VerifiedAt), span(e.History[i-1].At.Sub(a.VerifiedAt)))
		default:
			s += fmt.Sprintf("; verified %s, no degradation since", stamp(a.VerifiedAt))
		}
		return s
	}
	return ""
}

func how(by string) string {
	switch by {
	case promotion.ByPerson:
		return ", by a commit"
	case promotion.ByPromotion:
		return ", by a promotion"
	case promotion.ByRevert:
		return ", by a revert"
	case promotion.ByBaseline:
		return ", from before the pipeline"
	}
	return ""
}

// The pipeline file's words that the texts depend on.
const (
	mergeAuto      = "auto"
	revertAndMerge = "revert-and-merge"
	modeObserve    = "observe"
)

// rules are what must be true before the merge, whatever is true now: they
// change with the pipeline file only, so that the body needn't be edited when
// somebody approves.
func rules(in Input) []string {
	e := environment(in)
	if e == nil {
		return []string{"the gates of its environment"}
	}
	var out []string
	if !in.Revert {
		for i := range e.Gates {
			g := &e.Gates[i]
			if g.Approvals == nil {
				out = append(out, "the gate "+code(g.Name(), maxName))
				continue
			}
			who := "anybody who may write to the repository"
			if users := g.Approvals.From.Users; len(users) > 0 {
				who = people(users)
			}
			out = append(out, fmt.Sprintf("%s from %s; not from the release's authors", plural(g.Approvals.Count, "approval", "approvals"), who))
		}
	}
	switch {
	case observes(in):
		out = append(out, "a person who merges it (mode: observe)")
	case in.Revert && e.Spec.OnDegraded == revertAndMerge && in.By != "":
		out = append(out, "nothing else: Liftlock merges it (onDegraded: revert-and-merge); a hold stops that")
	case in.Revert && e.Spec.OnDegraded == revertAndMerge:
		out = append(out, fmt.Sprintf("nothing else: Liftlock merges it while %s is degraded (onDegraded: revert-and-merge); a hold stops that", text(e.Name, maxName)))
	case in.Revert:
		out = append(out, "a person who merges it (onDegraded: "+text(e.Spec.OnDegraded, maxName)+")")
	case e.Spec.Merge == mergeAuto && len(out) == 0:
		out = append(out, "nothing else: Liftlock merges it (merge: auto); a hold stops that")
	case e.Spec.Merge == mergeAuto:
		out = append(out, "then Liftlock merges it (merge: auto); a hold stops that")
	default:
		out = append(out, "a person who merges it (merge: manual)")
	}
	return out
}

// people lists logins without mentioning anybody.
func people(logins []string) string {
	var out []string
	for i, l := range logins {
		if i == openRows {
			out = append(out, fmt.Sprintf("%d more", len(logins)-i))
			break
		}
		out = append(out, text(l, maxName))
	}
	return strings.Join(out, ", ")
}

// footer tells how to talk to Liftlock.
func footer(p *page, in Input) {
	say := prefix(in)
	p.gap()
	p.line("---")
	s := fmt.Sprintf("Stop it: `%shold`, or close it. What stands in the way: `%swhy`. All commands: `%shelp`.", say, say, say)
	if in.Release != "" {
		s = "Release " + code(promotion.Short(in.Release), maxName) + ". " + s
	}
	if in.Console != "" {
		s += " [Console](" + address(in.Console) + ")"
	}
	p.line("%s", s)
}

// address is the console's address as a link's destination. It comes from the
// server's file, with path segments escaped; what could end the link is escaped here.
func address(url string) string {
	return strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\n", "", "\r", "", "\\", "%5C").Replace(url)
}
