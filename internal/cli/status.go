package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// statusFlags say what status shows, and how.
type statusFlags struct {
	serverFlags
	filter client.Filter
	label  string
	watch  bool
}

// statusAnswer is what status prints for programs: the API's answer and, with --needs-look, the causes.
type statusAnswer struct {
	*api.Pipelines
	Causes []api.ProblemGroup `json:"causes,omitzero"`
}

func statusCommand() *cobra.Command {
	s := &statusFlags{}
	c := &cobra.Command{
		Use:   "status [PIPELINE [COMPONENT]]",
		Short: "Show what runs where, and what wants to come",
		Long: "Shows what runs where, and what wants to come. --needs-look shows only what a person should look\n" +
			"at, grouped by cause; --environment and --label choose what is looked at. With --watch it is\n" +
			"shown again whenever it has changed, until Ctrl-C.",
		Example: "  liftlock status shop\n  liftlock status --needs-look --environment 'prod*'\n" +
			"  liftlock status shop --label team=pay --watch",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: s.completeArguments(namesPipeline, namesComponent),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if s.label != "" {
				if s.filter.Labels, err = labels.Parse(s.label); err != nil {
					return fmt.Errorf("--label: %w", err)
				}
			}
			show := func(w io.Writer) error { return s.printStatus(cmd.Context(), w, args) }
			if !s.watch {
				return show(cmd.OutOrStdout())
			}
			ticker := time.NewTicker(waitInterval)
			defer ticker.Stop()
			return watchAnswer(cmd, ticker.C, s.separator(), show)
		},
	}
	c.Flags().BoolVar(&s.filter.NeedsLook, "needs-look", false, "only what a person should look at, grouped by cause")
	c.Flags().StringVar(&s.filter.Environment, "environment", "", "only this environment; * stands for any part of a name")
	completeFlag(c, "environment", s.completeEnvironments)
	c.Flags().StringVarP(&s.label, "label", "l", "", "only components whose Applications have these labels, as kubectl get -l takes them")
	c.Flags().BoolVarP(&s.watch, "watch", "w", false, "show it again whenever it has changed")
	return s.addOutputFlag(s.addFlags(c))
}

// separator is what stands between two answers of --watch where they don't take each other's place.
func (s *statusFlags) separator() string {
	switch s.output {
	case formatJSON:
		return ""
	case formatYAML:
		return "---\n"
	}
	return "\n"
}

func (s *statusFlags) printStatus(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 2 {
		if !s.filter.NeedsLook && s.filter.Labels == nil {
			return s.printWhy(ctx, out, args[0], args[1], s.filter.Environment)
		}
		s.filter.Component = args[1]
	}
	all, err := s.readStatus(ctx, args)
	if err != nil {
		return err
	}
	answer := statusAnswer{Pipelines: all}
	if s.filter.NeedsLook {
		answer.Causes = s.filter.Problems(all.Pipelines)
	}
	return s.printAnswer(out, answer, func(w io.Writer) error {
		client.PrintTroubles(w, all.Troubles)
		if s.filter.NeedsLook {
			return client.PrintProblems(w, answer.Causes, s.isWide())
		}
		return s.printTables(w, all.Pipelines)
	})
}

func (s *statusFlags) printTables(w io.Writer, shown []api.Pipeline) error {
	if len(shown) == 0 && !s.filter.IsZero() {
		_, err := fmt.Fprintln(w, "there are no such components")
		return err
	}
	printPipeline := client.PrintPipeline
	if s.isWide() {
		printPipeline = client.PrintWidePipeline
	}
	for i := range shown {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := printPipeline(w, &shown[i]); err != nil {
			return err
		}
	}
	return nil
}

// readStatus reads the pipelines that are chosen, and of each what is; a filtered one that has none
// of it is left out.
func (s *statusFlags) readStatus(ctx context.Context, args []string) (*api.Pipelines, error) {
	cl, err := s.newClient()
	if err != nil {
		return nil, err
	}
	all, err := cl.Pipelines(ctx)
	if err != nil {
		return nil, err
	}
	var names, environments []string
	chosen := slices.DeleteFunc(slices.Clone(all.Pipelines), func(p api.Pipeline) bool {
		names = append(names, p.Name)
		return len(args) > 0 && p.Name != args[0] || s.repository != "" && p.Repository != s.repository
	})
	if len(args) > 0 && len(chosen) == 0 {
		return nil, fmt.Errorf("the server knows no pipeline %q with a component%s", args[0], strictyaml.DidYouMean(args[0], names))
	}
	all.Pipelines = []api.Pipeline{}
	for _, p := range chosen {
		environments = append(environments, p.Environments...)
		if s.filter.NeedsLook && p.Counts.Attention == 0 {
			continue
		}
		full, err := cl.Pipeline(ctx, p.Repository, p.Name)
		if err != nil {
			return nil, err
		}
		if s.filter.Apply(full); len(full.Components) > 0 || s.filter.IsZero() {
			all.Pipelines = append(all.Pipelines, *full)
		}
	}
	if len(environments) > 0 && !slices.ContainsFunc(environments, s.filter.Shows) {
		return nil, fmt.Errorf("there is no environment %q%s", s.filter.Environment,
			strictyaml.DidYouMean(s.filter.Environment, environments))
	}
	if s.filter.Component != "" && len(all.Pipelines) == 0 {
		return all, cl.CheckNames(ctx, s.repository, args[0], s.filter.Component, "")
	}
	return all, nil
}

// clearTerminal has the terminal begin at its first line again.
const clearTerminal = "\x1b[H\x1b[2J"

// watchAnswer shows an answer, and again at each tick at which it has changed, until the command's
// context ends. A terminal shows the last one alone; else the separator stands between two. That the
// server doesn't answer is no end once it has: it may be restarted.
func watchAnswer(cmd *cobra.Command, tick <-chan time.Time, separator string, show func(io.Writer) error) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	last, failed, count := "", "", 0
	for {
		var b strings.Builder
		err := show(&b)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && count == 0:
			return err
		case err != nil && err.Error() != failed:
			failed = err.Error()
			fmt.Fprintln(cmd.ErrOrStderr(), "liftlock: "+failed)
		case err == nil:
			if text := b.String(); text != last || failed != "" || count == 0 {
				if onTerminal(out) {
					text = clearTerminal + text
				} else if count > 0 {
					text = separator + text
				}
				if _, err := io.WriteString(out, text); err != nil {
					return fmt.Errorf("write the answer: %w", err)
				}
				last, failed = b.String(), ""
				count++
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}
