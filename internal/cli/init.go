package cli

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/cli/propose"
)

// initLong is what init says of itself.
const initLong = "Proposes a pipeline file from the ApplicationSets of a checkout, or from its plain Applications\n" +
	"where it has no sets: which parameters are component and environment, the environments' order,\n" +
	"and which fields a promotion moves. Comments say what speaks for each. The file says\n" +
	"mode: observe: Liftlock then says what it would do, and does nothing.\n\n" +
	"It needs nothing but the checkout with its history, and gives the same file for the same files.\n" +
	"With -f they are those of manifests, such as what helm template makes of a chart; where a chart here makes\n" +
	"just them, the file names that. With --live the ApplicationSets are those that run and deploy from this checkout, for sets " +
	"whose\n" +
	"manifests are in another repository or a chart. What is proposed was checked as liftlock validate\n" +
	"and liftlock plan do it.\n\n" +
	"Exits with 0 when the file can be used, with 1 when there is nothing to make one of, and with 3\n" +
	"when something has to be said: on a terminal it asks, else it prints the flags to choose by, and the\n" +
	"file with what is known, a TODO at each key that is open and what it saw for it. --write writes that\n" +
	"where no flag chooses.\n\n" +
	"With --from it takes over what Argo CD Image Updater and Kargo do: as entries of discover, and as the\n" +
	"environments' order. What has no counterpart is named in comments at the end.\n\n" +
	"With --pull-request it opens one with the file, as a server does for repositories with onboard: true.\n" +
	"It needs a token that may push and open pull requests. One that is open stays the only one, and one\n" +
	"that was closed is a no.\n\n" +
	"With --clusters-example it prints a file of cluster Secrets to begin with, for ApplicationSets that\n" +
	"generate from Argo CD's clusters: with the labels and annotations that they select by and read.\n\n" +
	"With --github-app it prints the manifest from which GitHub makes an App for Liftlock, and no more."

// exitChoice is the code of init where a person has to choose.
const exitChoice = 3

func initCommand() *cobra.Command {
	var at checkoutFlags
	var app appFlags
	var pull pullRequestFlags
	var format formatFlag
	var q checkout.ProposalQuery
	var write, clustersExample bool
	var files, from []string
	c := &cobra.Command{
		Use:   "init",
		Short: "Propose a pipeline file from a checkout's ApplicationSets",
		Long:  initLong,
		Example: "  liftlock init\n  liftlock init --write\n  liftlock init --live --clusters live\n  liftlock init --clusters-example > " +
			"clusters.yaml\n  liftlock init --order dev,qa,prod-eu+prod-us\n" +
			"  liftlock init --github-app --external-url https://liftlock.example.com",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := errors.Join(app.checkFlags(cmd), pull.checkFlags(cmd, "write", "output", "clusters-example")); err != nil {
				return err
			}
			if app.print {
				return app.printManifest(cmd)
			}
			data, err := format.forPrograms()
			if err != nil {
				return err
			}
			if err := checkExampleFlags(cmd, clustersExample); err != nil {
				return err
			}
			if q.Files, err = readManifests(cmd, files); err != nil {
				return err
			}
			if len(q.Files) > 0 && q.Live {
				return errors.New("-f and --live both say which ApplicationSets count: leave one out")
			}
			if q.From, err = readMigrated(cmd, from); err != nil {
				return err
			}
			q.Flags = append(at.address.asArguments(), at.known.asArguments()...)
			if q.Known, err = at.loadKnown(cmd.Context(), q.Live); err != nil {
				return err
			}
			r, err := at.address.open(cmd.Context(), at.repo)
			if err != nil {
				return err
			}
			defer r.Close() // only read
			if clustersExample {
				return printExampleClusters(cmd, r, checkout.Query{Known: q.Known, Files: q.Files})
			}
			if q.Now = time.Now(); pull.open {
				return pull.openPullRequest(cmd, r, q)
			}
			p, err := proposeWithChoices(cmd, r, &q, write, data)
			if err != nil {
				return err
			}
			return printProposal(cmd, r.Dir(), p, write, data)
		},
	}
	at.addCheckoutFlags(c)
	format.addFlag(c)
	c.Flags().BoolVar(&write, "write", false, "write the file into the checkout; one that is there is left as it is")
	c.Flags().BoolVar(&clustersExample, "clusters-example", false,
		"print an example of Argo CD's clusters, as the checkout's ApplicationSets ask for them, for --clusters and the pipeline file's "+
			"clusters")
	c.Flags().StringArrayVarP(&files, "file", "f", nil, "a manifest of ApplicationSets, - for standard input, instead of those that the "+
		"checkout has; may be repeated")
	c.Flags().StringArrayVar(&from, "from", nil, "say what Argo CD Image Updater and Kargo do here: a manifest with ImageUpdaters, "+
		"Warehouses, Stages and Projects, a folder of such, or - for standard input; the Applications' annotations count, too; may be "+
		"repeated")
	c.Flags().BoolVar(&q.Live, "live", false, "take the ApplicationSets of the running Argo CD, and not the checkout's")
	c.Flags().StringVar(&q.Name, "name", "", "the pipeline's name (default: the ApplicationSet's, else the repository's)")
	c.Flags().StringVar(&q.Templates.Component, "component", "", "the template that gives each target's component (default: inferred)")
	c.Flags().StringVar(&q.Templates.Environment, "environment", "",
		"the template that gives each target's environment (default: inferred)")
	c.Flags().StringSliceVar(&q.Order, "order", nil, "the environments in their order; those of one step joined by +, as in "+
		"dev,qa,prod-eu+prod-us (default: inferred)")
	pull.addFlags(c, "open a pull request with the file on origin's forge, unless one is open")
	app.addFlags(c)
	return c
}

// checkExampleFlags refuses flags that an example of clusters has no use for.
func checkExampleFlags(cmd *cobra.Command, example bool) error {
	if !example {
		return nil
	}
	for _, name := range []string{"clusters", "live", "write", "output", "name", "component", "environment", "order"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--clusters-example prints a file of clusters and no pipeline file: leave --%s out", name)
		}
	}
	return nil
}

// printExampleClusters prints an example of clusters, and what resolving with it shows.
func printExampleClusters(cmd *cobra.Command, r *checkout.Repository, q checkout.Query) error {
	example, err := r.ExampleClusters(cmd.Context(), q)
	if err != nil {
		return err
	}
	if _, err := cmd.OutOrStdout().Write(example.Text); err != nil {
		return err
	}
	printNotes(cmd, example.Problems, example.Notes, appset.NameFew)
	return nil
}

// proposeWithChoices proposes, and has a person settle on a terminal what the files don't.
// For programs the choice is the answer: they are asked nothing.
func proposeWithChoices(cmd *cobra.Command, r *checkout.Repository, q *checkout.ProposalQuery, write bool,
	data dataWriter) (*checkout.Proposal, error) {
	in := bufio.NewReader(cmd.InOrStdin())
	for {
		p, err := r.Propose(cmd.Context(), *q)
		var choice *propose.ChoiceError
		if !errors.As(err, &choice) {
			return p, err
		}
		if data != nil || len(choice.Options) == 0 || !onTerminal(cmd.InOrStdin()) {
			if err := printDraft(cmd, r.Dir(), choice, write, data); err != nil {
				return nil, err
			}
			return nil, exitError{exitChoice}
		}
		if err := promptChoice(cmd, in, choice); err != nil {
			return nil, err
		}
	}
}

// printChoice lists what can be chosen, and the commands that choose it: with the flags that
// were given already.
func printChoice(cmd *cobra.Command, choice *propose.ChoiceError) {
	given := []string{"liftlock init"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		given = append(given, quoteArgument("--"+f.Name+"="+value))
	})
	w := cmd.ErrOrStderr()
	fmt.Fprintln(w, "liftlock: "+choice.Question)
	for _, o := range choice.Options {
		words := slices.Clone(given)
		for _, f := range o.Flags {
			words = append(words, quoteArgument(f))
		}
		fmt.Fprintf(w, "  %s\n      %s\n", strings.Join(words, " "), o.Meaning)
	}
	for _, seen := range choice.Seen {
		fmt.Fprintf(w, "  %s\n", appset.Printable(seen))
	}
	if choice.Other != "" {
		fmt.Fprintf(w, "  %s\n", choice.Other)
	}
}

// quoteArgument writes an argument as a POSIX shell takes it.
func quoteArgument(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"\\$`|&;<>(){}*?[]#~!") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// promptChoice asks a person on a terminal, and sets the flags of the answer.
func promptChoice(cmd *cobra.Command, in *bufio.Reader, choice *propose.ChoiceError) error {
	w := cmd.ErrOrStderr()
	fmt.Fprintln(w, choice.Question)
	for i, o := range choice.Options {
		fmt.Fprintf(w, "  %d  %s (%s)\n", i+1, o.Meaning, strings.Join(o.Flags, " "))
	}
	if choice.Other != "" {
		fmt.Fprintf(w, "  %s\n", choice.Other)
	}
	for {
		fmt.Fprintf(w, "1 to %d: ", len(choice.Options))
		line, err := in.ReadString('\n')
		if err != nil {
			return exitError{exitChoice}
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || n < 1 || n > len(choice.Options) {
			continue
		}
		for _, f := range choice.Options[n-1].Flags {
			name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
			if err := cmd.Flags().Set(name, value); err != nil {
				return fmt.Errorf("take the answer as --%s: %w", name, err)
			}
		}
		return nil
	}
}
