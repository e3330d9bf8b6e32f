package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/client"
)

func compareCommand() *cobra.Command {
	r := &serverFlags{}
	c := &cobra.Command{
		Use:   "compare PIPELINE COMPONENT FROM TO",
		Short: "Show what two environments of a component differ in",
		Long: "Shows which releases FROM had since the last one that both had, which only TO had, and the\ncarried fields " +
			"whose values differ now.",
		Example:           "  liftlock compare shop web dev prod",
		Args:              cobra.ExactArgs(4),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent, namesEnvironment, namesEnvironment),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			found, err := cl.Compare(cmd.Context(), r.repository, args[0], args[1], args[2], args[3])
			if err != nil {
				return err
			}
			return r.printAnswer(cmd.OutOrStdout(), found, func(w io.Writer) error { return client.PrintComparison(w, found) })
		},
	}
	return r.addOutputFlag(r.addFlags(c))
}
