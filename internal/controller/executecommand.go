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
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// Command is a command with whom it is about and who gave it, however it came:
// one authorisation and one audit trail for comments, the API and the CLI.
type Command struct {
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

func newRefusal(format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}

// rateLimitedText answers who asks too much at once.
const rateLimitedText = "too many questions at once; ask again in a minute"

// ExecuteCommand authorises an order and carries it out, or records it for the judge.
// The answer is for its author, empty when there is nothing to say yet. A
// *RefusedError says why it is not carried out.
func (e *Controller) ExecuteCommand(ctx context.Context, o Command) (string, error) {
	r := e.reposByID[o.Unit.Repo]
	if r == nil {
		return "", newRefusal("no repository %s is looked after", o.Unit.Repo)
	}
	s, err := e.opts.Gatherer.Snapshot(ctx, r.Repository)
	if err != nil {
		return "", err
	}
	p := s.Pipeline(o.Unit.Pipeline)
	_, unit := s.Unit(o.Unit)
	answer, err := e.authoriseAndRun(ctx, r, s, p, unit, o)
	var refused *RefusedError
	outcome := "taken"
	switch {
	case errors.As(err, &refused):
		outcome = "refused: " + refused.Why
	case err != nil:
		return "", err
	}
	e.opts.Log.Info("a command came", zap.String("by", o.By), zap.String("command", command.Describe(o.Command)),
		zap.String("component", o.Unit.Component), zap.Int("pull", o.Pull), zap.String("outcome", outcome))
	aerr := e.opts.Store.AddAudit(ctx, store.Audit{At: e.opts.Clock.Now(), Actor: o.By, Via: o.Via, Verb: o.Command.Verb,
		Subject: fmt.Sprintf("%s #%d %s", wake.UnitName(o.Unit), o.Pull, command.Describe(o.Command)), Reason: o.Command.Reason, Outcome: outcome, Source: o.Source})
	if aerr != nil {
		return "", aerr
	}
	return answer, err
}

func (e *Controller) authoriseAndRun(ctx context.Context, r *Repository, s *facts.Snapshot, p *facts.ResolvedPipeline, unit *facts.ResolvedUnit, o Command) (string, error) {
	if err := o.Command.Check(); err != nil {
		return "", newRefusal("%v", err)
	}
	envs := e.listGatedEnvs(p, o.Command)
	who, err := e.resolvePerson(ctx, r, s, envs, o)
	if err != nil {
		return "", err
	}
	if err := command.Authorise(o.Command, who, len(envs) > 0); err != nil {
		return "", newRefusal("%v", err)
	}
	return e.runCommand(ctx, r, s, p, unit, o)
}

// gatedEnv is an environment with an approvals gate that a command is about.
type gatedEnv struct {
	name  string
	gates []*policies.Approvals
}

// listGatedEnvs lists the environments with an approvals gate, the server's floor
// included, that a command is about: its own, or, when it lifts a hold on more
// than that, every one of the pipeline.
func (e *Controller) listGatedEnvs(p *facts.ResolvedPipeline, c command.Command) []gatedEnv {
	if p == nil {
		return nil
	}
	all := c.Scope == command.ScopeComponent || c.Scope == command.ScopePipeline
	var out []gatedEnv
	for i := range p.Spec.Environments {
		spec := &p.Spec.Environments[i]
		if !all && spec.Name != c.Environment {
			continue
		}
		g := gatedEnv{name: spec.Name}
		for _, gate := range e.opts.Gatherer.Gates(spec) {
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

// resolvePerson is who gave a command, as far as the forge tells now. An approver is
// one whose review every gate in question would count.
func (e *Controller) resolvePerson(ctx context.Context, r *Repository, s *facts.Snapshot, envs []gatedEnv, o Command) (command.Person, error) {
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
		ok, err := e.isApprover(ctx, s, g, o)
		if err != nil {
			return who, err
		}
		who.Approver = who.Approver && ok
	}
	return who, nil
}

// isApprover says whether every gate of an environment would count the review of
// an order's author, who may write.
func (e *Controller) isApprover(ctx context.Context, s *facts.Snapshot, g gatedEnv, o Command) (bool, error) {
	same := func(login string) bool { return strings.EqualFold(login, o.By) } // logins have no case
	for _, gate := range g.gates {
		if len(gate.From.Users) > 0 && !slices.ContainsFunc(gate.From.Users, same) {
			return false, nil
		}
	}
	authors, err := e.releaseAuthors(ctx, s, o, g.name)
	return !slices.ContainsFunc(authors, same), err
}

// releaseAuthors are the logins that made the release that comes to an environment, or,
// when none does, the one that is there.
func (e *Controller) releaseAuthors(ctx context.Context, s *facts.Snapshot, o Command, env string) ([]string, error) {
	if s.IsBatch(o.Unit) {
		return e.batchAuthors(ctx, s, o, env)
	}
	c, d, err := e.evaluateUnit(ctx, s, o.Unit, false)
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
	return e.opts.Gatherer.ReleaseAuthors(ctx, c, env, release)
}

// runCommand carries a command out. What needs judging is recorded as an ask, for
// promotion.Decide; what restrains is written where it outlives the store.
func (e *Controller) runCommand(ctx context.Context, r *Repository, s *facts.Snapshot, p *facts.ResolvedPipeline, unit *facts.ResolvedUnit, o Command) (string, error) {
	c := o.Command
	if command.Needs(c.Verb) == command.NeedRead && o.Role == "" && !e.queryLimit.Allow(o.By) {
		return "", newRefusal(rateLimitedText)
	}
	switch c.Verb {
	case command.Help:
		return prtext.HelpText(p != nil && p.Spec.Commands == "bare"), nil
	case command.Status, command.Why:
		return e.replyStatus(ctx, s, o)
	case command.Diff:
		return e.replyDiff(ctx, s, o)
	case command.Hold, command.Unhold:
		if s.IsBatch(o.Unit) && c.Scope == command.ScopeComponent {
			return "", e.holdMembers(ctx, r, s, p, o)
		}
		return "", e.setHold(ctx, r, p, o)
	case command.Promote, command.Revert, command.Retry:
		if p == nil || unit == nil && !s.IsBatch(o.Unit) {
			return "", newRefusal("the tracked branch has no component %s in a pipeline %s any more", o.Unit.Component, o.Unit.Pipeline)
		}
		if p.Spec.EnvironmentByName(c.Environment) == nil {
			return "", newRefusal("the pipeline %s has no environment %q", o.Unit.Pipeline, c.Environment)
		}
		if s.IsBatch(o.Unit) {
			return "", e.recordBatchCommand(ctx, s, o)
		}
		return "", e.recordCommand(ctx, o)
	}
	return "", newRefusal("/liftlock %s is not supported yet", c.Verb)
}

// recordCommand records a command for the judge and wakes it.
func (e *Controller) recordCommand(ctx context.Context, o Command) error {
	return e.opts.Store.Tx(ctx, "ask", func(tx *store.Tx) error {
		if _, err := tx.PutPendingCommand(ctx, store.PendingCommand{Unit: wake.UnitName(o.Unit), Environment: o.Command.Environment, Verb: o.Command.Verb,
			By: o.By, Reason: o.Command.Reason, Source: o.Source, At: e.opts.Clock.Now()}); err != nil {
			return err
		}
		return tx.Wake(ctx, wake.ForUnit(o.Unit).String())
	})
}

// replyStatus answers /liftlock status and why from a fresh look.
func (e *Controller) replyStatus(ctx context.Context, s *facts.Snapshot, o Command) (string, error) {
	if s.IsBatch(o.Unit) {
		return e.replyBatchStatus(ctx, s, o)
	}
	_, d, err := e.evaluateUnit(ctx, s, o.Unit, false)
	if errors.Is(err, facts.ErrNoUnit) {
		return "", newRefusal("%v", err)
	}
	if err != nil {
		return "", err
	}
	if o.Command.Verb == command.Why {
		return prtext.WhyText(d.Envs, o.Command.Environment), nil
	}
	return prtext.StatusText(d.Envs), nil
}

// replyDiff answers /liftlock diff about one of our open pull requests.
func (e *Controller) replyDiff(ctx context.Context, s *facts.Snapshot, o Command) (string, error) {
	c, d, err := e.evaluatePull(ctx, s, o)
	if errors.Is(err, facts.ErrNoUnit) {
		return "", newRefusal("%v", err)
	}
	if err != nil {
		return "", err
	}
	text, ok := e.opts.Actor.Diff(ctx, c, d, o.Pull)
	if !ok {
		return "", newRefusal("#%d is not an open pull request of Liftlock's with a head that it composed; the forge shows its files", o.Pull)
	}
	return text, nil
}

// setHold sets or lifts a hold: on the pull request as its label, on anything larger
// as a file on the state branch.
func (e *Controller) setHold(ctx context.Context, r *Repository, p *facts.ResolvedPipeline, o Command) error {
	c := o.Command
	set := c.Verb == command.Hold
	if c.Scope == "" || c.Scope == command.ScopePR {
		if o.Pull == 0 {
			return newRefusal("which pull request? name a component, an environment or the pipeline as the scope")
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
		if _, err := e.opts.Gatherer.RefreshPullRequest(ctx, r.Repository, o.Pull); err != nil {
			return err
		}
		return e.opts.Store.Wake(ctx, wake.ForUnit(o.Unit).String())
	}
	if c.Scope == command.ScopeEnvironment && (p == nil || p.Spec.EnvironmentByName(c.Environment) == nil) {
		return newRefusal("the pipeline %s has no environment %q", o.Unit.Pipeline, c.Environment)
	}
	if err := e.opts.Actor.SetHold(ctx, r.Repository, o.Unit, act.Hold{Scope: c.Scope, Environment: c.Environment, By: o.By, Reason: c.Reason, Set: set}); err != nil {
		return err
	}
	return e.opts.Store.Wake(ctx, wake.ForRepository(r.ID).String())
}
