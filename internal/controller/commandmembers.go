package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// commandMembers are whom a command is about, evaluated: its component, or, given in a
// pull request of several, all that this moves.
type commandMembers struct {
	ev      *facts.Evaluation
	d       *promotion.Decision
	env     string // the pull request's, where that is one of several
	members []promotion.Member
}

// evaluateMembers evaluates whom a command is about. branch.ErrNoUnit: there is no such
// component; a *RefusedError: nobody is there any more.
func (co *Controller) evaluateMembers(ctx context.Context, s *branch.Snapshot, o Command) (m commandMembers, err error) {
	if m.ev, m.d, err = co.opts.Gatherer.Evaluate(ctx, s, o.Unit, false); err != nil {
		return m, err
	}
	if !s.IsBatch(o.Unit) {
		m.members = []promotion.Member{{Component: o.Unit.Component}}
		return m, nil
	}
	env, members, err := co.opts.Gatherer.PullMembers(ctx, m.ev, o.Pull)
	if err != nil {
		return m, err
	}
	m.env, m.members = env, slices.DeleteFunc(slices.Clone(members),
		func(p promotion.Member) bool { c, _ := m.ev.Component(p.Component); return c == nil })
	if len(m.members) == 0 {
		return m, newRefusal("#%d moves no component that is there any more", o.Pull)
	}
	return m, nil
}

// unitsOf are whom a command is about, without an evaluation where it is about one
// component.
func (co *Controller) unitsOf(ctx context.Context, s *branch.Snapshot, o Command,
	keep func(*facts.ComponentEvaluation) bool) ([]promotion.Unit, error) {
	if !s.IsBatch(o.Unit) {
		return []promotion.Unit{o.Unit}, nil
	}
	m, err := co.evaluateMembers(ctx, s, o)
	if err != nil {
		return nil, err
	}
	var out []promotion.Unit
	for _, member := range m.members {
		if c, _ := m.ev.Component(member.Component); keep(c) {
			out = append(out, c.Facts.Unit)
		}
	}
	return out, nil
}

// recordCommand records a command for the decision and wakes it, for each component that it is
// about. A revert is recorded only for components that still have the pull request's release.
func (co *Controller) recordCommand(ctx context.Context, s *branch.Snapshot, o Command) error {
	units, err := co.unitsOf(ctx, s, o, func(c *facts.ComponentEvaluation) bool {
		env := c.Env(o.Command.Environment)
		return o.Command.Verb != command.Revert || env != nil && env.Landed.OK && env.Landed.Value.Pull == o.Pull
	})
	if err != nil {
		return err
	}
	if err := co.checkStillLanded(ctx, s, o); err != nil {
		return err
	}
	if len(units) == 0 {
		return newRefusal("nothing that #%d brought is in %s any more, so there is nothing to take back", o.Pull, o.Command.Environment)
	}
	at := o.written(co.opts.Clock.Now()) // it is about what was there then, not about what came since
	return co.opts.Store.Tx(ctx, "command", func(tx *store.Tx) error {
		for _, u := range units {
			source := o.Source
			if u != o.Unit {
				source += " for " + u.Component
			}
			if _, err := tx.PutPendingCommand(ctx, store.PendingCommand{Unit: wake.UnitName(u), Environment: o.Command.Environment,
				Verb: string(o.Command.Verb),
				By:   cmp.Or(o.Account, o.By), ByID: o.ByID, Reason: o.Command.Reason, Source: source, At: at}); err != nil {
				return err
			}
		}
		return tx.WakeAs(ctx, store.Urgent, wake.ForUnit(o.Unit).String())
	})
}

// checkStillLanded refuses a revert of a merged promotion of one component whose release another
// one has replaced in the environment: its author doesn't speak of the present release.
func (co *Controller) checkStillLanded(ctx context.Context, s *branch.Snapshot, o Command) error {
	if o.Command.Verb != command.Revert || o.Pull == 0 || s.IsBatch(o.Unit) {
		return nil
	}
	pr, known, err := co.opts.Store.Pull(ctx, o.Unit.Repo, o.Pull)
	if err != nil || !known {
		return err
	}
	if pr.State != string(forge.Merged) || pr.Revert || pr.Environment != o.Command.Environment {
		return nil
	}
	ev, _, err := co.opts.Gatherer.Evaluate(ctx, s, o.Unit, false)
	if errors.Is(err, branch.ErrNoUnit) {
		return newRefusal("%v", err)
	}
	if err != nil {
		return err
	}
	c, _ := ev.Component(o.Unit.Component)
	if env := c.Env(o.Command.Environment); env != nil && env.Landed.OK && env.Landed.Value.By == promotion.ByPromotion &&
		env.Landed.Value.Pull != o.Pull {
		return newRefusal("what #%d brought isn't in %s any more: #%d has brought %s since. To take that back, say so in #%d", o.Pull,
			o.Command.Environment, env.Landed.Value.Pull, env.Release.Value, env.Landed.Value.Pull)
	}
	return nil
}

// replyStatus answers /liftlock status and why from a fresh look.
func (co *Controller) replyStatus(ctx context.Context, s *branch.Snapshot, o Command) (string, error) {
	m, err := co.evaluateMembers(ctx, s, o)
	if errors.Is(err, branch.ErrNoUnit) {
		return "", newRefusal("%v", err)
	}
	if err != nil {
		return "", err
	}
	var parts []string
	for _, member := range m.members {
		_, i := m.ev.Component(member.Component)
		text := prtext.StatusText(m.d.Components[i].Envs)
		if o.Command.Verb == command.Why {
			text = prtext.WhyText(m.d.Components[i].Envs, o.Command.Environment)
		}
		if s.IsBatch(o.Unit) {
			text = fmt.Sprintf("%s:\n\n%s", member.Component, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n"), nil
}

// replyDiff answers /liftlock diff about one of our open pull requests.
func (co *Controller) replyDiff(ctx context.Context, s *branch.Snapshot, o Command) (string, error) {
	m, err := co.evaluateMembers(ctx, s, o)
	if errors.Is(err, branch.ErrNoUnit) {
		return "", newRefusal("%v", err)
	}
	if err != nil {
		return "", err
	}
	text, ok := co.opts.Actor.Diff(ctx, m.ev, m.d, o.Pull)
	if !ok {
		return "", newRefusal("#%d is not an open pull request of Liftlock's with a head that it composed; the forge shows its files",
			o.Pull)
	}
	return text, nil
}

// holdVia says in a hold's file whether its author is the name of one of the API's tokens, or a
// user of the console; empty: an account on the forge.
func holdVia(o Command) string {
	if o.Role != "" {
		return o.Via
	}
	return ""
}

// lift is which holds the command lifts.
func (c Command) lift() promotion.Lift {
	return promotion.Lift{OwnOnly: c.ownHoldsOnly, By: c.By, ByID: c.ByID, Via: holdVia(c), Subject: c.Subject, Given: c.At}
}

// setHoldsItself says that the account that lifts holds has set one of each of them. Lifting those
// takes no approver. It takes none either where none stands any more, as where a lift is done again
// because its answer was lost.
func (co *Controller) setHoldsItself(ctx context.Context, r *Repository, s *branch.Snapshot, o Command) (bool, error) {
	isOwn := func(h promotion.Holding) bool { return h.IsOf(o.By, o.ByID, holdVia(o), o.Subject) }
	scope := o.Command.Scope
	if o.Command.Verb != command.Unhold {
		return false, nil
	}
	if scope == "" || scope == command.ScopePR {
		all, err := facts.ReadPullHolds(ctx, co.opts.Store, r.ID, o.Pull)
		if err != nil || len(all) > 0 || o.Pull == 0 {
			return slices.ContainsFunc(all, isOwn), err
		}
		if own, err := co.isLabelling(ctx, r, o.Pull, o.Source); err != nil || own {
			return own, err
		}
		pr, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, o.Pull)
		return err == nil && !pr.HasLabel(promotion.LabelHold), err
	}
	units := []promotion.Unit{o.Unit}
	if scope == command.ScopeComponent {
		var err error
		units, err = co.unitsOf(ctx, s, o, func(*facts.ComponentEvaluation) bool { return true })
		if errors.Is(err, branch.ErrNoUnit) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	if _, err := co.fetch(ctx, r); err != nil { // another process may have set them
		return false, err
	}
	for _, u := range units {
		active, err := co.opts.Actor.ListHolds(ctx, r.Repository, u, scope, o.Command.Environment)
		if err != nil || len(active) > 0 && !slices.ContainsFunc(active, isOwn) {
			return false, err
		}
	}
	return len(units) > 0, nil
}

// setHolds sets or lifts a hold, on a component for each that the command is about. The
// answer says when it ends, where that is what was said or isn't.
func (co *Controller) setHolds(ctx context.Context, r *Repository, s *branch.Snapshot, p *branch.ResolvedPipeline,
	o Command) (string, error) {
	now := co.opts.Clock.Now()
	end, err := o.Command.End(cmp.Or(o.At, now))
	if err != nil {
		return "", newRefusal("%v", err)
	}
	if o.Command.Verb == command.Hold && !end.IsZero() && !end.After(now) {
		return "", newRefusal("it was to last until %s, which is over; nothing is held", end.UTC().Format(time.RFC3339))
	}
	units := []promotion.Unit{o.Unit}
	if o.Command.Scope == command.ScopeComponent {
		if units, err = co.unitsOf(ctx, s, o, func(*facts.ComponentEvaluation) bool { return true }); err != nil {
			return "", err
		}
	}
	answer := ""
	for _, u := range units {
		one := o
		one.Unit = u
		active, err := co.setHold(ctx, r, p, one, end)
		if err != nil {
			return "", err
		}
		switch {
		case o.Command.Verb == command.Hold && (!end.IsZero() || !active.Until.IsZero()):
			answer = prtext.HoldEnds(active.By, active.Until)
		case o.Command.Verb == command.Unhold && active != promotion.Hold{}:
			answer = prtext.HoldRemains(active.By, active.Until)
		}
	}
	return answer, nil
}

// setHold sets or lifts a hold: on the pull request as its label, on anything larger
// as a file on the state branch. It gives what stands then.
func (co *Controller) setHold(ctx context.Context, r *Repository, p *branch.ResolvedPipeline, o Command,
	end time.Time) (active promotion.Hold, err error) {
	c := o.Command
	set := c.Verb == command.Hold
	if c.Scope == "" || c.Scope == command.ScopePR {
		if o.Pull == 0 {
			return active, newRefusal("which pull request? name a component, an environment or the pipeline as the scope")
		}
		if set {
			active, err = co.holdPull(ctx, r, o, end)
		} else {
			active, err = co.liftPullHold(ctx, r, o)
		}
		if err != nil {
			return active, err
		}
		if _, err := co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, o.Pull); err != nil {
			return active, err
		}
		if !active.Until.IsZero() { // when it is lifted
			if err := co.opts.Store.WakeAs(ctx, store.Urgent, wake.ForPull(r.ID, o.Pull).String()); err != nil {
				return active, err
			}
		}
		return active, co.opts.Store.WakeAs(ctx, store.Urgent, wake.ForUnit(o.Unit).String())
	}
	if c.Scope == command.ScopeEnvironment && (p == nil || p.Spec.EnvironmentByName(c.Environment) == nil) {
		return active, newRefusal("the pipeline %s has no environment %q", o.Unit.Pipeline, c.Environment)
	}
	active, err = co.opts.Actor.SetHold(ctx, r.Repository, o.Unit, act.Hold{Scope: c.Scope, Environment: c.Environment, By: o.By,
		ByID: o.ByID, Via: holdVia(o), Subject: o.Subject, Reason: c.Reason, Reverts: c.Reverts, Until: end, Given: o.At, Set: set,
		Lift: o.lift()})
	if err != nil {
		return active, err
	}
	return active, co.opts.Store.WakeAs(ctx, store.Urgent, wake.ForRepository(r.ID).String())
}
