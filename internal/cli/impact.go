package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/cli/checkout"
)

// exitMultiple is the code when a change reaches more than one environment: with
// --exit-code, or where the pipeline's file fails that.
const exitMultiple = 3

func impactCommand() *cobra.Command {
	var at checkoutFlags
	var change checkout.Change
	var exitCode bool
	c := &cobra.Command{
		Use:   "impact",
		Short: "Say which targets and environments a change touches, and how",
		Long: "Says which Applications a change creates, changes and deletes, in which environments: those whose\n" +
			"specification differs, and those that read a file that differs. It needs nothing but a checkout.\n\n" +
			"Compared are the files of --head with those of the newest commit that it has in common with\n" +
			"--base, as in a pull request. The pipelines are the base's, so a change is not judged by rules\n" +
			"that it brings along; without any, all ApplicationSets in YAML and JSON files count.\n\n" +
			"--rendered adds what becomes of their manifests, with secrets hidden; what they deploy from other\n" +
			"repositories and chart repositories is read from the folders that --source names.\n\n" +
			"Exits with 1 when the change brings a problem, such as an ApplicationSet that can't be resolved;\n" +
			"with 3 when it reaches more than one environment of a pipeline: with --exit-code, or where the\n" +
			"pipeline says impact: {failOn: several}.",
		Example: "  liftlock impact\n  liftlock impact --base origin/main --head HEAD -o json\n  liftlock impact --base v1.1.0 --head " +
			"v1.2.0 --exit-code\n  liftlock impact --rendered --source https://charts.example/stable=../charts",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, err := chooseFormat(at.output, impact.WriteTable, appset.WriteYAML[*impact.Report], appset.WriteJSON[*impact.Report])
			if err != nil {
				return err
			}
			if change.Known, err = at.loadKnown(cmd.Context(), false); err != nil {
				return err
			}
			r, err := at.address.open(cmd.Context(), at.repo)
			if err != nil {
				return err
			}
			defer r.Close() // only read
			found, err := r.Impact(cmd.Context(), change)
			if err != nil {
				return err
			}
			if at.output == formatTable || at.output == formatWide {
				fmt.Fprintf(cmd.OutOrStdout(), "From %s to %s:\n\n", appset.Printable(found.From), appset.Printable(found.To))
			}
			if err := write(cmd.OutOrStdout(), found.Report); err != nil {
				return err
			}
			if err := printNewProblems(cmd, found); err != nil {
				return err
			}
			if exitCode && len(found.Report.Multiple()) > 0 || len(found.Report.Refused()) > 0 {
				return exitError{exitMultiple}
			}
			return nil
		},
	}
	at.addFlags(c)
	at.address.addSourceFlag(c)
	c.Flags().BoolVar(&change.Rendered, "rendered", false, "say what the change does to the rendered manifests of the Applications that "+
		"it touches")
	c.Flags().StringVar(&change.Base, "base", "", "what the change is to be merged into (default: the remote's default branch, as last "+
		"fetched)")
	c.Flags().StringVar(&change.Head, "head", "", "the change's branch, tag or commit (default: the working tree, with what isn't "+
		"committed yet)")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 when the change reaches more than one environment of a pipeline")
	return c
}

// printNewProblems tells what is wrong; only what the change brings decides
// the exit code.
func printNewProblems(cmd *cobra.Command, found *checkout.Impact) error {
	var brought []appset.Problem
	notes := slices.Clone(found.Notes)
	for _, p := range found.Report.Pipelines {
		brought = append(brought, p.Problems...)
		for _, s := range p.Preexisting {
			s.Message += " (it was so before the change)"
			notes = append(notes, s)
		}
		for _, m := range p.Fixed {
			m.Message += " (only before the change)"
			notes = append(notes, m)
		}
	}
	return printProblems(cmd, brought, notes, appset.NameFew)
}
