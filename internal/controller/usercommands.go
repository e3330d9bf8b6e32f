package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// maxDescribedComponents bounds the components that one answer on a person's pull request is about.
const maxDescribedComponents = 5

// maxUserCommandAge is how old a command on a person's pull request may be: what was asked long
// before Liftlock was there is no question any more.
const maxUserCommandAge = 24 * time.Hour

// commandRetryDelay is when a command asks again that found no room among the checks: each time
// it is read anew, which takes calls of the forge.
const commandRetryDelay = 15 * time.Second

// userChange is the effect of a person's pull request, as the commands of one comment need it. It
// is evaluated for the first of them only, as a stranger decides how long that takes and how many
// commands a comment has. Its zero value is not evaluated yet.
type userChange struct {
	change *effects.ProposedChange
	report *effects.ChangeReport
	leave  func() // gives back the place among the checks; nil: there is none
}

// end is called when all commands of the comment are answered, or none can be.
func (u *userChange) end() {
	if u.leave != nil {
		u.leave()
	}
}

// errNoCheckSlot says that a change can't be evaluated before others are.
var errNoCheckSlot = errors.New("others are evaluated")

// userComments are when people's pull requests had changed last when their comments were read.
var userComments = record.Declare[record.Pull, time.Time](record.Declaration{
	Name: "user-comments-read", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "When a person's pull request had changed last when its comments were read.",
})

// answerUserPull answers the commands in the comments of a person's own pull request. They
// are read only when it has changed since: other people's pull requests are many. again is
// when to look at one that has to wait; zero: none has.
func (co *Controller) answerUserPull(ctx context.Context, r *Repository, pr *forge.PullRequest) (again time.Time, err error) {
	about := record.OfPull(r.ID, pr.Number)
	if pr.State != forge.Open {
		return time.Time{}, co.opts.Store.Tx(ctx, "userPullClosed", func(tx *store.Tx) error {
			return cmp.Or(userComments.Drop(ctx, tx, about), facts.ForgetUserPull(ctx, tx, r.ID, pr.Number))
		})
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	if _, ok := s.BaseOf(pr); !ok {
		return time.Time{}, facts.UnreadComments.Drop(ctx, co.opts.Store, about) // its comments don't concern us
	}
	unread, err := facts.UnreadComments.Has(ctx, co.opts.Store, about)
	if err != nil {
		return time.Time{}, err
	}
	if seen, known, err := userComments.Get(ctx, co.opts.Store, about); err != nil || !unread && known && seen.Equal(pr.UpdatedAt) {
		return time.Time{}, err
	}
	settled := co.opts.Clock.Now().Sub(pr.UpdatedAt) > commentOverlap // forges stamp whole seconds
	if again, err = co.handleComments(ctx, r, pr, promotion.BranchRef{}); err != nil || !again.IsZero() || !settled {
		return again, err
	}
	return time.Time{}, userComments.Put(ctx, co.opts.Store, about, pr.UpdatedAt.UTC())
}

// runUserCommand carries out a command on a person's own pull request: what only asks is
// answered, and what is about a promotion refused with where to say it.
func (co *Controller) runUserCommand(ctx context.Context, r *Repository, pr *forge.PullRequest, o Command,
	known *userChange) (answer string, err error) {
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return "", err
	}
	answer, err = co.answerUserCommand(ctx, r, s, pr, o, known)
	return co.auditCommand(ctx, o, r.ID, answer, err)
}

func (co *Controller) answerUserCommand(ctx context.Context, r *Repository, s *branch.Snapshot, pr *forge.PullRequest, o Command,
	known *userChange) (string, error) {
	retries, err := co.retriesHead(ctx, r, pr, o)
	if err != nil {
		return "", err
	}
	if command.Needs(o.Command.Verb) != command.NeedRead && !retries {
		return "", newRefusal("%s is about a promotion, and this pull request is none of Liftlock's: say it in the promotion's pull "+
			"request, the console or the command line. Here there are diff, why, status and help", o.Command.Verb)
	}
	who, err := co.resolvePerson(ctx, r, s, nil, nil, o)
	if err != nil {
		return "", err
	}
	if err := command.Authorise(o.Command, who, false); err != nil {
		return "", newRefusal("%v", err)
	}
	if retries {
		return co.retryHead(ctx, r, pr)
	}
	if o.Command.Verb == command.Help {
		return prtext.UserHelpText(), nil
	}
	if err := co.evaluateUserChange(ctx, r, s, pr, o.By, known); err != nil {
		return "", err
	}
	switch v := known.report; {
	case v.Report == nil:
		return "", newRefusal("what this change touches can't be told: %s", v.Failed)
	case o.Command.Verb == command.Diff:
		return impactText(known.change, v).DiffText(), nil
	}
	return co.describeChanged(ctx, s, known.report, o)
}

// evaluateUserChange finds out what a person's pull request does, where that isn't known from a
// command before; by asks for it. A refusal says why it can't be told; errNoCheckSlot, that
// others are evaluated.
func (co *Controller) evaluateUserChange(ctx context.Context, r *Repository, s *branch.Snapshot, pr *forge.PullRequest, by string,
	known *userChange) error {
	into, ok := s.BaseOf(pr)
	if !ok {
		return newRefusal("%s is no branch that Liftlock looks after", pr.Base)
	}
	if known.leave == nil {
		leave, ok := co.checkSlots.enter(r.ID, by, pr.Number, commandRetryDelay)
		if !ok {
			return errNoCheckSlot
		}
		known.leave = leave
	}
	if !co.queryLimit.Allow(by) {
		return newRefusal(rateLimitedText)
	}
	if known.report != nil {
		return nil
	}
	if was, err := co.readChecked(ctx, r, pr.Number); err != nil || was.Refused != "" && was.Head == pr.Head {
		return cmp.Or(err, newRefusal("%s", was.Refused))
	}
	var change *effects.ProposedChange
	var v *effects.ChangeReport
	err := co.lookAt(ctx, r, pr, func() (err error) {
		if change, err = co.opts.Gatherer.Changes.ReadChange(ctx, s, into, pr); err != nil {
			return err
		}
		v, err = co.opts.Gatherer.Changes.EvaluateChange(ctx, s, change, act.RenderLimit)
		return err
	})
	var refused *effects.RefusedHeadError
	if errors.As(err, &refused) {
		return newRefusal("%s", refused.Why)
	}
	if err != nil {
		return err
	}
	co.opts.Log.Info("a pull request was evaluated for a command", zap.String("repository", r.ID), zap.Int("pull", pr.Number),
		zap.String("by", by))
	known.change, known.report = change, v
	return nil
}

// describeChanged answers status and why for the components that a change touches.
func (co *Controller) describeChanged(ctx context.Context, s *branch.Snapshot, v *effects.ChangeReport, o Command) (string, error) {
	var units []promotion.Unit
	for i := range v.Report.Pipelines {
		p := &v.Report.Pipelines[i]
		for j := range p.Environments {
			for _, t := range p.Environments[j].Targets {
				u := promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name, Component: t.Component}
				if _, unit := s.Unit(u); unit != nil && !slices.Contains(units, u) {
					units = append(units, u)
				}
			}
		}
	}
	if len(units) == 0 {
		return "This change touches no component of a pipeline.", nil
	}
	var parts []string
	for i, u := range units {
		if i == maxDescribedComponents {
			parts = append(parts, fmt.Sprintf("It touches %d more components.", len(units)-i))
			break
		}
		ev, d, err := co.opts.Gatherer.Evaluate(ctx, s, u, false)
		if errors.Is(err, branch.ErrNoUnit) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, at := ev.Component(u.Component)
		if at < 0 {
			continue
		}
		text := prtext.StatusText(d.Components[at].Envs)
		if o.Command.Verb == command.Why {
			text = prtext.WhyText(d.Components[at].Envs, o.Command.Environment)
		}
		parts = append(parts, fmt.Sprintf("%s:\n\n%s", u.Component, text))
	}
	return strings.Join(parts, "\n\n"), nil
}
