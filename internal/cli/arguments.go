package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/wording"
)

// explainArguments has every command say by its usage line what it takes, and not by counts.
func explainArguments(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			return argumentError(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		explainArguments(sub)
	}
}

// argumentError says what a command takes, what it got, and where to read more.
func argumentError(cmd *cobra.Command, args []string) error {
	_, takes, _ := strings.Cut(cmd.Use, " ")
	if takes == "" {
		takes = "no arguments"
	}
	got := "nothing"
	if len(args) > 0 {
		var shown []string
		for _, a := range args {
			shown = append(shown, fmt.Sprintf("%q", wording.ClipLine(a, 60)))
		}
		got = wording.JoinFew(shown, 5)
	}
	return fmt.Errorf("%s takes %s, not %s; see %[1]s --help", cmd.CommandPath(), takes, got)
}

// flagError names the command whose flags are meant.
func flagError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// unknownCommand says which command may have been meant.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := root.SuggestionsFor(args[0])
	if len(near) == 0 {
		return fmt.Errorf("there is no command %q; see %s --help", wording.ClipLine(args[0], 60), root.CommandPath())
	}
	return fmt.Errorf("there is no command %q; did you mean %s?", wording.ClipLine(args[0], 60), strings.Join(near, " or "))
}
