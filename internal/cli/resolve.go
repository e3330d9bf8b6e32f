package cli

import (
	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
)

func resolveCommand() *cobra.Command {
	var at checkoutFlags
	var q checkout.Query
	var files []string
	var diff bool
	c := &cobra.Command{
		Use:   "resolve",
		Short: "List the Applications that ApplicationSets generate, as the controller would",
		Long: "Lists the Applications that the ApplicationSets of a checkout generate, as Argo CD's controller\n" +
			"would, with nothing but the checkout: no server, no cluster, no network.\n\n" +
			"Which ApplicationSets: those of -f; else those that the checkout's pipeline files name, with\n" +
			"component and environment; else all in its YAML and JSON files.\n\n" +
			"Without --rev the files are those of the working tree, with every edit that isn't committed yet\n" +
			"and every new file that git doesn't ignore. A git generator's repository URL that is one of the\n" +
			"checkout's remotes is read from the checkout; its default branch and the branch that is checked\n" +
			"out are the files that are looked at, other revisions are what the checkout has of them.\n\n" +
			"-o yaml and -o json print the Applications as kubectl apply takes them.\n" +
			"--diff compares with what runs instead, over the connection that kubectl would use: what is\n" +
			"missing, what is extra and what differs, as the controller would see it.\n\n" +
			"Exits with 1 when something could not be resolved; what could be is printed all the same. With\n" +
			"--diff, with 3 when something differs that Argo CD should not have left so.",
		Example: "  liftlock resolve\n  liftlock resolve --rev v1.2.0 -o yaml\n  liftlock resolve -f argocd/web.yaml --clusters " +
			"clusters.yaml\n" +
			"  helm template charts/sets | liftlock resolve -f -",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := checkout.WriteTable
			if at.output == formatWide {
				table = checkout.WriteWideTable
			}
			write, err := chooseFormat(at.output, table, checkout.WriteYAML, checkout.WriteJSON)
			if err != nil {
				return err
			}
			q.Manifests = at.output == formatYAML || at.output == formatJSON
			if q.Known, err = at.loadKnown(cmd.Context(), diff); err != nil {
				return err
			}
			if q.Files, err = readManifests(cmd, files); err != nil {
				return err
			}
			r, err := at.address.open(cmd.Context(), at.repo)
			if err != nil {
				return err
			}
			defer r.Close() // only read
			if diff {
				return printDifferences(cmd, &at, r, q)
			}
			answer, err := r.Resolve(cmd.Context(), q)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), answer); err != nil {
				return err
			}
			return printProblems(cmd, answer.Problems, answer.Notes, appset.NameAll)
		},
	}
	at.addFlags(c)
	c.Flags().StringVar(&q.Rev, "rev", "", "a branch, tag or commit instead of the working tree")
	c.Flags().StringArrayVarP(&files, "file", "f", nil, "a manifest of ApplicationSets, - for standard input; may be repeated")
	c.Flags().StringVar(&q.Pipeline, "pipeline", "", "the sets of this pipeline only")
	completeFlag(c, "pipeline", completePipelines)
	c.Flags().BoolVar(&diff, "diff", false, "compare with the Applications that run")
	return c
}

// exitDifferent is the code of --diff when something differs.
const exitDifferent = 3

func printDifferences(cmd *cobra.Command, at *checkoutFlags, r *checkout.Repository, q checkout.Query) error {
	write, err := chooseFormat(at.output, appset.WriteDifferencesTable, appset.WriteYAML[*appset.Differences],
		appset.WriteJSON[*appset.Differences])
	if err != nil {
		return err
	}
	d, answer, err := r.Differences(cmd.Context(), q)
	if err != nil {
		return err
	}
	if err := write(cmd.OutOrStdout(), d); err != nil {
		return err
	}
	if err := printProblems(cmd, answer.Problems, answer.Notes, appset.NameAll); err != nil {
		return err
	}
	if d.Unexpected() > 0 {
		return exitError{exitDifferent}
	}
	return nil
}
