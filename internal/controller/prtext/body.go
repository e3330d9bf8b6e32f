package prtext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// page collects a text's lines.
type page struct{ strings.Builder }

func (p *page) writeLine(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

func (p *page) writeGap() { p.WriteByte('\n') }

// writeParagraph writes a line that stands for itself.
func (p *page) writeParagraph(format string, args ...any) {
	p.writeLine(format, args...)
	p.writeGap()
}

// writeFolded writes lines that belong together: the first ones openly, the rest
// folded, and what is past maxFolded only counted. head is a table's head, empty
// for a list.
func (p *page) writeFolded(head string, lines []string) { p.writeFoldedAfter(openRows, head, lines) }

// writeFoldedAfter is writeFolded with so many lines openly.
func (p *page) writeFoldedAfter(open int, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	shown := lines[:min(len(lines), open)]
	hidden := lines[len(shown):min(len(lines), maxFolded)]
	p.writeBlock(head, shown)
	if len(hidden) == 0 {
		return
	}
	p.writeParagraph("<details><summary>%d more</summary>", len(lines)-len(shown))
	p.writeBlock(head, hidden)
	if cut := len(lines) - len(shown) - len(hidden); cut > 0 {
		p.writeParagraph("And %d that don't fit here.", cut)
	}
	p.writeParagraph("</details>")
}

func (p *page) writeBlock(head string, lines []string) {
	if head != "" {
		p.writeLine("%s", head)
	}
	for _, l := range lines {
		p.writeLine("%s", l)
	}
	p.writeGap()
}

func promotionBody(in Input) string {
	var p page
	if in.BodyMarker != "" {
		p.writeParagraph("%s", in.BodyMarker)
	}
	writeOpening(&p, in)
	writeMergeRules(&p, in)
	p.writeParagraph("How far that is: the comment below and the commit status `liftlock`.")
	writeMoves(&p, in)
	writeReleaseCommits(&p, in)
	writeReach(&p, in)
	writeRendered(&p, in)
	writeHistory(&p, in)
	writeFooter(&p, in)
	return p.String()
}

// writeReach says which targets the change reaches and which it provably doesn't.
func writeReach(p *page, in Input) {
	p.writeParagraph("### What it reaches")
	outside := 0
	var rows []string
	for _, t := range in.Reached {
		if isOutside(in, t) {
			outside++
		}
		rows = append(rows, "- "+describeTarget(in, t))
	}
	if in.Batch {
		p.writeFoldedAfter(openMembers, "", rows)
	} else {
		p.writeFolded("", rows)
	}
	if len(rows) == 0 && in.UnaffectedErr == "" {
		p.writeParagraph("No target of the pipeline reads these files.")
	}
	if len(in.UnchangedTargets) > 0 {
		var names []string
		for _, t := range in.UnchangedTargets {
			names = append(names, t.Name)
		}
		p.writeParagraph("These read a changed file too, and stay exactly as they are, which their Applications and manifests before and "+
			"after show: %s.", targetNames(names))
	}
	writeDrift(p, in)
	writeUnchecked(p, in)
	if outside > 0 {
		p.writeParagraph("**Careful: it reaches %s %s in %s.**", wording.Plural(outside, "target (⚠) that isn't",
			"targets (⚠) that aren't"), componentPhrase(in), escapeText(in.Environment, maxName))
	}
	switch {
	case in.UnaffectedErr != "":
		p.writeParagraph("Which targets read these files could not be worked out: %s", escapeText(in.UnaffectedErr, maxReason))
	case len(in.Reached) == 0:
	case len(in.UnaffectedCounts) > 0:
		p.writeParagraph("%s.", describeUnaffected(in))
	default:
		p.writeParagraph("The pipeline has no other targets.")
	}
}

func componentPhrase(in Input) string {
	if in.Batch {
		return "of these components"
	}
	return escapeText(componentOf(in), maxName)
}

// isOutside says whether a target is not what the pull request is about.
func isOutside(in Input, t Target) bool {
	return t.Environment != in.Environment || t.Component != "" && !isOfComponent(in, t.Component)
}

// maxFieldsShown bounds the fields of an Application that are named.
const maxFieldsShown = 3

func describeTarget(in Input, t Target) string {
	s := codeSpan(t.Name, maxName)
	if isOutside(in, t) {
		s = "⚠ " + s + ", " + escapeText(t.Component, maxName)
	}
	s += " in " + escapeText(t.Environment, maxName)
	if t.Cluster != "" {
		s += " on " + codeSpan(t.Cluster, maxName)
	}
	if len(t.Fields) > 0 {
		var fields []string
		for _, f := range t.Fields {
			fields = append(fields, codeSpan(f, maxName))
		}
		s += ", whose Application changes: " + wording.JoinFew(fields, maxFieldsShown)
	}
	if t.Follows != "" {
		s += "; **the merge doesn't reach it**: it follows " + codeSpan(t.Follows, maxName) +
			", so somebody has to move that, or it fails after arriveWithin"
	}
	if t.CreatedOnly {
		s += "; **the merge doesn't reach it**: its ApplicationSet only creates Applications and never updates them, so somebody has to " +
			"change it, or it fails after arriveWithin"
	}
	return s
}

// describeUnaffected says how many targets provably don't read what changes, by
// environment in the pipeline's order.
func describeUnaffected(in Input) string {
	var names []string
	for _, e := range in.component().Envs {
		names = append(names, e.Name)
	}
	var rest []string
	for n := range in.UnaffectedCounts {
		if !slices.Contains(names, n) {
			rest = append(rest, n)
		}
	}
	slices.Sort(rest)
	total := 0
	var each []string
	for _, n := range append(names, rest...) {
		c := in.UnaffectedCounts[n]
		if total += c; c > 0 && len(each) < maxRows {
			each = append(each, fmt.Sprintf("%d in %s", c, escapeText(n, maxName)))
		}
	}
	if total == 1 {
		return "The pipeline has one other target (" + strings.TrimPrefix(each[0], "1 ") + "), and it doesn't read these files"
	}
	return fmt.Sprintf("None of the pipeline's %d other targets (%s) reads these files", total, strings.Join(each, ", "))
}

// writeHistory says where the release has been and for how long it was healthy there.
func writeHistory(p *page, in Input) {
	if in.Batch {
		writeMemberHistories(p, in)
		return
	}
	lines := historyLines(in)
	if len(lines) == 0 {
		return
	}
	p.writeParagraph("### Where this release has been")
	p.writeFolded("", lines)
}

// historyLines are the environments that the release has been in, a line each.
func historyLines(in Input) []string {
	if in.Release == "" {
		return nil
	}
	var lines []string
	for i := range in.component().Envs {
		e := &in.component().Envs[i]
		if s := describeHistory(e, in.Release); s != "" {
			lines = append(lines, fmt.Sprintf("- %s: %s", escapeText(e.Name, maxName), s))
		} else if here := environmentOf(in); here != nil && slices.Contains(here.Spec.After, e.Name) {
			lines = append(lines, fmt.Sprintf("- %s: never there as far as is known", escapeText(e.Name, maxName)))
		}
	}
	return lines
}

// describeHistory tells of a release's newest stay in an environment; empty when it was
// never there.
func describeHistory(e *promotion.Env, release string) string {
	stay, health := describeStay(e, release)
	if stay == "" {
		return ""
	}
	return stay + "; " + health
}

// describeStay tells from when to when a release was in an environment last, and how it
// was there; both are empty when it was never there.
func describeStay(e *promotion.Env, release string) (stay, health string) {
	i := slices.IndexFunc(e.History, func(a promotion.Arrival) bool { return a.Release == release })
	if i < 0 {
		return "", ""
	}
	a := &e.History[i]
	stay = "since " + formatTime(a.At)
	if i > 0 {
		stay = "from " + formatTime(a.At) + " until " + formatTime(e.History[i-1].At)
	}
	stay += originPhrase(a.By)
	degraded := a.IsDegraded()
	switch {
	case a.VerifiedAt.IsZero() && degraded:
		health = "**degraded** " + formatTime(a.DegradedAt) + ", never verified"
	case a.VerifiedAt.IsZero():
		health = "not verified"
	case degraded:
		health = fmt.Sprintf("verified %s, healthy for %s, then **degraded** %s", formatTime(a.VerifiedAt),
			formatDuration(a.DegradedAt.Sub(a.VerifiedAt)), formatTime(a.DegradedAt))
	case i > 0:
		health = fmt.Sprintf("verified %s, healthy until it was replaced (%s)", formatTime(a.VerifiedAt),
			formatDuration(e.History[i-1].At.Sub(a.VerifiedAt)))
	default:
		health = fmt.Sprintf("verified %s, no degradation since", formatTime(a.VerifiedAt))
	}
	return stay, health
}

func originPhrase(by string) string {
	switch by {
	case promotion.ByPerson:
		return ", by a commit"
	case promotion.ByPromotion:
		return ", by a promotion"
	case promotion.ByHand:
		return ", by a commit to what would have been promoted"
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
	dryRunMode     = "observe"
)

// mergeRule is a condition of the merge.
type mergeRule struct {
	gate string // its name; mergeRow for who merges
	text string
}

// mergeRow names who merges, among the gates.
const mergeRow = "merge"

// writeMergeRules is the table of what stands between the pull request and its merge. It changes with the
// pipeline file only, so that the body needn't be edited at an approval: an edit is a call of the forge.
func writeMergeRules(p *page, in Input) {
	p.writeLine("| gate | what it asks for |")
	p.writeLine("|---|---|")
	for _, r := range mergeRules(in) {
		p.writeLine("| %s | %s |", escapeText(r.gate, maxName), r.text)
	}
	p.writeGap()
}

// mergeRules are the conditions of the merge, whether they hold now or not.
func mergeRules(in Input) []mergeRule {
	e := environmentOf(in)
	if e == nil {
		return []mergeRule{{mergeRow, "when the gates of its environment pass"}}
	}
	onDegraded := escapeText(e.Spec.OnDegraded.String(), maxName)
	var out []mergeRule
	if !in.Revert {
		for i := range e.Gates {
			out = append(out, mergeRule{string(e.Gates[i].Name()), escapeText(e.Gates[i].Describe(), maxReason)})
		}
	}
	who := ""
	switch {
	case isDryRun(in):
		who = "a person (mode: observe)"
	case in.Revert && e.Spec.OnDegraded.Action == revertAndMerge && in.By != "":
		who = fmt.Sprintf("Liftlock, at once (onDegraded: %s); a hold stops that", onDegraded)
	case in.Revert && e.Spec.OnDegraded.Action == revertAndMerge:
		who = fmt.Sprintf("Liftlock, while %s is degraded%s (onDegraded: %s); a hold stops that",
			escapeText(e.Name, maxName), quorumPhrase(in, e), onDegraded)
	case in.Revert:
		who = "a person (onDegraded: " + onDegraded + ")"
	case e.Spec.Merge == mergeAuto && len(out) == 0:
		who = "Liftlock, by itself (merge: auto); a hold stops that"
	case e.Spec.Merge == mergeAuto:
		who = "Liftlock, when all of these pass (merge: auto); a hold stops that"
	case len(out) == 0:
		who = "a person (merge: manual)"
	default:
		who = "a person, when all of these pass (merge: manual)"
	}
	return append(out, mergeRule{mergeRow, who})
}

// quorumPhrase says on how many targets, where the pipeline file does.
func quorumPhrase(in Input, e *promotion.Env) string {
	quorum := e.Spec.OnDegraded.Quorum
	switch {
	case quorum.IsZero():
		return ""
	case in.Batch:
		return " on as many targets of a component as the quorum asks for"
	}
	return fmt.Sprintf(" on at least %d of %s", quorum.Of(len(e.Targets)), wording.Count(len(e.Targets), "target"))
}

// joinLogins lists logins without mentioning anybody.
func joinLogins(logins []string) string {
	return strings.Join(listSome(logins, openRows, func(l string) string { return escapeText(l, maxName) }), ", ")
}

// listSome writes the first ones of a list, and how many more there are.
func listSome[T any](all []T, most int, write func(T) string) []string {
	var out []string
	for _, v := range all[:min(len(all), most)] {
		out = append(out, write(v))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return out
}

// writeFooter tells how to talk to Liftlock.
func writeFooter(p *page, in Input) {
	say := commandPrefix(in)
	if !strings.HasSuffix(p.String(), "\n\n") {
		p.writeGap()
	}
	p.writeLine("---")
	s := fmt.Sprintf("Stop it: `%shold`, or close it. What stands in the way: `%swhy`. All commands: `%shelp`.", say, say, say)
	if in.Release != "" {
		s = "Release " + codeSpan(wording.Short(in.Release), maxName) + ". " + s
	}
	if in.ConsoleURL != "" {
		s += " [Console](" + escapeURL(in.ConsoleURL) + ")"
	}
	p.writeLine("%s", s)
}

// urlEscape replaces what could end a link's destination.
var urlEscape = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\n", "", "\r", "", "\\", "%5C")

// escapeURL is the console's address as a link's destination. It comes from the
// server's file, with path segments escaped; what could end the link is escaped here.
func escapeURL(url string) string {
	return urlEscape.Replace(url)
}
