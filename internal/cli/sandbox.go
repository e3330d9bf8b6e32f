package cli

import (
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/sandbox"
)

// sandboxCommand is what the server starts for what strangers wrote. People
// have no use for it: it speaks only to its parent.
func sandboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:    evaluate.Command,
		Short:  "Evaluate one tree for a parent process, over standard input and output",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandbox.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), evaluate.Handlers(zap.NewNop()))
		},
	}
}
