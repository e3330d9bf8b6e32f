package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// A command in a pull request of several components is about all that it moves.

// pullMembers judges the components of an order's pipeline and finds whom its pull
// request moves.
func (e *Controller) pullMembers(ctx context.Context, s *facts.Snapshot, o Command) (b *facts.BatchEvaluation, d *promotion.Decision, env string, members []promotion.Member, err error) {
	if b, d, err = e.evaluateBatch(ctx, s, o.Unit, false); err != nil {
		return nil, nil, "", nil, err
	}
	if env, members, err = e.opts.Gatherer.PullMembers(ctx, b, o.Pull); err != nil {
		return nil, nil, "", nil, err
	}
	members = slices.DeleteFunc(slices.Clone(members), func(p promotion.Member) bool { c, _ := b.EvaluationOf(p.Component); return c == nil })
	if len(members) == 0 {
		return nil, nil, "", nil, newRefusal("#%d moves no component that is there any more", o.Pull)
	}
	return b, d, env, members, nil
}

// recordBatchCommand records a command for each component that the pull request moves;
// a revert only for those of which what it brought is still there.
func (e *Controller) recordBatchCommand(ctx context.Context, s *facts.Snapshot, o Command) error {
	b, _, _, members, err := e.pullMembers(ctx, s, o)
	if err != nil {
		return err
	}
	if o.Command.Verb == command.Revert {
		members = slices.DeleteFunc(members, func(p promotion.Member) bool {
			c, _ := b.EvaluationOf(p.Component)
			return !slices.ContainsFunc(c.Facts.Envs, func(v promotion.Env) bool {
				return v.Name == o.Command.Environment && v.Landed.OK && v.Landed.Value.Pull == o.Pull
			})
		})
		if len(members) == 0 {
			return newRefusal("nothing that #%d brought is in %s any more, so there is nothing to take back", o.Pull, o.Command.Environment)
		}
	}
	return e.opts.Store.Tx(ctx, "ask", func(tx *store.Tx) error {
		for _, p := range members {
			u := o.Unit
			u.Component = p.Component
			if _, err := tx.PutPendingCommand(ctx, store.PendingCommand{Unit: wake.UnitName(u), Environment: o.Command.Environment, Verb: o.Command.Verb,
				By: o.By, Reason: o.Command.Reason, Source: o.Source + " for " + p.Component, At: e.opts.Clock.Now()}); err != nil {
				return err
			}
		}
		return tx.Wake(ctx, wake.ForUnit(o.Unit).String())
	})
}

// holdMembers sets or lifts a hold on each component that the pull request moves.
func (e *Controller) holdMembers(ctx context.Context, r *Repository, s *facts.Snapshot, p *facts.ResolvedPipeline, o Command) error {
	_, _, _, members, err := e.pullMembers(ctx, s, o)
	if err != nil {
		return err
	}
	for _, q := range members {
		one := o
		one.Unit.Component = q.Component
		if err := e.setHold(ctx, r, p, one); err != nil {
			return err
		}
	}
	return nil
}

// replyBatchStatus answers /liftlock status and why for each component that the pull
// request moves.
func (e *Controller) replyBatchStatus(ctx context.Context, s *facts.Snapshot, o Command) (string, error) {
	b, d, _, members, err := e.pullMembers(ctx, s, o)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, p := range members {
		_, i := b.EvaluationOf(p.Component)
		text := prtext.StatusText(d.Components[i].Envs)
		if o.Command.Verb == command.Why {
			text = prtext.WhyText(d.Components[i].Envs, o.Command.Environment)
		}
		parts = append(parts, fmt.Sprintf("%s:\n\n%s", p.Component, text))
	}
	return strings.Join(parts, "\n\n"), nil
}

// evaluatePull is the case that an order's pull request belongs to.
func (e *Controller) evaluatePull(ctx context.Context, s *facts.Snapshot, o Command) (*facts.Evaluation, *promotion.ComponentDecision, error) {
	if !s.IsBatch(o.Unit) {
		return e.evaluateUnit(ctx, s, o.Unit, false)
	}
	b, d, env, members, err := e.pullMembers(ctx, s, o)
	if err != nil {
		return nil, nil, err
	}
	c, joined := b.SharedEvaluation(d, env, o.Pull, members)
	return c, joined, nil
}

// batchAuthors are the logins that made what the pull request moves, or, for
// another environment, what comes to it or is there.
func (e *Controller) batchAuthors(ctx context.Context, s *facts.Snapshot, o Command, env string) ([]string, error) {
	b, d, of, members, err := e.pullMembers(ctx, s, o)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range members {
		c, i := b.EvaluationOf(p.Component)
		release := p.Release
		if st := d.Components[i].Env(env); env != of && st != nil {
			release = st.Candidate
			if release == "" {
				release = st.Release
			}
		}
		logins, err := e.opts.Gatherer.ReleaseAuthors(ctx, c, env, release)
		if err != nil {
			return nil, err
		}
		out = append(out, logins...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
