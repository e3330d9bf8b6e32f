package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// completionTime is how long somebody who pressed the tab key waits for a server.
const completionTime = 2 * time.Second

// These are the things that an argument names.
const (
	namesPipeline    = "pipeline"
	namesComponent   = "component"
	namesEnvironment = "environment"
)

// completer is how cobra has arguments and flags completed.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// completeArguments completes the arguments of a command, by what each of them names. The
// server says what there is; of pipelines and environments, where it can't be reached, the
// pipeline files of the checkout that the current folder is in.
func (s *serverFlags) completeArguments(names ...string) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(names) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		of := ""
		if len(args) > 0 {
			of = args[0]
		}
		return s.namesOf(cmd.Context(), names[len(args)], of), cobra.ShellCompDirectiveNoFileComp
	}
}

// maxCompleted is how many pull requests are offered.
const maxCompleted = 50

// completePromotions completes the arguments of a verb that is about a promotion: the names of
// pipelines, components and environments, and for the first one also the pull requests that the verb
// may be meant for, with what each moves.
func (s *serverFlags) completePromotions(verb command.Verb) completer {
	names := s.completeArguments(namesPipeline, namesComponent, namesEnvironment)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && client.IsPull(args[0]) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out, directive := names(cmd, args, toComplete)
		if len(args) == 0 {
			out = append(out, s.listPulls(cmd.Context(), verb)...)
		}
		return out, directive
	}
}

// listPulls are pull requests by number, each with a description.
func (s *serverFlags) listPulls(ctx context.Context, verb command.Verb) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	cl, err := s.newClient()
	if err != nil {
		return nil
	}
	q := client.PromotionQuery{Repository: s.repository, States: []string{"open"}, Limit: maxCompleted}
	switch verb {
	case command.Revert:
		q.Kind, q.States = "promotion", []string{"merged", "verifying", "verified", "degraded", "failed"}
	case command.Retry, command.Promote:
		q.States = append(slices.Clone(unmergedStates), "verified", "degraded", "failed")
	case command.Diff:
		q.States = nil
	}
	found, err := cl.Promotions(ctx, q)
	if err != nil {
		return nil // the names are offered all the same
	}
	var out []string
	for i := range found {
		if p := &found[i]; p.Pull != nil {
			out = append(out, strconv.Itoa(p.Pull.Number)+"\t"+client.Printable(
				fmt.Sprintf("%s into %s, %s", strings.TrimSpace(p.Component+" "+p.Name), p.Environment, p.State)))
		}
	}
	return out
}

// completeEnvironments completes the value of a flag that names an environment of the pipeline
// that is the first argument.
func (s *serverFlags) completeEnvironments(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	of := ""
	if len(args) > 0 {
		of = args[0]
	}
	return s.namesOf(cmd.Context(), namesEnvironment, of), cobra.ShellCompDirectiveNoFileComp
}

// namesOf are the names of a kind, of one pipeline or, where none is named, of all.
func (s *serverFlags) namesOf(ctx context.Context, kind, of string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	found, err := s.serverPipelines(ctx, kind == namesComponent, of)
	if err != nil {
		found = checkoutPipelines(ctx)
	}
	var out []string
	for _, p := range found {
		switch {
		case kind == namesPipeline:
			out = append(out, p.Name)
		case of != "" && p.Name != of:
		case kind == namesEnvironment:
			out = append(out, p.Environments...)
		default:
			for i := range p.Components {
				out = append(out, p.Components[i].Component)
			}
		}
	}
	return out
}

// serverPipelines are those of the server, with the components of one if that is wanted.
func (s *serverFlags) serverPipelines(ctx context.Context, components bool, of string) ([]api.Pipeline, error) {
	cl, err := s.newClient()
	if err != nil {
		return nil, err
	}
	all, err := cl.Pipelines(ctx)
	if err != nil || !components {
		return pipelinesOf(all), err
	}
	var out []api.Pipeline
	for _, p := range all.Pipelines {
		if p.Name != of {
			continue
		}
		full, err := cl.Pipeline(ctx, p.Repository, p.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, *full)
	}
	return out, nil
}

func pipelinesOf(all *api.Pipelines) []api.Pipeline {
	if all == nil {
		return nil
	}
	return all.Pipelines
}

// checkoutPipelines are the pipelines of the checkout that the current folder is in, without
// components; none where there is none, or its files are broken.
func checkoutPipelines(ctx context.Context) []api.Pipeline {
	r, err := checkout.Open(ctx, "", nil)
	if err != nil {
		return nil
	}
	defer r.Close() // only read
	pipes, err := pipeline.Load(os.DirFS(r.Dir()))
	if err != nil {
		return nil
	}
	var out []api.Pipeline
	for _, p := range pipes {
		shown := api.Pipeline{Name: p.Name()}
		for _, e := range p.TopologicalOrder() {
			shown.Environments = append(shown.Environments, e.Name)
		}
		out = append(out, shown)
	}
	return out
}

// completePipelines completes a flag that names a pipeline of the checkout.
func completePipelines(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, p := range checkoutPipelines(cmd.Context()) {
		out = append(out, p.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag has a flag of a command completed; that there is none of that name is a mistake
// in this program, which every start would show.
func completeFlag(c *cobra.Command, name string, complete completer) {
	if err := c.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err)
	}
}
