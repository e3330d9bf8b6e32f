package controller

import (
	"context"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// maxUnreadRules is how long a pull request that the forge blocks keeps its turn while the rules
// that it is blocked by can't be read.
const maxUnreadRules = 10 * time.Minute

// releaseUpdateTurns takes the turn from pull requests that were brought up to date to be merged
// and can't be by now. A gate doesn't pass any more, or the forge waits for more than running
// checks. Others come first then.
func (co *Controller) releaseUpdateTurns(ctx context.Context, ev *facts.Evaluation, d *promotion.Decision) error {
	for number, p := range ev.OpenPulls {
		if !p.HasTurn || !hasLostTurn(p, listGates(d, number), co.opts.Clock.Now()) {
			continue
		}
		err := co.opts.Store.Tx(ctx, "turnReleased", func(tx *store.Tx) error {
			return facts.ReleaseUpdateTurn(ctx, tx, ev.Snapshot.Repo.ID, p.PR.Base, number)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// updatedEvents say of a component's pull requests that the forge has brought them up to date, as
// it was sent to. Each is said once.
func updatedEvents(c *facts.ComponentEvaluation) (events []store.Event) {
	for _, p := range c.Evaluation.OpenPulls {
		if _, is := promotion.FindMember(p.Members, c.Facts.Unit.Component); is && p.UpdatedFrom != "" {
			events = append(events, act.UpdatedEvent(c, p.Environment, p.PR, p.UpdatedFrom))
		}
	}
	return events
}

// hasLostTurn says that a pull request can't be merged by its checks' success alone.
func hasLostTurn(p *facts.OpenPull, gates []policies.Result, now time.Time) bool {
	unread := !p.Rules.UnreadSince.IsZero() && now.Sub(p.Rules.UnreadSince) < maxUnreadRules
	if p.HeadState == promotion.HeadModified || p.Mergeable == promotion.MergeBlocked && !p.Rules.OnlyRunning && !unread {
		return true
	}
	return slices.ContainsFunc(gates, func(g policies.Result) bool {
		return g.Outcome != policies.Pass &&
			g.Gate != promotion.GateMergeable
	})
}

// listGates are what all gates of a pull request say, of all components that it moves.
func listGates(d *promotion.Decision, pull int) (all []policies.Result) {
	for i := range d.Components {
		for _, st := range d.Components[i].Envs {
			switch pull {
			case st.Pull:
				all = append(all, st.Gates...)
			case st.Revert:
				all = append(all, st.RevertGates...)
			}
		}
	}
	return all
}
