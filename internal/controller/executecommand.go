package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// Command is a command with its subject and its author, however it came. There is one authorisation
// and one audit trail for comments, the API, the CLI and the console.
type Command struct {
	Unit    promotion.Unit
	Pull    int // the pull request that it was given on or is about; 0: none
	Command command.Command
	By      string    // login, the API token's name, or a user of the console
	ByID    int64     // of the account, as far as the forge tells; 0 with a role
	Subject string    // with ViaConsole which user By is, as of a promotion.Holding; else empty
	Account string    // with ViaConsole the login of user By on the forge; empty: not known
	Role    string    // the API token's, or the user's in the console; empty: a person on the forge
	Via     string    // comment, ViaAPI or ViaConsole
	Source  string    // unique in the world; a command is recorded once for it
	At      time.Time // when it was given; zero: now, with a role when it arrived
	Head    string    // skip: the head that it is about, or how that begins; empty: At says

	word *wordCheck // whether it is its author's own; nil: there is no doubt

	ownHoldsOnly bool // it lifts what its author holds, and nothing that others do
}

// giver is the account on the forge that gave the command; false where it isn't known.
func (c *Command) giver() (a policies.Account, known bool) {
	if c.Role == "" {
		return policies.Account{ID: c.ByID, Login: c.By}, true
	}
	return policies.Account{Login: c.Account}, c.Account != ""
}

// written is when the command was given at the latest: forges tell whole seconds.
func (c *Command) written(now time.Time) time.Time {
	if at := c.At.Add(time.Second); !c.At.IsZero() && at.Before(now) {
		return at
	}
	return now
}

// RefusedError is a command that is not carried out, with the reason for its author.
type RefusedError struct{ Why string }

// Error is the reason.
func (r *RefusedError) Error() string { return r.Why }

func newRefusal(format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}

// The ways on which a role's holder gives commands.
const (
	ViaAPI     = "api"
	ViaConsole = promotion.ViaConsole
)

// The outcome of a command, as the audit trail has it, or its beginning. The reason follows why it
// was not carried out or why that isn't known, or when it began to be.
const (
	outcomeDone    = "taken"
	outcomeRefused = "refused: "
	outcomeFailed  = "failed: "
	outcomeBegun   = "begun "
)

// rateLimitedText answers who asks too much at once.
const rateLimitedText = "too many questions at once; ask again in a minute"

// ExecuteCommand authorises a command and carries it out, or records it for the judge.
// The answer is for its author, empty when there is nothing to say yet. A
// *RefusedError says why it is not carried out.
func (co *Controller) ExecuteCommand(ctx context.Context, o Command) (string, error) {
	if o.Role != "" && o.At.IsZero() {
		o.At = co.opts.Clock.Now() // an unhold spares what is set while it is carried out
	}
	r, awaited := co.repository(o.Unit.Repo)
	if awaited {
		return "", newRefusal("the repository %s has not been reached yet; try again later", o.Unit.Repo)
	}
	if r == nil {
		return "", newRefusal("no repository %s is looked after", o.Unit.Repo)
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return "", err
	}
	if o.Role != "" && o.Source != "" {
		return co.executeOnce(ctx, r, s, o)
	}
	answer, err := co.authoriseAndRun(ctx, r, s, o)
	return co.auditCommand(ctx, o, wake.UnitName(o.Unit), answer, err)
}

// subjectOf is what a command is about, and itself, as the audit trail has it.
func subjectOf(o Command, about string) string {
	return fmt.Sprintf("%s #%d %s", about, o.Pull, command.Describe(o.Command))
}

// auditCommand puts a command about something, and what came of it, on record in the audit
// trail and gives what it was answered. One that failed, and wasn't refused, is tried again:
// it isn't on record yet.
func (co *Controller) auditCommand(ctx context.Context, o Command, about, answer string, err error) (string, error) {
	if err != nil && !isRefused(err) {
		return "", err
	}
	entry, aerr := co.buildAudit(ctx, o, about, outcomeOf(err))
	if aerr == nil {
		aerr = co.opts.Store.AddAudit(ctx, entry)
	}
	if aerr != nil {
		return "", aerr
	}
	co.logCommand(o, entry.Outcome)
	return answer, err
}

// buildAudit is the entry of a command about something in the audit trail.
func (co *Controller) buildAudit(ctx context.Context, o Command, about, outcome string) (store.Audit, error) {
	env, err := co.auditedEnvironment(ctx, o)
	data, werr := o.auditedWord()
	err = cmp.Or(err, werr)
	return store.Audit{Data: data, At: co.opts.Clock.Now(), Actor: o.By, Via: o.Via, Verb: string(o.Command.Verb),
		Subject:     subjectOf(o, about),
		Environment: env, Reason: o.Command.Reason, Outcome: outcome, Source: o.Source}, err
}

func (co *Controller) logCommand(o Command, outcome string) {
	co.opts.Log.Info("a command came", zap.String("by", o.By), zap.String("command", command.Describe(o.Command)),
		zap.String("component", o.Unit.Component), zap.Int("pull", o.Pull), zap.String("outcome", outcome))
}

// outcomeOf is what came of a command, as the audit trail has it.
func outcomeOf(err error) string {
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		return outcomeRefused + refused.Why
	case err != nil:
		return outcomeFailed + err.Error()
	}
	return outcomeDone
}

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// auditedEnvironment is the one environment that a command is about; empty where that is none or
// several.
func (co *Controller) auditedEnvironment(ctx context.Context, o Command) (string, error) {
	switch c := o.Command; {
	case c.Scope == command.ScopeComponent, c.Scope == command.ScopePipeline:
		return "", nil
	case c.Check() != nil:
		return "", nil // it was refused for what it says
	case c.Environment != "" || o.Pull == 0:
		return c.Environment, nil
	}
	pr, _, err := co.opts.Store.Pull(ctx, o.Unit.Repo, o.Pull)
	return pr.Environment, err
}

func (co *Controller) authoriseAndRun(ctx context.Context, r *Repository, s *branch.Snapshot, o Command) (string, error) {
	p := s.Pipeline(o.Unit.Pipeline)
	_, unit := s.Unit(o.Unit)
	if err := o.Command.Check(); err != nil {
		return "", newRefusal("%v", err)
	}
	envs := co.listGatedEnvs(p, o.Command)
	who, err := co.resolvePerson(ctx, r, s, p, envs, o)
	if err != nil {
		return "", err
	}
	if err := command.Authorise(o.Command, who, len(envs) > 0); err != nil {
		return "", newRefusal("%v", err)
	}
	if err := o.checkWord(ctx); err != nil {
		return "", err
	}
	o.ownHoldsOnly = command.LiftsOwnOnly(who, len(envs) > 0)
	return co.runCommand(ctx, r, s, p, unit, o)
}

// gatedEnv is an environment with an approvals gate that a command is about.
type gatedEnv struct {
	name  string
	gates []*policies.Approvals
}

// listGatedEnvs lists the environments with an approvals gate, the server's floor included, that a
// command is about. That is its own or, when it lifts a hold on more than that, every one of the
// pipeline.
func (co *Controller) listGatedEnvs(p *branch.ResolvedPipeline, c command.Command) []gatedEnv {
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
		for _, gate := range co.opts.Gatherer.Gates(spec) {
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

// resolvePerson is who gave a command, as far as the forge tells now. An approver is one whose
// review every gate in question would count. For lifting holds they are one whatever is known of
// the release, whoever set the holds.
func (co *Controller) resolvePerson(ctx context.Context, r *Repository, s *branch.Snapshot, p *branch.ResolvedPipeline, envs []gatedEnv,
	o Command) (command.Person, error) {
	who := command.Person{Login: o.By, Role: o.Role}
	if o.Role == "" {
		level, err := r.Forge.Permission(ctx, r.Name, o.By)
		if err != nil {
			return who, wrapPermission(err, o.By)
		}
		who.Permission = command.Permission(level)
		if level < forge.PermissionWrite {
			return who, nil
		}
	}
	switch command.Needs(o.Command.Verb) {
	case command.NeedBreakGlass:
		if o.Role != "" || p == nil {
			return who, nil
		}
		if b := p.Spec.BreakGlass; b != nil {
			who.Others = wording.JoinFew(slices.Concat(b.Teams, b.Users), maxNamedOthers)
		}
		var err error
		if who.BreakGlass, err = co.opts.Gatherer.Teams.MaySkip(ctx, r.Repository, p.Spec.BreakGlass, o.By, true); err != nil &&
			!forge.IsRetryable(err) && ctx.Err() == nil {
			err = newRefusal("whether %s may skip gates can't be told: %v", o.By, err)
		}
		return who, err
	case command.NeedApprover:
		who.Others = listApprovers(envs)
	default:
		return who, nil
	}
	var err error
	if who.Holds, err = co.setHoldsItself(ctx, r, s, o); err != nil {
		return who, err
	}
	giver, known := o.giver()
	if !known || o.Role != "" && len(envs) == 0 {
		return who, nil
	}
	if o.Role != "" { // a role alone lets nobody approve
		level, err := r.Forge.Permission(ctx, r.Name, giver.Login)
		if err != nil || level < forge.PermissionWrite {
			return who, wrapPermission(err, giver.Login)
		}
	}
	who.Approver = true
	for _, g := range envs {
		ok, err := co.isApprover(ctx, s, g, o, giver)
		var refused *RefusedError
		if who.Holds && errors.As(err, &refused) { // what is their own doesn't wait for that
			ok, err = false, nil
		}
		if err != nil {
			return who, err
		}
		who.Approver = who.Approver && ok
	}
	return who, nil
}

// maxNamedOthers bounds whom a refusal names.
const maxNamedOthers = 10

// listApprovers names those whose approval counts in environments, each gate's once.
func listApprovers(envs []gatedEnv) string {
	var all []string
	for _, e := range envs {
		for _, g := range e.gates {
			if who := g.From.String(); !slices.Contains(all, who) {
				all = append(all, who)
			}
		}
	}
	return wording.JoinFew(all, maxNamedOthers)
}

func wrapPermission(err error, login string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read the permission of %s: %w", login, err)
}

// isApprover says whether every gate of an environment would count the review of
// who gave the command, who may write.
func (co *Controller) isApprover(ctx context.Context, s *branch.Snapshot, g gatedEnv, o Command, giver policies.Account) (bool, error) {
	r, _ := co.repository(o.Unit.Repo)
	for _, gate := range g.gates {
		may, err := co.opts.Gatherer.Teams.MayApprove(ctx, r.Repository, &gate.From, s.Commit, giver.Login)
		if err != nil && !forge.IsRetryable(err) && ctx.Err() == nil {
			err = newRefusal("whether the approval of %s would count can't be told: %v", giver.Login, err)
		}
		if err != nil || !may {
			return false, err
		}
	}
	authors, unknown, err := co.releaseAuthors(ctx, s, o, g.name)
	if err == nil && unknown != nil && o.Command.Verb != command.Revert { // the way back to safety doesn't wait for that
		err = newRefusal("who made the release, whose word would not count, can't be told: %v", unknown)
	}
	return !slices.ContainsFunc(authors, giver.Matches), err
}

// releaseAuthors are the accounts that made the release that comes to an environment, or, when none
// does, the one that is there. For a pull request of several they made the releases that it moves
// there. unknown says why some of these authors aren't known.
func (co *Controller) releaseAuthors(ctx context.Context, s *branch.Snapshot, o Command, env string) (authors []policies.Account, unknown,
	err error) {
	m, err := co.evaluateMembers(ctx, s, o)
	if errors.Is(err, branch.ErrNoUnit) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, member := range m.members {
		c, i := m.ev.Component(member.Component)
		st, release := m.d.Components[i].Env(env), member.Release
		if st != nil && env != m.env {
			release = cmp.Or(st.Candidate, st.Release)
		}
		if release == "" {
			continue
		}
		accounts, err := co.opts.Gatherer.Authors.ReleaseAuthors(ctx, &c.ComponentBasis, env, release)
		if forge.IsRetryable(err) || ctx.Err() != nil {
			return nil, nil, err
		}
		if st == nil || release != st.Release {
			unknown = errors.Join(unknown, err)
		}
		authors = append(authors, accounts...)
	}
	return authors, unknown, nil
}

// runCommand carries a command out. A command that needs judging is recorded as a pending one, for
// promotion.Decide; one that restrains is written where it outlives the store.
func (co *Controller) runCommand(ctx context.Context, r *Repository, s *branch.Snapshot, p *branch.ResolvedPipeline,
	unit *branch.ResolvedUnit, o Command) (string, error) {
	c := o.Command
	if command.Needs(c.Verb) == command.NeedRead && o.Role == "" && !co.queryLimit.Allow(o.By) {
		return "", newRefusal(rateLimitedText)
	}
	switch c.Verb {
	case command.Help:
		return prtext.HelpText(p != nil && p.Spec.Commands == "bare"), nil
	case command.Status, command.Why:
		return co.replyStatus(ctx, s, o)
	case command.Diff:
		return co.replyDiff(ctx, s, o)
	case command.Hold, command.Unhold:
		return co.setHolds(ctx, r, s, p, o)
	case command.Skip:
		return co.skipGate(ctx, r, s, p, o)
	case command.Promote, command.Revert, command.Retry:
		if p == nil || unit == nil && !s.IsBatch(o.Unit) {
			return "", newRefusal("the tracked branch has no component %s in a pipeline %s any more", o.Unit.Component, o.Unit.Pipeline)
		}
		if p.Spec.EnvironmentByName(c.Environment) == nil {
			return "", newRefusal("the pipeline %s has no environment %q", o.Unit.Pipeline, c.Environment)
		}
		if c.Verb == command.Retry && o.Pull != 0 {
			if err := people.ForgetRefusedReviewers(ctx, co.opts.Store, o.Unit.Repo, o.Pull); err != nil {
				return "", err
			}
		}
		return "", co.recordCommand(ctx, s, o)
	}
	return "", newRefusal("there is no /liftlock %s", c.Verb)
}
