package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// serverFlags are the flags of every command that speaks to a server.
type serverFlags struct {
	server, tokenFile, context string
	repository, output         string
	colours                    bool       // tables are painted
	reply                      formatFlag // of commands that only acknowledge
}

// The variables that name a server and hold a token: a token on a command line
// could be read by everybody on the machine.
const (
	serverVariable = "LIFTLOCK_SERVER"
	tokenVariable  = "LIFTLOCK_TOKEN"
)

func (s *serverFlags) addFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.server, "server", "", "the server's address (default: "+serverVariable+", else that of the current context, "+
		"else "+defaultServer+")")
	c.Flags().StringVar(&s.tokenFile, "token-file", "", "a file with an API token (default: the token in "+tokenVariable+", else the "+
		"context's)")
	c.Flags().StringVar(&s.context, "context", "", "a server that you are logged in to, by its name (default: the current one)")
	completeFlag(c, "context", completeContexts)
	c.Flags().StringVar(&s.repository, "repository", "", "the repository, as forge:owner/name; needed only where several have a pipeline "+
		"or pull request of that name")
	return c
}

func (s *serverFlags) newClient() (*client.Client, error) {
	chosen, err := s.chooseServer(os.Getenv)
	if err != nil {
		return nil, err
	}
	if chosen.TokenFile != "" {
		raw, err := os.ReadFile(chosen.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the API token: %w", err)
		}
		chosen.Token = string(raw)
	}
	return client.New(chosen.Server, strings.TrimSpace(chosen.Token), Version())
}

// printAnswer writes an answer as the output flag says.
func (s *serverFlags) printAnswer(w io.Writer, v any, table func(io.Writer) error) error {
	switch s.output {
	case formatJSON:
		return printJSON(w, v)
	case formatYAML:
		return printYAML(w, v)
	default:
		return printPainted(w, s.colours, paintStates, table)
	}
}

// isWide says that a table with all columns is wanted.
func (s *serverFlags) isWide() bool { return s.output == formatWide }

// addOutputFlag adds the output flag of a command that answers; lists may have more formats. What it
// says is checked before a server is called.
func (s *serverFlags) addOutputFlag(c *cobra.Command, more ...string) *cobra.Command {
	formats := append([]string{formatTable, formatWide, formatJSON, formatYAML}, more...)
	last := len(formats) - 1
	listed := strings.Join(formats[:last], ", ") + " or " + formats[last]
	c.Flags().StringVarP(&s.output, "output", "o", formatTable, listed)
	completeFormats(c, formats...)
	c.PreRunE = func(cmd *cobra.Command, _ []string) error {
		s.colours = hasColours(cmd.OutOrStdout())
		if !slices.Contains(formats, s.output) {
			return fmt.Errorf("-o is %s, not %q", listed, s.output)
		}
		return nil
	}
	return c
}

func whyCommand() *cobra.Command {
	r := &serverFlags{}
	c := &cobra.Command{
		Use:   "why (PULL | PIPELINE COMPONENT [ENVIRONMENT] | COMPONENT ENVIRONMENT)",
		Short: "Say why a component is where it is, and what the rest waits for",
		Long: "Says why a component is where it is, and what the rest waits for. PULL is a pull request's number\n" +
			"or address, and stands for its component and environment.",
		Example: "  liftlock why shop web\n  liftlock why shop web prod\n  liftlock why 14",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && client.IsPull(args[0]) {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.RangeArgs(2, 3)(cmd, args)
		},
		ValidArgsFunction: r.completePromotions(command.Why),
		RunE: func(cmd *cobra.Command, args []string) error {
			pipeline, component, environment, err := r.findSubject(cmd.Context(), args)
			if err != nil {
				return err
			}
			return r.printWhy(cmd.Context(), cmd.OutOrStdout(), pipeline, component, environment)
		},
	}
	return r.addOutputFlag(r.addFlags(c))
}

// findSubject is what why is asked about; without an environment, all of them are meant.
func (s *serverFlags) findSubject(ctx context.Context, args []string) (pipeline, component, environment string, err error) {
	switch {
	case len(args) == 3:
		return args[0], args[1], args[2], nil
	case len(args) == 2:
		if is, err := s.isLocation(ctx, args[0], args[1]); err != nil || !is {
			return args[0], args[1], "", err
		}
	}
	cl, err := s.newClient()
	if err != nil {
		return "", "", "", err
	}
	if len(args) == 1 {
		found, err := cl.FindPull(ctx, s.repository, args[0])
		if err != nil {
			return "", "", "", err
		}
		s.repository = found[0].Repository
		return found[0].Pipeline, found[0].Component, found[0].Environment, nil
	}
	at, err := cl.FindLocation(ctx, s.repository, "", args[0], args[1])
	if err != nil {
		return "", "", "", err
	}
	s.repository = at.Repository
	return at.Pipeline, at.Component, at.Environment.Environment, nil
}

func (s *serverFlags) printWhy(ctx context.Context, out io.Writer, pipeline, component, environment string) error {
	cl, err := s.newClient()
	if err != nil {
		return err
	}
	y, err := cl.Why(ctx, s.repository, pipeline, component, environment)
	if err != nil {
		return err
	}
	return s.printAnswer(out, y, func(w io.Writer) error {
		client.PrintTroubles(w, y.Troubles)
		client.PrintWhy(w, y)
		return nil
	})
}

const (
	// waitInterval is how often an awaited promotion is read, waitGrace how long a server may take
	// until it has carried the command out.
	waitInterval = 5 * time.Second
	waitGrace    = 30 * time.Second
)

func promoteCommand() *cobra.Command {
	r := &serverFlags{}
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "promote (PULL [ENVIRONMENT] | [PIPELINE] COMPONENT ENVIRONMENT)",
		Short: command.Promote.Short(),
		Long: "Opens a promotion into an environment, also one that is diverged or opened by hand only.\n" +
			"PULL is a pull request's number or address, and stands for its component and environment; once\n" +
			"it is merged, for the next environment.\n\n" +
			"With --wait it then says what the promotion does, and ends with 0 when the release is verified,\n" +
			"with 1 when it is held, closed, degraded or failed, or another release took its place, and with\n" +
			"1 after --timeout. Ending it ends nothing of the promotion.",
		Example: "  liftlock promote shop web prod\n  liftlock promote 14\n  liftlock promote shop web prod --wait --timeout 2h",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && client.IsPull(args[0]) {
				return cobra.MaximumNArgs(2)(cmd, args)
			}
			return cobra.RangeArgs(2, 3)(cmd, args)
		},
		ValidArgsFunction: r.completePromotions(command.Promote),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := r.reply.forPrograms(); err != nil {
				return err
			}
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			pipeline, component, environment, err := r.findPromoteTarget(cmd.Context(), cl, args)
			if err != nil {
				return err
			}
			body := api.PipelineCommand{Component: component, Environment: environment}
			if !wait {
				return r.onPipeline(cmd, pipeline, command.Promote, body)
			}
			before, err := cl.Environment(cmd.Context(), r.repository, pipeline, component, environment)
			if err != nil {
				return err
			}
			if err := r.onPipeline(cmd, pipeline, command.Promote, body); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			err = cl.WaitForPromotion(ctx, client.Wait{
				Repository: r.repository, Pipeline: pipeline, Component: component, Environment: environment, Every: waitInterval,
				Grace:  waitGrace,
				Report: r.reportProgress(cmd),
			}, before)
			if errors.Is(err, context.DeadlineExceeded) && cmd.Context().Err() == nil {
				return fmt.Errorf("the release is not verified after %s; it goes on without this command: see liftlock why %s %s %s",
					timeout, pipeline, component, environment)
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
	data, err := s.reply.forPrograms()
	if err != nil {
		return err
	}
	if data != nil {
		return data(cmd.OutOrStdout(), api.CommandReply{Text: text})
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

// reportProgress is how a promotion that is waited for is told of: for programs, an object a change.
func (s *serverFlags) reportProgress(cmd *cobra.Command) func(text string) {
	return func(text string) {
		var err error
		switch data, _ := s.reply.forPrograms(); { // the format was checked with the command
		case data == nil:
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		case s.reply.format == formatYAML:
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "---") // a document a change
			err = errors.Join(err, data(cmd.OutOrStdout(), progressAnswer{text}))
		default:
			err = data(cmd.OutOrStdout(), progressAnswer{text})
		}
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "liftlock: write the progress:", err)
		}
	}
}

// progressAnswer is what promote --wait prints for programs, for each change.
type progressAnswer struct {
	Progress string `json:"progress"`
}

func (s *serverFlags) onPipeline(cmd *cobra.Command, pipeline string, verb command.Verb, body api.PipelineCommand) error {
	if _, err := s.reply.forPrograms(); err != nil {
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
