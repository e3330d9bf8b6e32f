package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// WriteTable writes the fleet for people: a line a target, then what is wrong.
func WriteTable(w io.Writer, f *Fleet) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := [][]string{{"NAME", "COMPONENT", "ENVIRONMENT", "CLUSTER", "NAMESPACE", "SOURCE", "APPLICATIONSET"}}
	for i := range f.Targets {
		t := &f.Targets[i]
		rows = append(rows, []string{
			t.Name, t.Component, t.Environment, cmp.Or(t.Cluster, t.Server), t.DestNS, describe(t.Sources), t.ApplicationSet,
		})
	}
	if len(f.Targets) == 0 {
		rows = nil
		fmt.Fprintln(tab, "No Applications.")
	}
	for _, row := range rows {
		for i := range row {
			row[i] = printable(cmp.Or(row[i], "-"))
		}
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if len(f.Problems) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nProblems:\n")
	for _, p := range f.Problems {
		b.WriteString("  " + printable(p.String()) + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the problems: %w", err)
	}
	return nil
}

// describe names sources shortly: a path of this repository, or what is
// taken from elsewhere.
func describe(sources []Source) string {
	var out []string
	for _, s := range sources {
		switch {
		case s.Chart != "":
			out = append(out, "chart "+s.Chart+"@"+s.TargetRevision)
		case s.Here && s.Path != "":
			out = append(out, s.Path)
		case s.Ref != "" && s.Path == "":
		default:
			out = append(out, s.RepoURL+"//"+s.Path)
		}
	}
	return strings.Join(out, ", ")
}

// printable keeps what comes from files from driving a terminal.
func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strings.Trim(strconv.Quote(s), `"`)
		}
	}
	return s
}

// WriteJSON writes the fleet for programs, indented.
func WriteJSON(w io.Writer, f *Fleet) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return fmt.Errorf("writing the targets as JSON: %w", err)
	}
	return nil
}

// WriteYAML writes the same document as WriteJSON, as YAML.
func WriteYAML(w io.Writer, f *Fleet) error {
	raw, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("writing the targets as YAML: %w", err)
	}
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("writing the targets as YAML: %w", err)
	}
	return nil
}
