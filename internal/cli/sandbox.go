package cli

import (
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// sandboxCommand is what the server starts for what strangers wrote, and, to live on, for what
// is rendered of its own branches. People have no use for it: it speaks only to its parent.
func sandboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:    evaluate.Command,
		Short:  "Evaluate one tree for a parent process, over standard input and output",
		Hidden: true,
		Args:   cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),

		ValidArgs: []string{evaluate.PoolArgument},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return sandbox.ServeBatches(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), evaluate.ItemHandlers())
			}
			return sandbox.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), evaluate.Handlers(zap.NewNop()))
		},
	}
}
