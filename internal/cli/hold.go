package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// holdFlags say what a hold is on, and until when.
type holdFlags struct {
	serverFlags
	verb                           command.Verb
	environment, promotion, reason string
	lasts, until                   string
	all, reverts                   bool
}

func holdCommand(verb command.Verb) *cobra.Command {
	h := &holdFlags{verb: verb}
	c := &cobra.Command{
		Use:   string(verb) + " (PULL | PIPELINE [COMPONENT [ENVIRONMENT]] | COMPONENT ENVIRONMENT)",
		Short: verb.Short(),
		Long: verb.Short() + ".\nPULL is a pull request's number or address; a component and an environment stand for the pull\n" +
			"request that is open there. A component alone means all its environments, --environment one with all\n" +
			"its components.",
		Example: fmt.Sprintf("  liftlock %[1]s 14\n  liftlock %[1]s shop web\n  liftlock %[1]s shop web prod\n"+
			"  liftlock %[1]s shop --environment prod\n  liftlock %[1]s shop --all", verb),
		Args:              cobra.MaximumNArgs(3),
		ValidArgsFunction: h.completePromotions(verb),
		RunE:              h.run,
	}
	c.Flags().StringVar(&h.environment, "environment", "", "the environment, with all its components")
	completeFlag(c, "environment", h.completeEnvironments)
	c.Flags().BoolVar(&h.all, "all", false, "the whole pipeline")
	if verb == command.Hold {
		c.Flags().BoolVar(&h.reverts, "reverts", false, "stop reverts too")
		c.Flags().StringVar(&h.lasts, "for", "", "how long, such as 2h or 3d; without it and --until, until somebody lifts it")
		c.Flags().StringVar(&h.until, "until", "", "until when: a date (when it begins in UTC) or a time with its offset")
	}
	c.Flags().StringVar(&h.promotion, "promotion", "", "the same as PULL")
	completeFlag(c, "promotion", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return h.listPulls(cmd.Context(), verb), cobra.ShellCompDirectiveNoFileComp
	})
	c.Flags().StringVar(&h.reason, "reason", "", "why, for the others")
	return h.addReplyFlag(h.addFlags(c))
}

func (h *holdFlags) run(cmd *cobra.Command, args []string) error {
	others := h.environment != "" || h.all || h.reverts
	if h.promotion != "" {
		if len(args) > 0 || others {
			return errors.New("--promotion stands alone: it names the pull request by itself")
		}
		args = []string{h.promotion}
		return h.onPull(cmd, args)
	}
	if len(args) == 0 {
		return errors.New("name a pipeline, or a pull request")
	}
	if client.IsPull(args[0]) && !h.all && h.environment == "" {
		if len(args) > 1 || h.reverts {
			return fmt.Errorf("%s stands alone: it names the pull request by itself", args[0])
		}
		return h.onPull(cmd, args)
	}
	is := len(args) == 3
	if len(args) == 2 && h.environment == "" && !h.all {
		var err error
		if is, err = h.isLocation(cmd.Context(), args[0], args[1]); err != nil {
			return err
		}
	}
	if is {
		if others {
			return errors.New("a component in one environment is held by its pull request: --environment, --all and --reverts are for more")
		}
		return h.onPull(cmd, args)
	}
	body := api.PipelineCommand{Environment: h.environment, Reverts: h.reverts, For: h.lasts, Until: h.until, Reason: h.reason}
	if len(args) == 2 {
		body.Component = args[1]
	}
	if h.all {
		body.Scope = command.ScopePipeline
	}
	return h.onPipeline(cmd, args[0], h.verb, body)
}

func (h *holdFlags) onPull(cmd *cobra.Command, args []string) error {
	body := api.PromotionCommand{For: h.lasts, Until: h.until, Reason: h.reason}
	return h.onPromotion(cmd, args, promotionCommand{verb: h.verb, body: body})
}
