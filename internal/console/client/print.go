package client

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/wording"
)

// PrintTroubles writes what is not well, a line each; nothing when all is.
func PrintTroubles(w io.Writer, all []api.Trouble) {
	for _, t := range all {
		fmt.Fprintf(w, "! %s: %s\n", replaceUnprintable(t.Part), replaceUnprintable(t.Message))
	}
}

// PrintPipeline writes a pipeline as a table, components × environments.
func PrintPipeline(w io.Writer, p *api.Pipeline) error {
	fmt.Fprintf(w, "%s (%s): %s, %d moving, %d waiting, %s\n",
		replaceUnprintable(p.Name), replaceUnprintable(p.Repository), wording.Count(p.Counts.Components, "component"), p.Counts.Moving,
		p.Counts.Waiting,
		wording.Plural(p.Counts.Attention, "needs a look", "need a look"))
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprint(t, "COMPONENT")
	for _, e := range p.Environments {
		fmt.Fprintf(t, "\t%s", strings.ToUpper(replaceUnprintable(e)))
	}
	fmt.Fprintln(t)
	for i := range p.Components {
		c := &p.Components[i]
		fmt.Fprint(t, replaceUnprintable(c.Component))
		for _, name := range p.Environments {
			fmt.Fprintf(t, "\t%s", formatCell(c, name))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// formatCell is one environment on one line: what is there, and what wants to come.
func formatCell(c *api.Component, name string) string {
	for i := range c.Environments {
		e := &c.Environments[i]
		if e.Environment != name {
			continue
		}
		s := "-"
		if e.Name != "" {
			s = replaceUnprintable(e.Name)
		}
		s += " " + e.State
		if n := e.Drifted(); n > 0 {
			s += fmt.Sprintf(", %d drifted", n)
		}
		if in := e.Incoming; in != nil {
			s += ", " + replaceUnprintable(in.Name) + " " + in.State
			if in.Pull != nil {
				s += fmt.Sprintf(" %s", in.Pull)
			}
		}
		if e.Revert != nil {
			s += fmt.Sprintf(", revert %s", &e.Revert.Pull)
		}
		return s
	}
	return "-"
}

// PrintWhy writes why a component is as it is.
func PrintWhy(w io.Writer, y *api.Why) {
	for i, e := range y.Environments {
		if i > 0 {
			fmt.Fprintln(w)
		}
		for _, line := range strings.Split(e.Text, "\n") {
			fmt.Fprintln(w, replaceUnprintable(line))
		}
	}
}

// replaceUnprintable keeps text from outside from steering the terminal.
func replaceUnprintable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Printable keeps a text of several lines from steering the terminal.
func Printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = replaceUnprintable(l)
	}
	return strings.Join(lines, "\n")
}
