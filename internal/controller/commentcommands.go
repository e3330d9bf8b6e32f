package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

func isGone(err error) bool { return errors.Is(err, forge.ErrNotFound) }

// commentOverlap is read again every time: forges stamp whole seconds.
const commentOverlap = 2 * time.Second

// The reactions that acknowledge a command.
const (
	reactionDone    = "+1"
	reactionRefused = "confused"
)

// handleComments takes the commands in a pull request's new comments. A comment that has our
// reaction was taken before. The reaction is set after the effect, so a command is taken at least
// once, and taking it twice changes nothing. Where the forge counts as many comments as were read
// before, and no event told of one since, none is read. again is when to look at one that has to
// wait; zero: none has.
func (co *Controller) handleComments(ctx context.Context, r *Repository, pr *forge.PullRequest, ref promotion.BranchRef) (again time.Time,
	err error) {
	event, unread, err := facts.UnreadComments.Get(ctx, co.opts.Store, record.OfPull(r.ID, pr.Number))
	if err != nil {
		return time.Time{}, err
	}
	read, err := facts.ReadCommentsRead(ctx, co.opts.Store, r.ID, pr.Number)
	if err != nil || !unread && read.Covers(pr) {
		return time.Time{}, err
	}
	since := read.Until
	if !since.IsZero() {
		since = since.Add(-commentOverlap)
	}
	comments, err := r.Forge.Comments(ctx, r.Name, pr.Number, since)
	if err != nil {
		return time.Time{}, err
	}
	newest := since
	for i := range comments {
		k := &comments[i]
		if k.UpdatedAt.After(newest) && again.IsZero() {
			newest = k.UpdatedAt // what waits, and what came after it, is read again
		}
		if k.Bot || r.HasWritten(k) || !k.UpdatedAt.Equal(k.CreatedAt) {
			continue // not a person's, or edited afterwards
		}
		until, err := co.handleComment(ctx, r, pr, ref, k)
		if err != nil {
			return time.Time{}, err
		}
		again = branch.Earliest(again, until)
	}
	if newest.After(since) {
		read.Until = newest
	}
	if read.Count, read.UpdatedAt = pr.CommentCount, pr.UpdatedAt; !again.IsZero() {
		read.Count = nil
	}
	return again, co.opts.Store.Tx(ctx, "commentsRead", func(tx *store.Tx) error {
		if err := facts.ForgetUnreadComments(ctx, tx, r.ID, pr.Number, event); err != nil {
			return err
		}
		return read.Store(ctx, tx, r.ID, pr.Number)
	})
}

// handleComment takes the commands in one comment. again is when it may be served, where it has to
// wait; zero: it needn't.
func (co *Controller) handleComment(ctx context.Context, r *Repository, pr *forge.PullRequest, ref promotion.BranchRef,
	k *forge.Comment) (again time.Time, err error) {
	if ref == (promotion.BranchRef{}) && co.opts.Clock.Now().Sub(k.CreatedAt) > maxUserCommandAge {
		return time.Time{}, nil
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	u := promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}
	p, _ := s.Unit(u)
	bare := p != nil && p.Spec.Commands == "bare"
	cmds, errs := command.Parse(k.Body, bare)
	if len(cmds) == 0 && len(errs) == 0 {
		return time.Time{}, co.meetAuthor(ctx, r, k)
	}
	if serve, again, err := co.admitComment(ctx, r, pr.Number, k, cmds, errs); err != nil || !serve {
		return again, err
	}
	done, err := r.Forge.HasReacted(ctx, r.Name, pr.Number, k.ID)
	if err != nil {
		return time.Time{}, err
	}
	if done {
		return time.Time{}, co.rememberRequester(ctx, r, pr, ref, k, cmds)
	}
	// The pull request was read before the comment, and what the comment is about,
	// such as a close, may have come between the two.
	if pr, err = co.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r.Repository, pr.Number); err != nil {
		return time.Time{}, err
	}
	again, err = co.executeComment(ctx, r, pr, ref, p, k, cmds, errs)
	if errors.Is(err, errNoCheckSlot) {
		return co.opts.Clock.Now().Add(commandRetryDelay), nil
	}
	return again, err
}

// rememberRequester records that a comment that was served before asked for a pull request's own
// promotion. Where the store was lost nothing else says so, and a person who asks for a promotion
// doesn't approve it.
func (co *Controller) rememberRequester(ctx context.Context, r *Repository, pr *forge.PullRequest, ref promotion.BranchRef,
	k *forge.Comment, cmds []command.Command) error {
	requests := slices.ContainsFunc(cmds, func(c command.Command) bool {
		return c.Verb == command.Promote && (c.Environment == "" || c.Environment == ref.Environment)
	})
	if !requests || ref.Revert || pr.State != forge.Open {
		return nil
	}
	known, err := people.ReadRequesters(ctx, co.opts.Store, r.ID, pr.Number)
	by := policies.Account{ID: k.UserID, Login: k.User}
	if err != nil || slices.Contains(known, by) {
		return err
	}
	return people.PutRequesters(ctx, co.opts.Store, r.ID, pr.Number, append(known, by))
}

// executeComment does what the commands of a comment say, answers them and acknowledges them by a
// reaction. again is when commands that wait for their author's word are read again; zero: none
// does.
func (co *Controller) executeComment(ctx context.Context, r *Repository, pr *forge.PullRequest, ref promotion.BranchRef,
	p *branch.ResolvedPipeline, k *forge.Comment, cmds []command.Command, errs []error) (again time.Time, err error) {
	u := promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}
	reaction := reactionDone
	var answers []string
	var change userChange
	defer change.end()
	hasWaited, err := co.hasWaited(ctx, r, pr.Number, k)
	if err != nil {
		return time.Time{}, err
	}
	for _, perr := range errs {
		reaction = reactionRefused
		if !hasWaited { // it was said then
			answers = append(answers, perr.Error())
		}
	}
	word := co.newWordCheck(r, pr.Number, k)
	waits := false
	for i, c := range cmds {
		if c.Environment == "" {
			c.Environment = defaultEnvironment(p, c, pr, ref)
		}
		o := Command{Unit: u, Pull: pr.Number, Command: c, By: k.User, ByID: k.UserID, Via: "comment",
			Source: act.CommandSource(r.ID, pr.Number, k.ID, i), At: k.CreatedAt, word: word}
		if hasWaited && !command.Loosens(c.Verb) {
			continue // it was taken at once
		}
		var answer string
		if ref == (promotion.BranchRef{}) { // a person's own pull request
			answer, err = co.runUserCommand(ctx, r, pr, o, &change)
		} else {
			answer, err = co.ExecuteCommand(ctx, o)
		}
		var refused *RefusedError
		switch {
		case errors.Is(err, errUnconfirmed):
			waits = true
		case errors.As(err, &refused):
			reaction = reactionRefused
			answers = append(answers, refused.Why)
		case err != nil:
			return time.Time{}, err
		case answer != "":
			answers = append(answers, answer)
		}
	}
	if waits && hasWaited {
		return co.opts.Clock.Now().Add(confirmationEvery), nil
	}
	if waits {
		answers = append(answers, confirmationText)
	}
	if err := co.answerComment(ctx, r, pr.Number, k, cmds, answers, hasWaited); err != nil {
		return time.Time{}, err
	}
	if waits {
		return co.waitForWord(ctx, r, pr.Number, k)
	}
	if err := r.Forge.React(ctx, r.Name, pr.Number, k.ID, reaction); err != nil || !hasWaited {
		return time.Time{}, err
	}
	return time.Time{}, facts.Unconfirmed.Drop(ctx, co.opts.Store, facts.OfComment(r.ID, pr.Number, k.ID))
}

// answerComment answers the commands of a comment, once more where it has waited for its author's word.
func (co *Controller) answerComment(ctx context.Context, r *Repository, number int, k *forge.Comment, cmds []command.Command,
	answers []string, hasWaited bool) error {
	if len(answers) == 0 {
		return nil
	}
	reply := co.opts.Actor.Reply
	if hasWaited {
		reply = co.opts.Actor.ReplyAgain
	}
	return reply(ctx, r.Repository, act.CommentSource(r.ID, number, k.ID), k.CreatedAt, k.User, describeCommands(cmds),
		strings.Join(answers, "\n\n"))
}

// describeCommands names the commands of a comment for its answer.
func describeCommands(cmds []command.Command) string {
	words := make([]string, 0, len(cmds))
	for _, c := range cmds {
		words = append(words, command.Describe(c))
	}
	return strings.Join(words, "; ")
}

// defaultEnvironment is the environment of a command that names none. It is the pull request's own,
// but for a promote on a promotion that was merged: then it is the one environment after it.
func defaultEnvironment(p *branch.ResolvedPipeline, c command.Command, pr *forge.PullRequest, ref promotion.BranchRef) string {
	if p == nil || c.Verb != command.Promote || pr.State != forge.Merged {
		return ref.Environment
	}
	var next []string
	for _, e := range p.Spec.Environments {
		if slices.Contains(e.After, ref.Environment) {
			next = append(next, e.Name)
		}
	}
	if len(next) == 1 {
		return next[0]
	}
	return ref.Environment
}
