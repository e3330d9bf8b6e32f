package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/wording"
)

// promotionArguments is how each command names a promotion: by its pull request, or by where it goes.
const promotionArguments = "(PULL | [PIPELINE] COMPONENT ENVIRONMENT)"

// promotionHelp says what promotionArguments are.
const promotionHelp = "PULL is the pull request's number or address. A component and an environment stand for the pull\n" +
	"request that matters there; the pipeline is needed only where several have them."

// checkPromotionArguments takes a promotion, and more arguments behind it.
func checkPromotionArguments(more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		isPull := len(args) > 0 && client.IsPull(args[0])
		switch n := len(args) - more; {
		case isPull && n == 1, !isPull && (n == 2 || n == 3):
			return nil
		}
		return errors.New("these are other arguments") // argumentError says which
	}
}

// pullChooser picks the pull request that a command about an environment is meant for; nil where
// there is none.
type pullChooser func(e *api.Environment) *api.Pull

// landedPull is the one that brought the release that is there.
func landedPull(e *api.Environment) *api.Pull { return e.LandedIn }

// openPull is the one whose merge would change the environment: a revert's before a promotion's.
func openPull(e *api.Environment) *api.Pull {
	switch {
	case e.Revert != nil:
		return &e.Revert.Pull
	case e.Incoming != nil:
		return e.Incoming.Pull
	}
	return nil
}

// openOrLandedPull is the open one or, without one, the last that was merged.
func openOrLandedPull(e *api.Environment) *api.Pull {
	if p := openPull(e); p != nil {
		return p
	}
	return e.LandedIn
}

// failedPull is the one whose verification failed, else the one that doesn't move.
func failedPull(e *api.Environment) *api.Pull {
	if e.State == "failed" && e.LandedIn != nil {
		return e.LandedIn
	}
	return openOrLandedPull(e)
}

// missingPulls say that there is no pull request which a verb could be about.
var missingPulls = map[command.Verb]string{
	command.Revert: "what %s carries of %s came by no pull request of Liftlock's, so that there is nothing to revert",
	command.Hold: "no pull request into %s is open for %s; name the component alone to hold it in all environments, or --environment " +
		"to hold one with all its components",
}

// chooserOf is which pull request a verb is about where an environment is named.
func chooserOf(verb command.Verb) pullChooser {
	switch verb {
	case command.Revert:
		return landedPull
	case command.Retry:
		return failedPull
	case command.Diff:
		return openOrLandedPull
	}
	return openPull
}

// findPromotions are what the first arguments name for a verb: a promotion, or those of a batch.
func (s *serverFlags) findPromotions(ctx context.Context, cl *client.Client, args []string, verb command.Verb) ([]api.Promotion, error) {
	if len(args) == 1 {
		return cl.FindPull(ctx, s.repository, args[0])
	}
	pipeline := ""
	if len(args) == 3 {
		pipeline = args[0]
	}
	component, environment := args[len(args)-2], args[len(args)-1]
	at, err := cl.FindLocation(ctx, s.repository, pipeline, component, environment)
	if err != nil {
		return nil, err
	}
	if in := at.Environment.Incoming; verb == command.Retry && in != nil && in.State == "closed" {
		closed, err := cl.Promotions(ctx, client.PromotionQuery{Repository: at.Repository, Pipeline: at.Pipeline, Component: component,
			Environment: environment, States: []string{"closed"}, Limit: 1})
		if err != nil || len(closed) > 0 {
			return closed, err
		}
	}
	pull := chooserOf(verb)(at.Environment)
	if pull == nil {
		text, ok := missingPulls[verb]
		if !ok {
			text = "no pull request into %s is open for %s; see liftlock why"
		}
		return nil, fmt.Errorf(text, environment, component)
	}
	return cl.FindPull(ctx, at.Repository, pull.String())
}

// isLocation says whether two arguments are a component and an environment. They are a pipeline and its
// component where there is such a pipeline, or no such environment.
func (s *serverFlags) isLocation(ctx context.Context, first, second string) (bool, error) {
	cl, err := s.newClient()
	if err != nil {
		return false, err
	}
	all, err := cl.Pipelines(ctx)
	if err != nil {
		return false, err
	}
	isEnvironment := false
	for _, p := range all.Pipelines {
		if p.Name == first {
			return false, nil
		}
		isEnvironment = isEnvironment || slices.Contains(p.Environments, second)
	}
	return isEnvironment, nil
}

// promotionCommand is a verb that is given about one promotion.
type promotionCommand struct {
	verb    command.Verb
	body    api.PromotionCommand
	confirm bool // a person in a terminal is asked whether that is meant
}

func (s *serverFlags) onPromotion(cmd *cobra.Command, args []string, p promotionCommand) error {
	if _, err := s.reply.forPrograms(); err != nil {
		return err
	}
	cl, err := s.newClient()
	if err != nil {
		return err
	}
	found, err := s.findPromotions(cmd.Context(), cl, args, p.verb)
	if err != nil {
		return err
	}
	if p.confirm && onTerminal(cmd.InOrStdin()) {
		if err := confirmCommand(cmd.InOrStdin(), cmd.ErrOrStderr(), describeCommand(p.verb, found)); err != nil {
			return err
		}
	}
	text, err := cl.SendPromotionCommand(cmd.Context(), found[0].ID, string(p.verb), p.body)
	if err != nil {
		return err
	}
	return s.printReply(cmd, text)
}

// maxConfirmed is how many components a question names.
const maxConfirmed = 5

// describeCommand says what a command is about: "Revert web 1.5.0 in prod (#14)".
func describeCommand(verb command.Verb, found []api.Promotion) string {
	var names []string
	for i := range found {
		names = append(names, strings.TrimSpace(found[i].Component+" "+found[i].Name))
	}
	text := fmt.Sprintf("%s %s in %s", verb.Title(), wording.JoinFew(names, maxConfirmed), found[0].Environment)
	if found[0].Pull != nil {
		text += fmt.Sprintf(" (%s)", found[0].Pull)
	}
	return client.Printable(text)
}

func onPromotionCommand(verb command.Verb) *cobra.Command {
	r := &serverFlags{}
	var reason string
	var yes bool
	c := &cobra.Command{
		Use:   string(verb) + " " + promotionArguments,
		Short: verb.Short(),
		Long:  verb.Short() + ".\n" + promotionHelp,
		Example: fmt.Sprintf("  liftlock %[1]s 14\n  liftlock %[1]s https://git.example.com/acme/deploy/pull/14\n"+
			"  liftlock %[1]s shop web prod", verb),
		Args:              checkPromotionArguments(0),
		ValidArgsFunction: r.completePromotions(verb),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.onPromotion(cmd, args, promotionCommand{verb, api.PromotionCommand{Reason: reason}, verb == command.Revert && !yes})
		},
	}
	if verb.TakesReason() {
		c.Flags().StringVar(&reason, "reason", "", "why, for the others")
	}
	if verb == command.Revert {
		c.Long += "\nIn a terminal it asks back, unless --yes is given."
		c.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask back in a terminal")
	}
	return r.addReplyFlag(r.addFlags(c))
}

func skipCommand() *cobra.Command {
	r := &serverFlags{}
	var head string
	c := &cobra.Command{
		Use:   "skip " + promotionArguments + " GATE REASON",
		Short: command.Skip.Short(),
		Long: "Let a promotion past one gate of its pipeline file, as it is and for four hours, on record.\n" + promotionHelp +
			"\nThe reason has at least ten characters. It takes a token with the role breakglass.",
		Example: "  liftlock skip 14 soak 'the fix for the outage of today'\n" +
			"  liftlock skip shop web prod soak 'the fix for the outage of today'",
		Args:              checkPromotionArguments(2),
		ValidArgsFunction: r.completePromotions(command.Skip),
		RunE: func(cmd *cobra.Command, args []string) error {
			n := len(args) - 2
			return r.onPromotion(cmd, args[:n], promotionCommand{verb: command.Skip,
				body: api.PromotionCommand{Gate: args[n], Head: head, Reason: args[n+1]}})
		},
	}
	c.Flags().StringVar(&head, "head", "", "the commit that you looked at; where the pull request has another head by now, the server "+
		"refuses")
	return r.addReplyFlag(r.addFlags(c))
}

func diffCommand() *cobra.Command {
	r := &serverFlags{}
	c := &cobra.Command{
		Use:   "diff " + promotionArguments,
		Short: "Show what a promotion's pull request does to the rendered manifests",
		Long: "Shows what a promotion's pull request does to the rendered manifests, with secrets hidden.\n" + promotionHelp +
			"\nThat is the open one or, without one, the last that was merged.",
		Example:           "  liftlock diff 14\n  liftlock diff shop web prod",
		Args:              checkPromotionArguments(0),
		ValidArgsFunction: r.completePromotions(command.Diff),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			promotions, err := r.findPromotions(cmd.Context(), cl, args, command.Diff)
			if err != nil {
				return err
			}
			if r.output == formatTable || r.isWide() {
				text, err := cl.DiffText(cmd.Context(), promotions[0].ID)
				if err != nil {
					return err
				}
				return printPainted(cmd.OutOrStdout(), r.colours, paintDiff, func(w io.Writer) error {
					_, err := io.WriteString(w, client.Printable(text))
					return err
				})
			}
			found, err := cl.Diff(cmd.Context(), promotions[0].ID)
			if err != nil {
				return err
			}
			return r.printAnswer(cmd.OutOrStdout(), shownDiff{RenderedDiff: found}, nil)
		},
	}
	return r.addOutputFlag(r.addFlags(c))
}

// shownDiff is a difference as the API has it, without the promotion's number in the store.
type shownDiff struct {
	*api.RenderedDiff
	ID *int64 `json:"id,omitempty"` // always left out
}

// findPromoteTarget is which component comes into which environment. The pull request of a promotion
// stands for its own; once it is merged, for the next one, as in a comment.
func (s *serverFlags) findPromoteTarget(ctx context.Context, cl *client.Client, args []string) (pipeline, component, environment string,
	err error) {
	if !client.IsPull(args[0]) {
		if len(args) == 3 {
			return args[0], args[1], args[2], nil
		}
		at, err := cl.FindLocation(ctx, s.repository, "", args[0], args[1])
		if err != nil {
			return "", "", "", err
		}
		s.repository = at.Repository
		return at.Pipeline, at.Component, at.Environment.Environment, nil
	}
	found, err := cl.FindPull(ctx, s.repository, args[0])
	if err != nil {
		return "", "", "", err
	}
	p := &found[0]
	if len(found) > 1 {
		return "", "", "", fmt.Errorf("%s moves %s at once: name the pipeline, one component and the environment", args[0],
			wording.Count(len(found), "component"))
	}
	s.repository = p.Repository
	if len(args) == 2 {
		return p.Pipeline, p.Component, args[1], nil
	}
	if slices.Contains(unmergedStates, p.State) {
		return p.Pipeline, p.Component, p.Environment, nil
	}
	next, err := findNext(ctx, cl, p)
	return p.Pipeline, p.Component, next, err
}

// unmergedStates are those of promotions that were not merged.
var unmergedStates = []string{"open", "closed", "superseded"}

// findNext is the one environment that comes right after a promotion's.
func findNext(ctx context.Context, cl *client.Client, p *api.Promotion) (string, error) {
	full, err := cl.Pipeline(ctx, p.Repository, p.Pipeline)
	if err != nil {
		return "", err
	}
	var next []string
	for _, e := range full.Graph {
		if slices.Contains(e.After, p.Environment) {
			next = append(next, e.Name)
		}
	}
	switch len(next) {
	case 0:
		return "", fmt.Errorf("%s is merged into %s, after which no environment comes", p.Pull, p.Environment)
	case 1:
		return next[0], nil
	}
	return "", fmt.Errorf("%s is merged into %s, after which come %s: name one behind it", p.Pull, p.Environment, strings.Join(next, ", "))
}
