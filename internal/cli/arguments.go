package cli

import (
	"errors"
	"fmt"
	"slices"
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

// verbApprove is what people look for who know reviews by command. Here it has no command.
const verbApprove = "approve"

// knownVerbs are words that people know from other tools, by the commands that do the same here.
var knownVerbs = []struct {
	commands, words []string
}{
	{[]string{"init"}, []string{"new", "create", "setup", "generate", "scaffold"}},
	{[]string{"validate"}, []string{"lint", "check", "verify"}},
	{[]string{"plan"}, []string{"preview", "dry-run", "simulate"}},
	{[]string{"plan", "diff"}, []string{"render"}},
	{[]string{"doctor"}, []string{"diagnose", "health", "info"}},
	{[]string{"status", "promotions"}, []string{"list", "ls", "get", "show"}},
	{[]string{"status"}, []string{"ps", "pipelines", "components", "environments"}},
	{[]string{"promotions"}, []string{"pulls", "prs", "reverts", "releases"}},
	{[]string{"why"}, []string{"describe", "explain", "reason", "inspect"}},
	{[]string{"audit"}, []string{"history", "log", "logs", "events"}},
	{[]string{"resolve"}, []string{"template", "targets", "applications", "apps"}},
	{[]string{"set"}, []string{"edit", "bump", "update", "image"}},
	{[]string{"promote"}, []string{"deploy", "rollout", "ship", "advance", "apply", "sync"}},
	{[]string{"hold"}, []string{"pause", "stop", "freeze", "lock", "suspend", "block", "disable"}},
	{[]string{"unhold"}, []string{"resume", "unpause", "continue", "unlock", "unfreeze", "unblock", "enable"}},
	{[]string{"revert"}, []string{"rollback", "undo", "roll-back", "undeploy"}},
	{[]string{"retry"}, []string{"rerun", "restart", "redo"}},
	{[]string{"skip"}, []string{"override", "bypass", "force", "ignore", "break-glass"}},
	{[]string{"serve"}, []string{"server", "start", "run", "up"}},
	{[]string{"login"}, []string{"signin", "auth", "connect"}},
	{[]string{"contexts"}, []string{"context", "config", "use", "use-context", "logout", "ctx"}},
	{[]string{"playground", "demo"}, []string{"tutorial", "learn", "try"}},
}

// suggestCommands are the commands that somebody may have meant by a word.
func suggestCommands(root *cobra.Command, word string) []string {
	for _, k := range knownVerbs {
		if slices.Contains(k.words, strings.ToLower(word)) {
			return k.commands
		}
	}
	return root.SuggestionsFor(word)
}

// unknownCommand says which command may have been meant.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.EqualFold(args[0], verbApprove) {
		return errors.New("there is no command \"approve\": approvals are reviews of the pull request, given on the forge")
	}
	near := suggestCommands(root, args[0])
	if len(near) == 0 {
		return fmt.Errorf("there is no command %q; see %s --help", wording.ClipLine(args[0], 60), root.CommandPath())
	}
	return fmt.Errorf("there is no command %q; did you mean %s?", wording.ClipLine(args[0], 60), strings.Join(near, " or "))
}
