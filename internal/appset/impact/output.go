package impact

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/appset"
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
		fmt.Fprintf(&b, "warning: the change reaches %d environments of %s at once: %s\n", len(reached), p.Name, strings.Join(reached, ", "))
	}
	if len(r.Rules) > 0 {
		fmt.Fprintf(&b, "The pipeline files change, which this doesn't judge: %s\n", joinFew(r.Rules))
	}
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "No target reads %s\n", joinFew(r.Unread))
	}
	b.WriteString(r.Summary() + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
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
			line("%s: %s → %s", appset.Printable(f.Path), printableValue(f.Before), printableValue(f.After))
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
	files := strconv.Itoa(r.Files) + " files change"
	if r.Files == 1 {
		files = "1 file changes"
	}
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
	shown := make([]string, 0, maxShown)
	for _, n := range names[:min(len(names), maxShown)] {
		shown = append(shown, appset.Printable(n))
	}
	s := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func printableValue(s string) string {
	if s == "" {
		return "(none)"
	}
	return appset.Printable(s)
}

// WriteJSON writes a report for programs, indented.
func WriteJSON(w io.Writer, r *Report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return nil
}

// WriteYAML writes the same document as WriteJSON, as YAML.
func WriteYAML(w io.Writer, r *Report) error {
	raw, err := yaml.Marshal(r)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err != nil {
		return fmt.Errorf("writing the report as YAML: %w", err)
	}
	return nil
}
