package prtext

import (
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/appset/impact"
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
	// Moved says that the branch has changed files that the change touches too.
	Moved []string
	// Unknown is what could not be known of the running Argo CDs, for people.
	Unknown []string
}

// maxImpactNames bounds the targets that one row names.
const maxImpactNames = 8

// Worth says that there is something to tell in a comment: a pull request that
// touches no target and breaks nothing is left in peace.
func (in Impact) Worth() bool {
	return in.Failed != "" || in.PipelineErr != "" || in.Report != nil && (in.touched() || in.Report.NewProblems() > 0)
}

func (in Impact) touched() bool {
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
		return newStatus(statusFailure, plural(n, "new problem", "new problems")+": "+in.firstProblem())
	}
	places := strings.Join(in.places(), "; ")
	switch {
	case len(in.Report.Multiple()) > 0:
		return newStatus(statusSuccess, fmt.Sprintf("careful, it reaches %d environments: ", in.environments())+places)
	case places != "":
		return newStatus(statusSuccess, "touches "+places)
	case len(in.Report.Rules) > 0:
		return newStatus(statusSuccess, "touches no target; pipeline files are valid")
	}
	return newStatus(statusSuccess, "touches no target")
}

// places counts what is done to targets, by environment.
func (in Impact) places() (out []string) {
	for i := range in.Report.Pipelines {
		p := &in.Report.Pipelines[i]
		for j := range p.Environments {
			e := &p.Environments[j]
			where := "outside of the pipeline's environments"
			if e.Name != "" {
				where = text(e.Name, maxName)
			}
			out = append(out, where+": "+counted(e))
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

// environments counts those that the change reaches, over all pipelines that it
// reaches more than one of.
func (in Impact) environments() int {
	n := 0
	for _, p := range in.Report.Multiple() {
		n += len(p.Reached())
	}
	return n
}

// counted says how many targets are created, changed and deleted.
func counted(e *impact.Environment) string {
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
	var p page
	p.line("%s", statusMark)
	switch {
	case in.PipelineErr != "":
		p.line("**The pipeline files don't hold:** merged like this, Liftlock would stop opening and merging.")
		p.gap()
		for line := range strings.Lines(in.PipelineErr) {
			if s := strings.TrimSpace(line); s != "" {
				p.line("- %s", text(s, maxReason))
			}
		}
		p.gap()
	case in.Failed == "" && !in.Worth():
		p.line("**It touches no target** and breaks no pipeline.")
		p.gap()
	}
	if in.Failed != "" {
		p.line("**What this change touches can't be told:** %s", text(in.Failed, maxReason))
		p.gap()
		p.line("The change is looked at apart from Liftlock itself, with limits on memory and time. Push a new commit to have it looked at again.")
		p.gap()
	}
	if in.Report != nil {
		in.report(&p)
	}
	if len(in.Moved) > 0 {
		p.line("%s has changed since in %s that this changes too: bring the branch up to date to see what merging does now.", code(in.Branch, maxName), plural(len(in.Moved), "file", "files"))
		p.gap()
	}
	for _, u := range in.Unknown {
		p.line("- Not known: %s", text(u, maxReason))
	}
	if len(in.Unknown) > 0 {
		p.gap()
	}
	p.line("Compared with %s of %s. This comment is kept up to date.", code(short12(in.Base), maxName), code(in.Branch, maxName))
	return bound(p.String())
}

func short12(sha string) string { return sha[:min(len(sha), 12)] }

func (in Impact) report(p *page) {
	r := in.Report
	for _, m := range r.Multiple() {
		reached := m.Reached()
		names := make([]string, 0, len(reached))
		for _, n := range reached[:min(len(reached), maxImpactNames)] {
			names = append(names, text(n, maxName))
		}
		p.line("**Careful: this reaches %d environments of %s at once: %s.** A release moves through one at a time; split the change unless all at once is meant.",
			len(reached), text(m.Name, maxName), list(names))
		p.gap()
	}
	if len(r.Multiple()) == 0 && in.touched() {
		p.line("This change touches %s.", strings.Join(in.places(), "; "))
		p.gap()
	}
	var brought, mended, standing []string
	for i := range r.Pipelines {
		brought, mended, standing = told(brought, r.Pipelines[i].Problems), told(mended, r.Pipelines[i].Mended), told(standing, r.Pipelines[i].Standing)
	}
	if len(brought) > 0 {
		p.line("**It brings %s:** while such a problem stands, Liftlock merges nothing that it concerns.", plural(len(brought), "problem", "problems"))
		p.gap()
		p.folded("", brought)
	}
	for i := range r.Pipelines {
		in.pipeline(p, &r.Pipelines[i], len(r.Pipelines) > 1)
	}
	for _, rest := range []struct {
		heading string
		lines   []string
	}{{"Mended by this change:", mended}, {"Stood before, and stands after:", standing}} {
		if len(rest.lines) > 0 {
			p.line("%s", rest.heading)
			p.gap()
			p.folded("", rest.lines)
		}
	}
	if n := len(r.Unread); n > 0 && in.Worth() {
		p.line("%s read by no target.", plural(n, "changed file is", "changed files are"))
		p.gap()
	}
}

// told adds a line a problem.
func told[P fmt.Stringer](lines []string, problems []P) []string {
	for _, problem := range problems {
		lines = append(lines, "- "+text(problem.String(), maxReason))
	}
	return lines
}

// pipeline is a table of what one pipeline's environments see of the change.
func (in Impact) pipeline(p *page, part *impact.Pipeline, many bool) {
	if len(part.Environments) == 0 {
		return
	}
	if many {
		p.line("### Pipeline %s", text(part.Name, maxName))
		p.gap()
	}
	var rows []string
	for i := range part.Environments {
		e := &part.Environments[i]
		where := "*in no environment*"
		if e.Name != "" {
			where = text(e.Name, maxName)
		}
		groups := e.Groups()
		for j := range groups {
			rows = append(rows, "| "+where+" | "+groups[j].What+" | "+named(groups[j].Names)+" | "+touchedHow(&groups[j])+" |")
		}
	}
	p.folded("| environment | | targets | why |\n|---|---|---|---|", rows)
}

func named(names []string) string {
	var out []string
	for _, n := range names[:min(len(names), maxImpactNames)] {
		out = append(out, code(n, maxName))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return list(out)
}

// touchedHow says how a change touches the targets of a group.
func touchedHow(g *impact.Group) string {
	var out []string
	if g.From != "" {
		out = append(out, "moves from "+text(g.From, maxName)+" to "+text(g.To, maxName))
	}
	for i, f := range g.Fields {
		if i == maxImpactNames {
			break
		}
		out = append(out, fmt.Sprintf("%s: %s → %s", code(f.Path, maxAddress), code(f.Before, maxValue), code(f.After, maxValue)))
	}
	if more := len(g.Fields) + g.More - min(len(g.Fields), maxImpactNames); more > 0 {
		out = append(out, plural(more, "more field", "more fields"))
	}
	for i, f := range g.Files {
		if i == maxImpactNames {
			out = append(out, fmt.Sprintf("%d more files", len(g.Files)-i))
			break
		}
		out = append(out, "reads "+code(f, maxAddress))
	}
	if g.Unsure {
		out = append(out, "it reads something that could not be followed, so not all of these may matter")
	}
	if g.Kept != "" {
		out = append(out, text(g.Kept, maxReason))
	}
	if g.What == impact.Unknown {
		out = append(out, "it could not be resolved before or after")
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "<br>")
}
