package cli

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/controller/plan"
)

func discoverCommand() *cobra.Command {
	var at checkoutFlags
	var q checkout.PlanQuery
	var reach versionFlags
	var all bool
	c := &cobra.Command{
		Use:   "discover",
		Short: "Show which new tags and versions would come into source environments by themselves",
		Long: "Shows, for each component in each source environment with discover, which image tags and chart\n" +
			"versions are there, which would come in, and why the others don't. It needs a checkout with its\n" +
			"history and the registries, and no server. It commits nothing.\n\n" +
			"What is committed counts, and the pipeline file as it lies in the working tree, so that a rule\n" +
			"can be tried out before it is in force.\n\n" +
			"Credentials are those that docker login left in its file; programs that keep credentials are\n" +
			"not started. A Kubernetes pull secret's .dockerconfigjson is such a file, too.\n\n" +
			"Exits with 1 when a pipeline file is broken, something could not be resolved, or a registry gave\n" +
			"no answer, else with 0, also when nothing would come in.",
		Example: "  liftlock discover\n  liftlock discover --all -o json\n  liftlock discover --plain-http registry.internal:5000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := func(w io.Writer, d *plan.Discovery) error { return plan.WriteDiscovery(w, d, all) }
			write, err := chooseFormat(at.output, text, appset.WriteYAML[*plan.Discovery], appset.WriteJSON[*plan.Discovery])
			if err != nil {
				return err
			}
			if q.Known, err = at.loadKnown(cmd.Context(), false); err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "liftlock-charts-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir) // nothing in it is needed again
			source, err := reach.open(dir)
			if err != nil {
				return err
			}
			r, err := at.address.open(cmd.Context(), at.repo)
			if err != nil {
				return err
			}
			defer r.Close() // only read
			q.Now = time.Now()
			d, err := r.Discover(cmd.Context(), q, source)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), d); err != nil {
				return err
			}
			return printProblems(cmd, d.Problems, d.Notes, appset.NameFew)
		},
	}
	at.addPlanFlags(c, &q, "the source environments of this pipeline only")
	c.Flags().BoolVar(&all, "all", false, "show in the table of every tag why it doesn't come in")
	reach.addFlags(c)
	return c
}
