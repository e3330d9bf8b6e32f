package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/controller/plan"
)

func planCommand() *cobra.Command {
	var at checkoutFlags
	var q checkout.PlanQuery
	var short bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show the promotions that would open now with their diffs, and why the others wouldn't",
		Long: "Shows the promotions that would open if the tracked branch were where HEAD is, with what they\n" +
			"change, and for the rest why not. It needs nothing but a checkout with its history: no server,\n" +
			"no forge, no Argo CD. It opens nothing and writes nothing.\n\n" +
			"What is committed counts, and the pipeline file as it lies in the working tree, so that an edit\n" +
			"of it can be tried out; --rev origin/main plans from the branch that the server tracks, as\n" +
			"last fetched. What Git can't tell is taken for granted, and the answer says so: every release is\n" +
			"healthy where it is, no pull request of Liftlock's is open or was closed by a person, and\n" +
			"commits with Liftlock's trailers are Liftlock's. Holds are those of the branch liftlock-state.\n\n" +
			"The edits are composed, and proven to change no other environment, as the server does it.\n" +
			"Diffs are as git apply takes them. --rendered adds what becomes of the manifests, with secrets\n" +
			"hidden.\n\n" +
			"Exits with 1 when a pipeline file is broken or something could not be resolved, else with 0,\n" +
			"also when nothing would open.",
		Example: "  liftlock plan\n  liftlock plan --rev origin/main --short\n  liftlock plan --rendered -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := func(w io.Writer, p *plan.Plan) error {
				write := func(w io.Writer) error { return plan.WriteText(w, p, short) }
				return printPainted(w, hasColours(w), paintDiff, write)
			}
			write, err := chooseFormat(at.output, text, appset.WriteYAML[*plan.Plan], appset.WriteJSON[*plan.Plan])
			if err != nil {
				return err
			}
			if q.Known, err = at.loadKnown(cmd.Context(), false); err != nil {
				return err
			}
			r, err := at.address.open(cmd.Context(), at.repo)
			if err != nil {
				return err
			}
			defer r.Close() // only read
			q.Now = time.Now()
			p, err := r.Plan(cmd.Context(), q)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), p); err != nil {
				return err
			}
			return printProblems(cmd, p.Problems, p.Notes, appset.NameFew)
		},
	}
	at.addPlanFlags(c, &q, "the promotions of this pipeline only")
	c.Flags().BoolVar(&q.Rendered, "rendered", false, "say what the promotions do to the rendered manifests")
	c.Flags().BoolVar(&short, "short", false, "leave the diffs out of the table")
	return c
}
