package prtext

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/wording"
)

// Impact is what the comment and the commit status on a pull request that isn't
// Liftlock's own are made from.
type Impact struct {
	Branch string // what it is to be merged into
	Base   string // the commit it was compared with

	// Report says what the change does; nil when Failed says why that can't be told.
	Report *impact.Report
	Failed string
	// PipelineErr says with file and line what is wrong with the pipeline files
	// at the head; empty: nothing.
	PipelineErr string
	// ChangedOnBranch says that the branch has changed files that the change touches too.
	ChangedOnBranch []string
	// Rendered is what the change does to the manifests of the targets that it touches, but
	// for NotRendered of them; RenderedErr says why that can't be told.
	Rendered    []Rendered
	NotRendered int
	RenderedErr string
	// Unknown is what could not be known of the running Argo CDs, for people.
	Unknown []string
}

// maxImpactNames bounds the targets that one row names.
const maxImpactNames = 8

// NeedsComment says that there is something to tell in a comment: a pull request that
// touches no target and breaks nothing is left in peace.
func (in Impact) NeedsComment() bool {
	if in.Failed != "" || in.PipelineErr != "" {
		return true
	}
	return in.Report != nil && (in.changesTargets() || in.Report.NewProblems() > 0)
}

func (in Impact) changesTargets() bool {
	for i := range in.Report.Pipelines {
		if len(in.Report.Pipelines[i].Environments) > 0 {
			return true
		}
	}
	return false
}

// Status is the commit status: a failure for what would break the pipeline when
// it is merged, and a success with a warning for what reaches far.
func (in Impact) Status() Status {
	switch {
	case in.PipelineErr != "":
		return OtherStatus(in.PipelineErr, true)
	case in.Failed != "":
		return newStatus(statusFailure, "what it touches can't be told: "+in.Failed)
	}
	if n := in.Report.NewProblems(); n > 0 {
		return newStatus(statusFailure, wording.Count(n, "new problem")+": "+in.firstProblem())
	}
	places := strings.Join(in.targetCounts(), "; ")
	switch refused := in.Report.Refused(); {
	case len(refused) > 0:
		return newStatus(statusFailure, fmt.Sprintf("it reaches %d environments of %s at once (%s); split it", len(refused[0].Reached()),
			escapeText(refused[0].Name, maxName), joinReached(refused[0])))
	case len(in.Report.Multiple()) > 0:
		return newStatus(statusSuccess, fmt.Sprintf("careful, it reaches %d environments: ", in.countEnvironments())+places)
	case places != "":
		return newStatus(statusSuccess, "touches "+places)
	case len(in.Report.Rules) > 0:
		return newStatus(statusSuccess, "touches no target; pipeline files are valid")
	}
	return newStatus(statusSuccess, "touches no target")
}

// targetCounts counts what is done to targets, by environment.
func (in Impact) targetCounts() (out []string) {
	for i := range in.Report.Pipelines {
		p := &in.Report.Pipelines[i]
		for j := range p.Environments {
			e := &p.Environments[j]
			where := "outside of the pipeline's environments"
			if e.Name != "" {
				where = escapeText(e.Name, maxName)
			}
			out = append(out, where+": "+countTargets(e))
		}
	}
	return out
}

func (in Impact) firstProblem() string {
	for i := range in.Report.Pipelines {
		if ps := in.Report.Pipelines[i].Problems; len(ps) > 0 {
			return ps[0].String()
		}
	}
	return ""
}

// countEnvironments counts those that the change reaches, over all pipelines that it
// reaches more than one of.
func (in Impact) countEnvironments() int {
	n := 0
	for _, p := range in.Report.Multiple() {
		n += len(p.Reached())
	}
	return n
}

// joinReached names the environments that a change reaches, not too many of them.
func joinReached(p *impact.Pipeline) string {
	reached := p.Reached()
	names := make([]string, 0, len(reached))
	for _, n := range reached[:min(len(reached), maxImpactNames)] {
		names = append(names, escapeText(n, maxName))
	}
	if more := len(reached) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return joinAnd(names)
}

// countTargets says how many targets are created, changed and deleted.
func countTargets(e *impact.Environment) string {
	n := map[string]int{}
	for i := range e.Targets {
		n[e.Targets[i].What]++
	}
	var out []string
	for _, what := range []string{impact.Created, impact.Changed, impact.Deleted, impact.Unknown} {
		if n[what] > 0 {
			out = append(out, fmt.Sprintf("%d %s", n[what], what))
		}
	}
	return strings.Join(out, ", ")
}

// Comment is the one comment that is kept up to date.
func (in Impact) Comment() string {
	p := newComment()
	switch {
	case in.PipelineErr != "":
		p.writeParagraph("**The pipeline files don't hold:** merged like this, Liftlock would stop opening and merging.")
		for line := range strings.Lines(in.PipelineErr) {
			if s := strings.TrimSpace(line); s != "" {
				p.writeLine("- %s", escapeText(s, maxReason))
			}
		}
		p.writeGap()
	case in.Failed == "" && !in.NeedsComment():
		p.writeParagraph("**It touches no target** and breaks no pipeline.")
	}
	if in.Failed != "" {
		p.writeParagraph("**What this change touches can't be told:** %s", escapeText(in.Failed, maxReason))
		p.writeParagraph("The change is looked at apart from Liftlock itself, with limits on memory and time. Push a new commit to have " +
			"it looked at again.")
	}
	if in.Report != nil {
		in.writeReport(p)
	}
	if len(in.ChangedOnBranch) > 0 {
		p.writeParagraph("%s has changed since in %s that this changes too: bring the branch up to date to see what merging does now.",
			codeSpan(in.Branch, maxName), wording.Count(len(in.ChangedOnBranch), "file"))
	}
	for _, u := range in.Unknown {
		p.writeLine("- Not known: %s", escapeText(u, maxReason))
	}
	if len(in.Unknown) > 0 {
		p.writeGap()
	}
	p.writeLine("Compared with %s of %s. This comment is kept up to date.", codeSpan(wording.Short(in.Base), maxName),
		codeSpan(in.Branch, maxName))
	return truncateBody(p.String())
}

func (in Impact) writeReport(p *page) {
	r := in.Report
	for _, m := range r.Multiple() {
		if m.OneEnvironment {
			p.writeParagraph("**This fails the check: it reaches %d environments of %s at once: %s.** The pipeline wants a change to "+
				"reach one at a time (`impact: {failOn: several}`). Split it into a pull request for each environment, and merge the "+
				"next when the one before is well. Where all at once is meant, it takes somebody who may merge without the status "+
				"`liftlock`.",
				len(m.Reached()), escapeText(m.Name, maxName), joinReached(m))
			continue
		}
		p.writeParagraph("**Careful: this reaches %d environments of %s at once: %s.** A release moves through one at a time; split the "+
			"change unless all at once is meant.",
			len(m.Reached()), escapeText(m.Name, maxName), joinReached(m))
	}
	if len(r.Multiple()) == 0 && in.changesTargets() {
		p.writeParagraph("This change touches %s.", strings.Join(in.targetCounts(), "; "))
	}
	var newProblems, fixed, remaining []string
	for i := range r.Pipelines {
		newProblems, fixed, remaining = appendProblems(newProblems, r.Pipelines[i].Problems), appendProblems(fixed, r.Pipelines[i].Fixed),
			appendProblems(remaining, r.Pipelines[i].Preexisting)
	}
	if len(newProblems) > 0 {
		p.writeParagraph("**It brings %s:** while such a problem stands, Liftlock merges nothing that it concerns.",
			wording.Count(len(newProblems), "problem"))
		p.writeFolded("", newProblems)
	}
	for i := range r.Pipelines {
		in.writePipeline(p, &r.Pipelines[i], len(r.Pipelines) > 1)
	}
	writeRendered(p, Input{Rendered: in.Rendered, RenderedErr: in.RenderedErr})
	if in.NotRendered > 0 {
		p.writeParagraph("%s not rendered here: the change touches too many.", wording.Plural(in.NotRendered, "more target is",
			"more targets are"))
	}
	for _, rest := range []struct {
		heading string
		lines   []string
	}{{"Mended by this change:", fixed}, {"Stood before, and stands after:", remaining}} {
		if len(rest.lines) > 0 {
			p.writeParagraph("%s", rest.heading)
			p.writeFolded("", rest.lines)
		}
	}
	if n := len(r.Unread); n > 0 && in.NeedsComment() {
		p.writeParagraph("%s read by no target.", wording.Plural(n, "changed file is", "changed files are"))
	}
}

// appendProblems adds a line a problem.
func appendProblems[P fmt.Stringer](lines []string, problems []P) []string {
	for _, problem := range problems {
		lines = append(lines, "- "+escapeText(problem.String(), maxReason))
	}
	return lines
}

// writePipeline is a table of what one pipeline's environments see of the change.
func (in Impact) writePipeline(p *page, part *impact.Pipeline, many bool) {
	if len(part.Environments) == 0 {
		return
	}
	if many {
		p.writeParagraph("### Pipeline %s", escapeText(part.Name, maxName))
	}
	var rows []string
	for i := range part.Environments {
		e := &part.Environments[i]
		where := "*in no environment*"
		if e.Name != "" {
			where = escapeText(e.Name, maxName)
		}
		groups := e.Groups()
		for j := range groups {
			rows = append(rows, "| "+where+" | "+groups[j].What+" | "+joinCodeNames(groups[j].Names)+" | "+describeChange(&groups[j])+" |")
		}
	}
	p.writeFolded("| environment | | targets | why |\n|---|---|---|---|", rows)
}

func joinCodeNames(names []string) string {
	return joinAnd(listSome(names, maxImpactNames, func(n string) string { return codeSpan(n, maxName) }))
}

// describeChange says how a change touches the targets of a group.
func describeChange(g *impact.Group) string {
	var out []string
	if g.From != "" {
		out = append(out, "moves from "+escapeText(g.From, maxName)+" to "+escapeText(g.To, maxName))
	}
	for i, f := range g.Fields {
		if i == maxImpactNames {
			break
		}
		out = append(out, fmt.Sprintf("%s: %s → %s", codeSpan(f.Path, maxAddress), codeSpan(f.Before, maxValue),
			codeSpan(f.After, maxValue)))
	}
	if more := len(g.Fields) + g.More - min(len(g.Fields), maxImpactNames); more > 0 {
		out = append(out, wording.Count(more, "more field"))
	}
	for i, f := range g.Files {
		if i == maxImpactNames {
			out = append(out, fmt.Sprintf("%d more files", len(g.Files)-i))
			break
		}
		out = append(out, "reads "+codeSpan(f, maxAddress))
	}
	if g.Unsure {
		out = append(out, "it reads something that could not be followed, so not all of these may matter")
	}
	if g.Kept != "" {
		out = append(out, escapeText(g.Kept, maxReason))
	}
	if g.What == impact.Unknown {
		out = append(out, "it could not be resolved before or after")
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "<br>")
}

// DiffText answers /liftlock diff on a person's pull request: what it touches, and what
// the rendered manifests gain and lose. The text is for Reply.
func (in Impact) DiffText() string {
	var p page
	if !in.changesTargets() {
		return "This change touches no target."
	}
	p.writeParagraph("This change touches %s.", replyText(strings.Join(in.targetCounts(), "; ")))
	if in.RenderedErr != "" {
		p.writeParagraph("The rendered manifests could not be compared: %s", replyText(in.RenderedErr))
	}
	writeProseRendered(&p, in.Rendered)
	if in.NotRendered > 0 {
		p.writeGap()
		p.writeLine("%s not rendered here.", wording.Plural(in.NotRendered, "more target is", "more targets are"))
	}
	return p.String()
}
