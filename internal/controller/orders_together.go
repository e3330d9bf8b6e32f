package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// A command in a pull request of several components is about all that it moves.

// passengers judges the components of an order's pipeline and finds whom its pull
// request moves.
func (e *Engine) passengers(ctx context.Context, s *facts.Snapshot, o Order) (b *facts.Batch, d *promotion.BatchDecision, env string, who []promotion.Member, err error) {
	if b, d, err = e.judgeTogether(ctx, s, o.Unit, false); err != nil {
		return nil, nil, "", nil, err
	}
	if env, who, err = e.o.Observer.Ride(ctx, b, o.Pull); err != nil {
		return nil, nil, "", nil, err
	}
	who = slices.DeleteFunc(slices.Clone(who), func(p promotion.Member) bool { c, _ := b.Case(p.Component); return c == nil })
	if len(who) == 0 {
		return nil, nil, "", nil, refuse("#%d moves no component that is there any more", o.Pull)
	}
	return b, d, env, who, nil
}

// askTogether records a command for each component that the pull request moves;
// a revert only for those of which what it brought is still there.
func (e *Engine) askTogether(ctx context.Context, s *facts.Snapshot, o Order) error {
	b, _, _, who, err := e.passengers(ctx, s, o)
	if err != nil {
		return err
	}
	if o.Command.Verb == command.Revert {
		who = slices.DeleteFunc(who, func(p promotion.Member) bool {
			c, _ := b.Case(p.Component)
			return !slices.ContainsFunc(c.Facts.Envs, func(v promotion.Env) bool {
				return v.Name == o.Command.Environment && v.Landed.OK && v.Landed.Value.Pull == o.Pull
			})
		})
		if len(who) == 0 {
			return refuse("nothing that #%d brought is in %s any more, so there is nothing to take back", o.Pull, o.Command.Environment)
		}
	}
	return e.o.Store.Tx(ctx, "ask", func(tx *store.Tx) error {
		for _, p := range who {
			u := o.Unit
			u.Component = p.Component
			if _, err := tx.PutPendingCommand(ctx, store.PendingCommand{Unit: facts.UnitName(u), Environment: o.Command.Environment, Verb: o.Command.Verb,
				By: o.By, Reason: o.Command.Reason, Source: o.Source + " for " + p.Component, At: e.o.Clock.Now()}); err != nil {
				return err
			}
		}
		return tx.Wake(ctx, facts.Key(o.Unit))
	})
}

// holdTogether sets or lifts a hold on each component that the pull request moves.
func (e *Engine) holdTogether(ctx context.Context, r *Repository, s *facts.Snapshot, p *facts.PipelineAt, o Order) error {
	_, _, _, who, err := e.passengers(ctx, s, o)
	if err != nil {
		return err
	}
	for _, q := range who {
		one := o
		one.Unit.Component = q.Component
		if err := e.hold(ctx, r, p, one); err != nil {
			return err
		}
	}
	return nil
}

// tellTogether answers /liftlock status and why for each component that the pull
// request moves.
func (e *Engine) tellTogether(ctx context.Context, s *facts.Snapshot, o Order) (string, error) {
	b, d, _, who, err := e.passengers(ctx, s, o)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, p := range who {
		_, i := b.Case(p.Component)
		text := prtext.StatusText(d.Components[i].Envs)
		if o.Command.Verb == command.Why {
			text = prtext.WhyText(d.Components[i].Envs, o.Command.Environment)
		}
		parts = append(parts, fmt.Sprintf("%s:\n\n%s", p.Component, text))
	}
	return strings.Join(parts, "\n\n"), nil
}

// about is the case that an order's pull request belongs to.
func (e *Engine) about(ctx context.Context, s *facts.Snapshot, o Order) (*facts.Case, *promotion.Decision, error) {
	if !s.IsBatch(o.Unit) {
		return e.judge(ctx, s, o.Unit, false)
	}
	b, d, env, who, err := e.passengers(ctx, s, o)
	if err != nil {
		return nil, nil, err
	}
	c, joined := b.Shared(d, env, o.Pull, who)
	return c, joined, nil
}

// authorsTogether are the logins that made what the pull request moves, or, for
// another environment, what comes to it or is there.
func (e *Engine) authorsTogether(ctx context.Context, s *facts.Snapshot, o Order, env string) ([]string, error) {
	b, d, of, who, err := e.passengers(ctx, s, o)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range who {
		c, i := b.Case(p.Component)
		release := p.Release
		if st := d.Components[i].Env(env); env != of && st != nil {
			release = st.Candidate
			if release == "" {
				release = st.Release
			}
		}
		logins, err := e.o.Observer.Authors(ctx, c, env, release)
		if err != nil {
			return nil, err
		}
		out = append(out, logins...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
