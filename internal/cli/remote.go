package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// serverFlags are the flags of every command that speaks to a server.
type serverFlags struct {
	server, tokenFile, repository, output string
	reply                                 formatFlag // of commands that only acknowledge
}

// The variables that name a server and hold a token: a token on a command line
// could be read by everybody on the machine.
const (
	serverVariable = "LIFTLOCK_SERVER"
	tokenVariable  = "LIFTLOCK_TOKEN"
)

// remoteCommands are the commands that speak to a server's API.
func remoteCommands() []*cobra.Command {
	all := []*cobra.Command{statusCommand(), whyCommand(), compareCommand(), diffCommand(), auditCommand(), promoteCommand(),
		holdCommand(command.Hold), holdCommand(command.Unhold), skipCommand()}
	for _, v := range command.OnPromotion() {
		if v.IsPlain() {
			all = append(all, onPromotionCommand(v))
		}
	}
	return all
}

func (s *serverFlags) addFlags(c *cobra.Command) *cobra.Command {
	server := os.Getenv(serverVariable)
	if server == "" {
		server = "http://127.0.0.1:8080"
	}
	c.Flags().StringVar(&s.server, "server", server, "the server's address, also from "+serverVariable)
	c.Flags().StringVar(&s.tokenFile, "token-file", "", "a file with an API token; without it the token is in "+tokenVariable)
	c.Flags().StringVar(&s.repository, "repository", "", "the repository, as forge:owner/name; needed only where several have a pipeline "+
		"or pull request of that name")
	return c
}

func (s *serverFlags) newClient() (*client.Client, error) {
	token := os.Getenv(tokenVariable)
	if s.tokenFile != "" {
		raw, err := os.ReadFile(s.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the API token: %w", err)
		}
		token = string(raw)
	}
	return client.New(s.server, strings.TrimSpace(token), Version())
}

// printAnswer writes an answer as the output flag says.
func (s *serverFlags) printAnswer(w io.Writer, v any, table func(io.Writer) error) error {
	switch s.output {
	case "table":
		return table(w)
	case "json":
		return printJSON(w, v)
	}
	return fmt.Errorf("-o is table or json, not %q", s.output)
}

func (s *serverFlags) addOutputFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&s.output, "output", "o", "table", "table or json")
	return c
}

func statusCommand() *cobra.Command {
	r := &serverFlags{}
	c := &cobra.Command{
		Use:               "status [PIPELINE [COMPONENT]]",
		Short:             "Show what runs where, and what wants to come",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return r.printWhy(cmd, args[0], args[1], "")
			}
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			all, err := cl.Pipelines(cmd.Context())
			if err != nil {
				return err
			}
			var shown []api.Pipeline
			for _, p := range all.Pipelines {
				if len(args) == 1 && p.Name != args[0] || r.repository != "" && p.Repository != r.repository {
					continue
				}
				full, err := cl.Pipeline(cmd.Context(), p.Repository, p.Name)
				if err != nil {
					return err
				}
				shown = append(shown, *full)
			}
			if len(args) == 1 && len(shown) == 0 {
				return fmt.Errorf("the server knows no pipeline %q with a component", args[0])
			}
			all.Pipelines = shown
			return r.printAnswer(cmd.OutOrStdout(), all, func(w io.Writer) error {
				client.PrintTroubles(w, all.Troubles)
				for i := range shown {
					if i > 0 {
						fmt.Fprintln(w)
					}
					if err := client.PrintPipeline(w, &shown[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	return r.addOutputFlag(r.addFlags(c))
}

func whyCommand() *cobra.Command {
	r := &serverFlags{}
	c := &cobra.Command{
		Use:               "why PIPELINE COMPONENT [ENVIRONMENT]",
		Short:             "Say why a component is where it is, and what the rest waits for",
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent, namesEnvironment),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.printWhy(cmd, args[0], args[1], strings.Join(args[2:], ""))
		},
	}
	return r.addOutputFlag(r.addFlags(c))
}

func (s *serverFlags) printWhy(cmd *cobra.Command, pipeline, component, environment string) error {
	cl, err := s.newClient()
	if err != nil {
		return err
	}
	y, err := cl.Why(cmd.Context(), s.repository, pipeline, component, environment)
	if err != nil {
		return err
	}
	return s.printAnswer(cmd.OutOrStdout(), y, func(w io.Writer) error {
		client.PrintTroubles(w, y.Troubles)
		client.PrintWhy(w, y)
		return nil
	})
}

const (
	// waitInterval is how often a promotion that is waited for is looked at, waitGrace how long
	// a server may take until it has carried the command out.
	waitInterval = 5 * time.Second
	waitGrace    = 30 * time.Second
)

func promoteCommand() *cobra.Command {
	r := &serverFlags{}
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "promote PIPELINE COMPONENT ENVIRONMENT",
		Short: command.Promote.Short(),
		Long: "Opens a promotion into an environment, also one that is diverged or opened by hand only.\n\n" +
			"With --wait it then says what the promotion does, and ends with 0 when the release is verified,\n" +
			"with 1 when it is held, closed, degraded or failed, or another release took its place, and with\n" +
			"1 after --timeout. Ending it ends nothing of the promotion.",
		Example:           "  liftlock promote shop web prod\n  liftlock promote shop web prod --wait --timeout 2h",
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent, namesEnvironment),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := api.PipelineCommand{Component: args[1], Environment: args[2]}
			if !wait {
				return r.onPipeline(cmd, args[0], command.Promote, body)
			}
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			before, err := cl.Environment(cmd.Context(), r.repository, args[0], args[1], args[2])
			if err != nil {
				return err
			}
			if err := r.onPipeline(cmd, args[0], command.Promote, body); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			err = cl.WaitForPromotion(ctx, client.Wait{
				Repository: r.repository, Pipeline: args[0], Component: args[1], Environment: args[2], Every: waitInterval,
				Grace:  waitGrace,
				Report: r.reportProgress(cmd),
			}, before)
			if errors.Is(err, context.DeadlineExceeded) && cmd.Context().Err() == nil {
				return fmt.Errorf("the release is not verified after %s; it goes on without this command: see liftlock why %s %s %s",
					timeout, args[0], args[1], args[2])
			}
			return err
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the release is verified there, or isn't going to be")
	c.Flags().DurationVar(&timeout, "timeout", time.Hour, "how long --wait waits")
	return r.addReplyFlag(r.addFlags(c))
}

// addReplyFlag is the output flag of a command that only acknowledges.
func (s *serverFlags) addReplyFlag(c *cobra.Command) *cobra.Command {
	s.reply.addFlag(c)
	return c
}

// printReply writes the server's reply to a command.
func (s *serverFlags) printReply(cmd *cobra.Command, text string) error {
	asJSON, err := s.reply.isJSON()
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), api.CommandReply{Text: text})
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

// reportProgress is how a promotion that is waited for is told of: as JSON, an object a change.
func (s *serverFlags) reportProgress(cmd *cobra.Command) func(text string) {
	return func(text string) {
		var err error
		if asJSON, _ := s.reply.isJSON(); asJSON { // the format was checked with the command
			err = printJSON(cmd.OutOrStdout(), progressAnswer{text})
		} else {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		}
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "liftlock: write the progress:", err)
		}
	}
}

// progressAnswer is what promote --wait prints as JSON, for each change.
type progressAnswer struct {
	Progress string `json:"progress"`
}

func (s *serverFlags) onPipeline(cmd *cobra.Command, pipeline string, verb command.Verb, body api.PipelineCommand) error {
	if _, err := s.reply.isJSON(); err != nil {
		return err
	}
	cl, err := s.newClient()
	if err != nil {
		return err
	}
	body.Repository = s.repository
	text, err := cl.SendPipelineCommand(cmd.Context(), pipeline, string(verb), body)
	if err != nil {
		return err
	}
	return s.printReply(cmd, text)
}

func (s *serverFlags) onPromotion(cmd *cobra.Command, promotion string, verb command.Verb, body api.PromotionCommand) error {
	if _, err := s.reply.isJSON(); err != nil {
		return err
	}
	cl, err := s.newClient()
	if err != nil {
		return err
	}
	id, err := cl.FindPromotion(cmd.Context(), s.repository, promotion)
	if err != nil {
		return err
	}
	text, err := cl.SendPromotionCommand(cmd.Context(), id, string(verb), body)
	if err != nil {
		return err
	}
	return s.printReply(cmd, text)
}

func holdCommand(verb command.Verb) *cobra.Command {
	r := &serverFlags{}
	var environment, promotion, reason, lasts, until string
	var all, reverts bool
	c := &cobra.Command{
		Use:   string(verb) + " [PIPELINE [COMPONENT]]",
		Short: verb.Short(),
		Example: fmt.Sprintf("  liftlock %[1]s shop web\n  liftlock %[1]s shop --environment prod\n  liftlock %[1]s shop --all\n"+
			"  liftlock %[1]s --promotion 12\n  liftlock %[1]s --promotion '#14'", verb),
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent),
		RunE: func(cmd *cobra.Command, args []string) error {
			if promotion != "" {
				if len(args) > 0 || environment != "" || all || reverts {
					return errors.New("--promotion stands alone: it names the pull request by itself")
				}
				return r.onPromotion(cmd, promotion, verb, api.PromotionCommand{For: lasts, Until: until, Reason: reason})
			}
			if len(args) == 0 {
				return errors.New("name a pipeline, or a promotion with --promotion")
			}
			body := api.PipelineCommand{Environment: environment, Reverts: reverts, For: lasts, Until: until, Reason: reason}
			if len(args) == 2 {
				body.Component = args[1]
			}
			if all {
				body.Scope = "pipeline"
			}
			return r.onPipeline(cmd, args[0], verb, body)
		},
	}
	c.Flags().StringVar(&environment, "environment", "", "the environment, with all its components")
	completeFlag(c, "environment", r.completeEnvironments)
	c.Flags().BoolVar(&all, "all", false, "the whole pipeline")
	if verb == command.Hold {
		c.Flags().BoolVar(&reverts, "reverts", false, "stop reverts too")
		c.Flags().StringVar(&lasts, "for", "", "how long, such as 2h or 3d; without it and --until, until somebody lifts it")
		c.Flags().StringVar(&until, "until", "", "until when: a date (when it begins in UTC) or a time with its offset")
	}
	c.Flags().StringVar(&promotion, "promotion", "", "one promotion's pull request: the promotion's number, or #14 for the pull request's")
	c.Flags().StringVar(&reason, "reason", "", "why, for the others")
	return r.addReplyFlag(r.addFlags(c))
}

func onPromotionCommand(verb command.Verb) *cobra.Command {
	r := &serverFlags{}
	var reason string
	c := &cobra.Command{
		Use:     string(verb) + " PROMOTION",
		Short:   verb.Short(),
		Long:    verb.Short() + ".\nPROMOTION is the promotion's number, or #14 for its pull request's.",
		Example: "  liftlock " + string(verb) + " '#14'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.onPromotion(cmd, args[0], verb, api.PromotionCommand{Reason: reason})
		},
	}
	if verb.TakesReason() {
		c.Flags().StringVar(&reason, "reason", "", "why, for the others")
	}
	return r.addReplyFlag(r.addFlags(c))
}

func skipCommand() *cobra.Command {
	r := &serverFlags{}
	var head string
	c := &cobra.Command{
		Use:   "skip PROMOTION GATE REASON",
		Short: command.Skip.Short(),
		Long: `Let a promotion past one gate of its pipeline file, as it is and for four hours, on record.
PROMOTION is the promotion's number, or #14 for its pull request's. The reason has at least ten characters.
It takes a token with the role breakglass.`,
		Example: "  liftlock skip '#14' soak 'the fix for the outage of today'",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.onPromotion(cmd, args[0], command.Skip, api.PromotionCommand{Gate: args[1], Head: head, Reason: args[2]})
		},
	}
	c.Flags().StringVar(&head, "head", "", "the commit that you looked at; where the pull request has another head by now, the server "+
		"refuses")
	return r.addReplyFlag(r.addFlags(c))
}
