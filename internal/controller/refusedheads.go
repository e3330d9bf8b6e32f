package controller

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// checkedState is what is known of the last look at a person's pull request.
type checkedState struct {
	Key     string `json:"key,omitempty"`     // facts.ProposedChange.Key, of a look that came to its end
	Head    string `json:"head"`              // that was evaluated, or refused
	Refused string `json:"refused,omitempty"` // why the head isn't evaluated; empty: it is
}

var checkedHeads = record.Declare[record.Pull, checkedState](record.Declaration{
	Name: "checked-head", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "The head of a person's pull request that was evaluated last, or isn't, and why.",
})

// evaluatedHead is a head that is being evaluated.
type evaluatedHead struct {
	Head  string `json:"head"`
	Owner string `json:"owner"` // the process
}

var evaluatedHeads = record.Declare[record.Pull, evaluatedHead](record.Declaration{
	Name: "evaluated-head", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "The head that is being evaluated. One that a process left behind when it died isn't evaluated again.",
})

func (co *Controller) readChecked(ctx context.Context, r *Repository, number int) (checkedState, error) {
	was, _, err := checkedHeads.Get(ctx, co.opts.Store, record.OfPull(r.ID, number))
	return was, err
}

// diedText is why a head on which a process died isn't evaluated.
const diedText = "Liftlock's process ended while it looked at this head, so it isn't looked at again; push another one, or have somebody " +
	"who may write say `/liftlock retry`"

var errDied = errors.New("the process that looked at it before didn't come to an end")

// lookAt runs a look at the head of a pull request, which is on record meanwhile. A head that kills
// the process, by what it makes it or the machine do, must not do so again after the next start.
// The error is a *facts.RefusedHeadError where it was on record already, from another process; a
// key is run by one at a time.
func (co *Controller) lookAt(ctx context.Context, r *Repository, pr *forge.PullRequest, look func() error) error {
	about, mine := record.OfPull(r.ID, pr.Number), evaluatedHead{pr.Head, co.opts.Owner}
	was, found, err := evaluatedHeads.Get(ctx, co.opts.Store, about)
	if err != nil {
		return err
	}
	if found && was.Head == mine.Head && was.Owner != mine.Owner {
		return &effects.RefusedHeadError{Why: diedText, Err: errDied}
	}
	if err := evaluatedHeads.Put(ctx, co.opts.Store, about, mine); err != nil {
		return err
	}
	defer func() {
		// Also where the run or the process is told to end, which is no death.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := evaluatedHeads.Drop(ending, co.opts.Store, about); err != nil {
			co.opts.Log.Warn("that a head isn't looked at any more couldn't be written down", zap.String("repository", r.ID),
				zap.Int("pull", pr.Number), zap.Error(err))
		}
	}()
	return look()
}

// reportRefused says on a pull request that its head isn't evaluated; the time is reportImpact's.
// It isn't fetched again only to be refused again.
func (co *Controller) reportRefused(ctx context.Context, r *Repository, pr *forge.PullRequest, s *branch.Snapshot, into branch.Head,
	refused *effects.RefusedHeadError) (time.Time, error) {
	co.opts.Log.Warn("the head of a pull request isn't looked at", zap.String("repository", r.ID), zap.Int("pull", pr.Number),
		zap.String("author", pr.Author), zap.String("head", pr.Head), zap.Error(refused))
	again, err := co.reportImpact(ctx, r, pr, s, &effects.ProposedChange{Into: into, Head: pr.Head},
		&effects.ChangeReport{Failed: refused.Why})
	if err != nil || !again.IsZero() {
		return again, err
	}
	about := record.OfPull(r.ID, pr.Number)
	if err := checkedHeads.Put(ctx, co.opts.Store, about, checkedState{Head: pr.Head, Refused: refused.Why}); err != nil {
		return time.Time{}, err
	}
	return time.Time{}, evaluatedHeads.Drop(ctx, co.opts.Store, about)
}

// forgetChecked forgets what is known of looks at a pull request.
func (co *Controller) forgetChecked(ctx context.Context, r *Repository, number int) error {
	return co.opts.Store.Tx(ctx, "forgetChecked", func(tx *store.Tx) error {
		about := record.OfPull(r.ID, number)
		return errors.Join(checkedHeads.Drop(ctx, tx, about), evaluatedHeads.Drop(ctx, tx, about))
	})
}

// retriesHead says that a command is to have a head evaluated again that is refused.
func (co *Controller) retriesHead(ctx context.Context, r *Repository, pr *forge.PullRequest, o Command) (bool, error) {
	if o.Command.Verb != command.Retry {
		return false, nil
	}
	was, err := co.readChecked(ctx, r, pr.Number)
	return was.Refused != "" && was.Head == pr.Head, err
}

// retryHead has a head evaluated again.
func (co *Controller) retryHead(ctx context.Context, r *Repository, pr *forge.PullRequest) (string, error) {
	if err := co.forgetChecked(ctx, r, pr.Number); err != nil {
		return "", err
	}
	return "It is looked at again.", co.opts.Store.WakeAs(ctx, store.Normal, wake.ForPull(r.ID, pr.Number).String())
}
