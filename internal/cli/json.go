package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
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

// formatFlag is the output flag of a command that prints text, or JSON for programs.
type formatFlag struct{ format string }

func (f *formatFlag) addFlag(c *cobra.Command) {
	c.Flags().StringVarP(&f.format, "output", "o", "text", "text or json")
}

// isJSON says whether JSON is wanted; a format that there isn't is an error.
func (f *formatFlag) isJSON() (bool, error) {
	switch f.format {
	case "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, fmt.Errorf("-o is text or json, not %q", f.format)
}
