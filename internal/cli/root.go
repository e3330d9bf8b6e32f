package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// exitError ends the program with a code of its own; what is to be said was said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// Main runs the program and returns its exit code: 0 done, 1 refused or failed,
// or the command's own.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cobra.EnableCommandSorting = false // the commands of the first day come first
	root := Root()
	root.SetArgs(args)
	if cmd, _, err := root.Find(args); err == nil && cmd.Flags().Lookup("repo") != nil {
		silenceLibraries(root)
	}
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	fmt.Fprintln(root.ErrOrStderr(), "liftlock: "+err.Error())
	return 1
}

// silenceLibraries leaves standard error to what the program says: kustomize writes there of its own
// accord, about fields of somebody's kustomization that it would rather have written otherwise.
func silenceLibraries(root *cobra.Command) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return // then it is said
	}
	root.SetErr(os.Stderr)
	os.Stderr = null
}

// Root is the whole command tree.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "liftlock",
		Short: "Moves releases from environment to environment through pull requests",
		Long: "Liftlock takes Git events, resolves ApplicationSets into per-environment targets, opens\npromotion pull requests " +
			"that edit one environment's overlay, gates and merges them, waits\nuntil Argo CD has synced that commit and everything is " +
			"healthy, and goes on or goes back.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       Version(),
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addGroups(root)
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	for _, c := range root.Commands() {
		explainArguments(c)
		addProgress(c)
	}
	return root
}
