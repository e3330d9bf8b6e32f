package client

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/wording"
)

// PrintTroubles writes what is not well, a line for each cause; nothing when all is.
func PrintTroubles(w io.Writer, all []api.Trouble) {
	for _, t := range api.GroupTroubles(all) {
		parts := strings.Join(t.Parts, ", ")
		if t.More > 0 {
			parts += fmt.Sprintf(" and %d more", t.More)
		}
		fmt.Fprintf(w, "! %s: %s\n", replaceUnprintable(parts), replaceUnprintable(t.Message))
	}
}

// printSummary writes what a pipeline is, and how many of its components do what.
func printSummary(w io.Writer, p *api.Pipeline) {
	fmt.Fprintf(w, "%s (%s): %s, %d moving, %s, %d held, %d broken\n",
		replaceUnprintable(p.Name), replaceUnprintable(p.Repository), wording.Count(p.Counts.Components, "component"), p.Counts.Moving,
		wording.Plural(p.Counts.Waiting, "waits for you", "wait for you"), p.Counts.Held, p.Counts.Broken)
}

// PrintPipeline writes a pipeline as a table, components × environments.
func PrintPipeline(w io.Writer, p *api.Pipeline) error {
	printSummary(w, p)
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

// PrintWidePipeline writes a pipeline as a table with a line for each environment of each component.
func PrintWidePipeline(w io.Writer, p *api.Pipeline) error {
	printSummary(w, p)
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(t, "COMPONENT\tENVIRONMENT\tRELEASE\tSTATE\tSINCE\tVERIFIED\tINCOMING\tPULL REQUEST\tWAITS FOR")
	for i := range p.Components {
		c := &p.Components[i]
		for k := range c.Environments {
			e := &c.Environments[k]
			incoming, pull := "-", "-"
			if e.Incoming != nil {
				incoming, pull = replaceUnprintable(e.Incoming.Name)+" "+e.Incoming.State, pullAddress(e.Incoming.Pull)
			}
			if e.Revert != nil {
				incoming, pull = "revert", pullAddress(&e.Revert.Pull)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\n", replaceUnprintable(c.Component), replaceUnprintable(e.Environment),
				orNone(e.Name), e.State, timeOrNone(e.Since), e.Verified(), len(e.Targets), incoming, pull,
				orNone(strings.Join(append(e.WaitReasons(), describeAvailable(e)...), "; ")))
		}
	}
	return t.Flush()
}

// orNone is a cell of a table: a text from outside, or a dash.
func orNone(s string) string { return cmp.Or(replaceUnprintable(s), "-") }

func timeOrNone(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// pullAddress is where a pull request is, or its number where that isn't known.
func pullAddress(p *api.Pull) string {
	if p == nil {
		return "-"
	}
	return cmp.Or(replaceUnprintable(p.URL), p.String())
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
		if v := e.Newest(); v != nil {
			s += ", " + formatAvailable(v, e.BesidesNewest())
		}
		return s
	}
	return "-"
}

// describeAvailable says of each version that is available why it doesn't come in.
func describeAvailable(e *api.Environment) []string {
	var out []string
	for i := range e.Available {
		out = append(out, e.Available[i].Describe())
	}
	return out
}

// formatAvailable is what is available and doesn't come in, in few words.
func formatAvailable(v *api.AvailableVersion, more int) string {
	text := "newer ones unknown"
	if v.Version != "" {
		text = replaceUnprintable(v.ShortVersion()) + " available"
	}
	if more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
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
