package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// Order is a command with whom it is about and who gave it, however it came:
// one authorisation and one audit trail for comments, the API and the CLI.
type Order struct {
	Unit    promotion.Unit
	Pull    int // the pull request that it was given on or is about; 0: none
	Command command.Command
	By      string // login, or the API token's name
	Role    string // the API token's role; empty: a person on the forge
	Via     string // comment or api
	Source  string // unique in the world; a command is recorded once for it
}

// RefusedError is a command that is not carried out, with the reason for its author.
type RefusedError struct{ Why string }

// Error is the reason.
func (e *RefusedError) Error() string { return e.Why }

func refuse(format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}

// tooMany answers who asks too much at once.
const tooMany = "too many questions at once; ask again in a minute"

// Command authorises an order and carries it out, or records it for the judge.
// The answer is for its author, empty when there is nothing to say yet. A
// *RefusedError says why it is not carried out.
func (e *Engine) Command(ctx context.Context, o Order) (string, error) {
	r := e.repos[o.Unit.Repo]
	if r == nil {
		return "", refuse("no repository %s is looked after", o.Unit.Repo)
	}
	s, err := e.o.Observer.Snapshot(ctx, r.Repository)
	if err != nil {
		return "", err
	}
	p := s.Pipeline(o.Unit.Pipeline)
	_, unit := s.Unit(o.Unit)
	answer, err := e.checked(ctx, r, s, p, unit, o)
	var refused *RefusedError
	outcome := "taken"
	switch {
	case errors.As(err, &refused):
		outcome = "refused: " + refused.Why
	case err != nil:
		return "", err
	}
	e.o.Log.Info("a command came", zap.String("by", o.By), zap.String("command", command.Describe(o.Command)),
		zap.String("component", o.Unit.Component), zap.Int("pull", o.Pull), zap.String("outcome", outcome))
	aerr := e.o.Store.AddAudit(ctx, store.Audit{At: e.o.Clock.Now(), Actor: o.By, Via: o.Via, Verb: o.Command.Verb,
		Subject: fmt.Sprintf("%s #%d %s", facts.UnitName(o.Unit), o.Pull, command.Describe(o.Command)), Reason: o.Command.Reason, Outcome: outcome, Source: o.Source})
	if aerr != nil {
		return "", aerr
	}
	return answer, err
}

func (e *Engine) checked(ctx context.Context, r *Repository, s *facts.Snapshot, p *facts.PipelineAt, unit *facts.UnitAt, o Order) (string, error) {
	if err := o.Command.Check(); err != nil {
		return "", refuse("%v", err)
	}
	envs := e.gated(p, o.Command)
	who, err := e.person(ctx, r, s, envs, o)
	if err != nil {
		return "", err
	}
	if err := command.Authorise(o.Command, who, len(envs) > 0); err != nil {
		return "", refuse("%v", err)
	}
	return e.effect(ctx, r, s, p, unit, o)
}

// gated is an environment with an approvals gate that a command is about.
type gated struct {
	name  string
	gates []*policies.Approvals
}

// gated lists the environments with an approvals gate, the server's floor
// included, that a command is about: its own, or, when it lifts a hold on more
// than that, every one of the pipeline.
func (e *Engine) gated(p *facts.PipelineAt, c command.Command) []gated {
	if p == nil {
		return nil
	}
	all := c.Scope == command.ScopeComponent || c.Scope == command.ScopePipeline
	var out []gated
	for i := range p.Spec.Environments {
		spec := &p.Spec.Environments[i]
		if !all && spec.Name != c.Environment {
			continue
		}
		g := gated{name: spec.Name}
		for _, gate := range e.o.Observer.Gates(spec) {
			if gate.Approvals != nil {
				g.gates = append(g.gates, gate.Approvals)
			}
		}
		if len(g.gates) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// person is who gave a command, as far as the forge tells now. An approver is
// one whose review every gate in question would count.
func (e *Engine) person(ctx context.Context, r *Repository, s *facts.Snapshot, envs []gated, o Order) (command.Person, error) {
	who := command.Person{Login: o.By, Role: o.Role}
	if o.Role != "" {
		return who, nil
	}
	level, err := r.Forge.Permission(ctx, r.Name, o.By)
	if err != nil {
		return who, fmt.Errorf("read the permission of %s: %w", o.By, err)
	}
	who.Permission = command.Permission(level)
	if level < forge.PermissionWrite || command.Needs(o.Command.Verb) != command.NeedApprover {
		return who, nil
	}
	who.Approver = true
	for _, g := range envs {
		ok, err := e.approver(ctx, s, g, o)
		if err != nil {
			return who, err
		}
		who.Approver = who.Approver && ok
	}
	return who, nil
}

// approver says whether every gate of an environment would count the review of
// an order's author, who may write.
func (e *Engine) approver(ctx context.Context, s *facts.Snapshot, g gated, o Order) (bool, error) {
	same := func(login string) bool { return strings.EqualFold(login, o.By) } // logins have no case
	for _, gate := range g.gates {
		if len(gate.From.Users) > 0 && !slices.ContainsFunc(gate.From.Users, same) {
			return false, nil
		}
	}
	authors, err := e.authors(ctx, s, o, g.name)
	return !slices.ContainsFunc(authors, same), err
}

// authors are the logins that made the release that comes to an environment, or,
// when none does, the one that is there.
func (e *Engine) authors(ctx context.Context, s *facts.Snapshot, o Order, env string) ([]string, error) {
	if s.IsBatch(o.Unit) {
		return e.authorsTogether(ctx, s, o, env)
	}
	c, d, err := e.judge(ctx, s, o.Unit, false)
	if errors.Is(err, facts.ErrNoUnit) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st := d.Env(env)
	if st == nil {
		return nil, nil
	}
	release := st.Candidate
	if release == "" {
		release = st.Release
	}
	return e.o.Observer.Authors(ctx, c, env, release)
}

// effect carries a command out. What needs judging is recorded as an ask, for
// promotion.Decide; what restrains is written where it outlives the store.
func (e *Engine) effect(ctx context.Context, r *Repository, s *facts.Snapshot, p *facts.PipelineAt, unit *facts.UnitAt, o Order) (string, error) {
	c := o.Command
	if command.Needs(c.Verb) == command.NeedRead && o.Role == "" && !e.limit.Allow(o.By) {
		return "", refuse(tooMany)
	}
	switch c.Verb {
	case command.Help:
		return prtext.HelpText(p != nil && p.Spec.Commands == "bare"), nil
	case command.Status, command.Why:
		return e.tell(ctx, s, o)
	case command.Diff:
		return e.diff(ctx, s, o)
	case command.Hold, command.Unhold:
		if s.IsBatch(o.Unit) && c.Scope == command.ScopeComponent {
			return "", e.holdTogether(ctx, r, s, p, o)
		}
		return "", e.hold(ctx, r, p, o)
	case command.Promote, command.Revert, command.Retry:
		if p == nil || unit == nil && !s.IsBatch(o.Unit) {
			return "", refuse("the tracked branch has no component %s in a pipeline %s any more", o.Unit.Component, o.Unit.Pipeline)
		}
		if p.Spec.EnvironmentByName(c.Environment) == nil {
			return "", refuse("the pipeline %s has no environment %q", o.Unit.Pipeline, c.Environment)
		}
		if s.IsBatch(o.Unit) {
			return "", e.askTogether(ctx, s, o)
		}
		return "", e.ask(ctx, o)
	}
	return "", refuse("/liftlock %s is not supported yet", c.Verb)
}

// ask records a command for the judge and wakes it.
func (e *Engine) ask(ctx context.Context, o Order) error {
	return e.o.Store.Tx(ctx, "ask", func(tx *store.Tx) error {
		if _, err := tx.PutPendingCommand(ctx, store.PendingCommand{Unit: facts.UnitName(o.Unit), Environment: o.Command.Environment, Verb: o.Command.Verb,
			By: o.By, Reason: o.Command.Reason, Source: o.Source, At: e.o.Clock.Now()}); err != nil {
			return err
		}
		return tx.Wake(ctx, facts.Key(o.Unit))
	})
}

// tell answers /liftlock status and why from a fresh look.
func (e *Engine) tell(ctx context.Context, s *facts.Snapshot, o Order) (string, error) {
	if s.IsBatch(o.Unit) {
		return e.tellTogether(ctx, s, o)
	}
	_, d, err := e.judge(ctx, s, o.Unit, false)
	if errors.Is(err, facts.ErrNoUnit) {
		return "", refuse("%v", err)
	}
	if err != nil {
		return "", err
	}
	if o.Command.Verb == command.Why {
		return prtext.WhyText(d.Envs, o.Command.Environment), nil
	}
	return prtext.StatusText(d.Envs), nil
}

// diff answers /liftlock diff about one of our open pull requests.
func (e *Engine) diff(ctx context.Context, s *facts.Snapshot, o Order) (string, error) {
	c, d, err := e.about(ctx, s, o)
	if errors.Is(err, facts.ErrNoUnit) {
		return "", refuse("%v", err)
	}
	if err != nil {
		return "", err
	}
	text, ok := e.o.Actor.Diff(ctx, c, d, o.Pull)
	if !ok {
		return "", refuse("#%d is not an open pull request of Liftlock's with a head that it composed; the forge shows its files", o.Pull)
	}
	return text, nil
}

// hold sets or lifts a hold: on the pull request as its label, on anything larger
// as a file on the state branch.
func (e *Engine) hold(ctx context.Context, r *Repository, p *facts.PipelineAt, o Order) error {
	c := o.Command
	set := c.Verb == command.Hold
	if c.Scope == "" || c.Scope == command.ScopePR {
		if o.Pull == 0 {
			return refuse("which pull request? name a component, an environment or the pipeline as the scope")
		}
		change := r.Forge.RemoveLabel
		if set {
			change = func(ctx context.Context, repo forge.Repo, number int, label string) error {
				return r.Forge.AddLabels(ctx, repo, number, label)
			}
		}
		if err := change(ctx, r.Name, o.Pull, promotion.LabelHold); err != nil {
			return err
		}
		if _, err := e.o.Observer.Touch(ctx, r.Repository, o.Pull); err != nil {
			return err
		}
		return e.o.Store.Wake(ctx, facts.Key(o.Unit))
	}
	if c.Scope == command.ScopeEnvironment && (p == nil || p.Spec.EnvironmentByName(c.Environment) == nil) {
		return refuse("the pipeline %s has no environment %q", o.Unit.Pipeline, c.Environment)
	}
	if err := e.o.Actor.SetHold(ctx, r.Repository, o.Unit, act.Hold{Scope: c.Scope, Environment: c.Environment, By: o.By, Reason: c.Reason, Set: set}); err != nil {
		return err
	}
	return e.o.Store.Wake(ctx, RepoKey(r.ID))
}
