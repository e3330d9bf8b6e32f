package impact

import (
	"fmt"
	"io"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxShown bounds the names, files and fields that a table shows of one thing;
// JSON and YAML have all.
const maxShown = 10

// WriteTable writes a report for people. Problems are not in it: they go where
// what is wrong goes.
func WriteTable(w io.Writer, r *Report) error {
	var b strings.Builder
	for i := range r.Pipelines {
		p := &r.Pipelines[i]
		if len(p.Environments) == 0 {
			continue
		}
		if p.Name != "" {
			fmt.Fprintf(&b, "pipeline %s\n", p.Name)
		}
		for j := range p.Environments {
			writeEnvironment(&b, p, &p.Environments[j])
		}
		b.WriteByte('\n')
	}
	for _, p := range r.Multiple() {
		reached := p.Reached()
		level, advice := "warning", ""
		if p.OneEnvironment {
			level, advice = "error", "; its impact.failOn wants one at a time: split the change"
		}
		fmt.Fprintf(&b, "%s: the change reaches %d environments of %s at once: %s%s\n", level, len(reached), p.Name,
			strings.Join(reached, ", "), advice)
	}
	if len(r.Rules) > 0 {
		fmt.Fprintf(&b, "The pipeline files change, which this doesn't judge: %s\n", joinFew(r.Rules))
	}
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "No target reads %s\n", joinFew(r.Unread))
	}
	for i := range r.Rendered {
		writeRendered(&b, &r.Rendered[i])
	}
	b.WriteString(r.Summary() + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// writeRendered writes what becomes of a target's manifests.
func writeRendered(b *strings.Builder, r *Rendered) {
	what := r.Summary
	if r.Why != "" {
		what = "not rendered: " + r.Why
	}
	fmt.Fprintf(b, "%s: %s\n", appset.Printable(r.Target), appset.Printable(what))
	for l := range strings.Lines(r.Diff) {
		b.WriteString("    " + l)
	}
	if r.Diff != "" {
		b.WriteByte('\n')
	}
}

func writeEnvironment(b *strings.Builder, p *Pipeline, e *Environment) {
	const indent = "             "
	switch {
	case e.Name != "":
		fmt.Fprintf(b, "  %s\n", e.Name)
	case p.Name != "":
		b.WriteString("  in no environment\n")
	}
	groups := e.Groups()
	for i := range groups {
		g := &groups[i]
		fmt.Fprintf(b, "    %-7s  %s\n", g.What, joinFew(g.Names))
		line := func(format string, args ...any) {
			b.WriteString(indent + fmt.Sprintf(format, args...) + "\n")
		}
		if g.From != "" {
			line("moves from %s to %s", appset.Printable(g.From), appset.Printable(g.To))
		}
		for k, f := range g.Fields {
			if k == maxShown {
				line("and %d more fields", len(g.Fields)+g.More-maxShown)
				break
			}
			line("%s: %s → %s", appset.Printable(f.Path), appset.PrintableValue(f.Before), appset.PrintableValue(f.After))
		}
		for k, f := range g.Files {
			if k == maxShown {
				line("and %d more files", len(g.Files)-maxShown)
				break
			}
			line("%s", appset.Printable(f))
		}
		if g.Unsure {
			line("(it reads something that could not be followed: not all of these may matter)")
		}
		if g.Kept != "" {
			line("(%s)", g.Kept)
		}
		if g.What == Unknown {
			line("(it could not be resolved before or after; see the problems)")
		}
	}
}

// Summary is the report in one line.
func (r *Report) Summary() string {
	files := wording.Plural(r.Files, "file changes", "files change")
	var parts []string
	for _, what := range []string{Created, Changed, Deleted, Unknown} {
		if n := r.Count(what); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if len(parts) == 0 {
		return files + "; no target is touched."
	}
	return files + "; targets: " + strings.Join(parts, ", ") + "."
}

// joinFew lists names, not too many of them.
func joinFew(names []string) string {
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = appset.Printable(n)
	}
	return wording.JoinFew(shown, maxShown)
}
