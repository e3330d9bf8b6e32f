package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// printJSON writes an answer for programs.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// listed is a list that is written as [] where it is empty.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// printYAML writes an answer for programs as YAML, with the keys that it has as JSON.
func printYAML(w io.Writer, v any) error {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the answer as YAML: %w", err)
	}
	_, err = w.Write(raw)
	return err
}

// The formats of answers.
const (
	formatText  = "text"
	formatTable = "table"
	formatWide  = "wide" // the table with more columns, where there are more
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatLines = "jsonl" // of lists: JSON, an object a line
)

// completeFormats completes the output flag.
func completeFormats(c *cobra.Command, formats ...string) {
	completeFlag(c, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// formatFlag is the output flag of a command that prints text, or data for programs.
type formatFlag struct{ format string }

func (f *formatFlag) addFlag(c *cobra.Command) {
	c.Flags().StringVarP(&f.format, "output", "o", formatText, "text, json or yaml")
	completeFormats(c, formatText, formatJSON, formatYAML)
}

// dataWriter writes an answer for programs.
type dataWriter = func(w io.Writer, v any) error

// forPrograms is how the answer is written for programs; nil where text is wanted. A format that
// there isn't is an error.
func (f *formatFlag) forPrograms() (dataWriter, error) {
	switch f.format {
	case formatText, formatTable, formatWide:
		return nil, nil
	case formatJSON:
		return printJSON, nil
	case formatYAML:
		return printYAML, nil
	}
	return nil, fmt.Errorf("-o is text, json or yaml, not %q", f.format)
}
