package client

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/liftlock/liftlock/internal/console/api"
)

// PrintTroubles writes what is not well, a line each; nothing when all is.
func PrintTroubles(w io.Writer, all []api.Trouble) {
	for _, t := range all {
		fmt.Fprintf(w, "! %s: %s\n", visible(t.Part), visible(t.Message))
	}
}

// PrintPipeline writes a pipeline as a table, components × environments.
func PrintPipeline(w io.Writer, p *api.Pipeline) error {
	fmt.Fprintf(w, "%s (%s): %d components, %d moving, %d waiting, %d need a look\n",
		visible(p.Name), visible(p.Repository), p.Counts.Components, p.Counts.Moving, p.Counts.Waiting, p.Counts.Attention)
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprint(t, "COMPONENT")
	for _, e := range p.Environments {
		fmt.Fprintf(t, "\t%s", strings.ToUpper(visible(e)))
	}
	fmt.Fprintln(t)
	for i := range p.Components {
		c := &p.Components[i]
		fmt.Fprint(t, visible(c.Component))
		for _, name := range p.Environments {
			fmt.Fprintf(t, "\t%s", cell(c, name))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// cell is one environment on one line: what is there, and what wants to come.
func cell(c *api.Component, name string) string {
	for i := range c.Environments {
		e := &c.Environments[i]
		if e.Environment != name {
			continue
		}
		s := "-"
		if e.Name != "" {
			s = visible(e.Name)
		}
		s += " " + e.State
		if in := e.Incoming; in != nil {
			s += ", " + visible(in.Name) + " " + in.State
			if in.Pull != nil {
				s += fmt.Sprintf(" #%d", in.Pull.Number)
			}
		}
		if e.Undo != nil {
			s += fmt.Sprintf(", revert #%d", e.Undo.Pull.Number)
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
			fmt.Fprintln(w, visible(line))
		}
	}
}

// visible keeps text from outside from steering the terminal.
func visible(s string) string {
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
