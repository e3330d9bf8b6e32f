package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
)

// promotionsAnswer is what promotions prints for programs.
type promotionsAnswer struct {
	Promotions []shownPromotion `json:"promotions"`
}

// shownPromotion is a promotion as the API has it, without its number in the store: people know
// its pull request's.
type shownPromotion struct {
	api.Promotion
	ID *int64 `json:"id,omitempty"` // where there is no pull request
}

func showPromotions(all []api.Promotion) promotionsAnswer {
	out := promotionsAnswer{Promotions: []shownPromotion{}}
	for _, p := range all {
		shown := shownPromotion{Promotion: p}
		if p.Pull == nil {
			shown.ID = &p.ID
		}
		out.Promotions = append(out.Promotions, shown)
	}
	return out
}

func promotionsCommand() *cobra.Command {
	r := &serverFlags{}
	var q client.PromotionQuery
	var all, closed bool
	c := &cobra.Command{
		Use:   "promotions [PIPELINE [COMPONENT [ENVIRONMENT]]]",
		Short: "List promotions and reverts, the newest first",
		Long: "Lists promotions and reverts, the newest first: without other flags those of which something is\n" +
			"still to come, open or merged and not yet verified. --closed lists those that came to an end,\n" +
			"--all both.",
		Example: "  liftlock promotions shop web\n  liftlock promotions shop --environment prod --all\n" +
			"  liftlock promotions --kind revert --all --limit 10\n  liftlock promotions --state degraded,failed -o wide",
		Args:              cobra.MaximumNArgs(3),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent, namesEnvironment),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := setPromotionQuery(&q, args, all, closed); err != nil {
				return err
			}
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			q.Repository = r.repository
			found, err := cl.Promotions(cmd.Context(), q)
			if err == nil && len(found) == 0 {
				err = cl.CheckNames(cmd.Context(), q.Repository, q.Pipeline, q.Component, q.Environment)
			}
			if err != nil {
				return err
			}
			return r.printAnswer(cmd.OutOrStdout(), showPromotions(found), func(w io.Writer) error {
				return client.PrintPromotions(w, found, r.isWide())
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that came to an end")
	c.Flags().BoolVar(&closed, "closed", false, "only those that came to an end: verified, reverted, superseded or closed")
	c.Flags().StringSliceVar(&q.States, "state", nil, "only those in these states: open, merged, verified, degraded, reverting, reverted, "+
		"superseded, closed")
	completeFlag(c, "state", cobra.FixedCompletions(slices.Concat(client.UnfinishedStates, client.FinishedStates),
		cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVar(&q.Kind, "kind", "", "only promotions, or only reverts: promotion or revert")
	completeFlag(c, "kind", cobra.FixedCompletions([]string{"promotion", "revert"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVar(&q.Environment, "environment", "", "only those into this environment")
	completeFlag(c, "environment", r.completeEnvironments)
	c.Flags().IntVar(&q.Limit, "limit", 50, "how many at most")
	return r.addOutputFlag(r.addFlags(c))
}

// setPromotionQuery fills in what arguments and flags choose.
func setPromotionQuery(q *client.PromotionQuery, args []string, all, closed bool) error {
	if q.Limit < 1 {
		return fmt.Errorf("--limit is how many promotions to show, 1 or more, not %d", q.Limit)
	}
	switch {
	case all && closed, (all || closed) && len(q.States) > 0:
		return errors.New("--all, --closed and --state each say which promotions are shown: name one of them")
	case closed:
		q.States = client.FinishedStates
	case !all && len(q.States) == 0:
		q.States = client.UnfinishedStates
	}
	for i, field := range []*string{&q.Pipeline, &q.Component, &q.Environment} {
		if i < len(args) {
			if i == 2 && *field != "" {
				return errors.New("the environment is named twice, as an argument and by --environment")
			}
			*field = args[i]
		}
	}
	return nil
}
