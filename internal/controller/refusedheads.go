package controller

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// checkedState is what is known of the last look at a person's pull request, as the store keeps it.
type checkedState struct {
	key     string // facts.ProposedChange.Key, of a look that came to its end
	head    string // that was looked at, or refused; empty: an earlier version wrote it
	refused string // why the head isn't looked at; empty: it is
}

const refusedPrefix = "refused"

func readCheckedState(raw []byte) checkedState {
	first, rest, _ := strings.Cut(string(raw), " ")
	head, why, _ := strings.Cut(rest, " ")
	if first == refusedPrefix {
		return checkedState{head: head, refused: why}
	}
	return checkedState{key: first, head: head}
}

func (c checkedState) encode() []byte {
	if c.refused != "" {
		return []byte(refusedPrefix + " " + c.head + " " + c.refused)
	}
	return []byte(c.key + " " + c.head)
}

func (e *Controller) readChecked(ctx context.Context, r *Repository, number int) (checkedState, error) {
	raw, _, err := e.opts.Store.State(ctx, checkedKey(r, number))
	return readCheckedState(raw), err
}

// lookingKey is the store's key of the head of a pull request that is being looked at.
func lookingKey(r *Repository, number int) string {
	return "looking|" + strings.TrimPrefix(checkedKey(r, number), "checked|")
}

// diedText is why a head isn't looked at that a process died on.
const diedText = "Liftlock's process ended while it looked at this head, so it isn't looked at again; push another one, or have somebody who may write say `/liftlock retry`"

var errDied = errors.New("the process that looked at it before didn't come to an end")

// lookAt has something look at the head of a pull request, which is on record meanwhile: one that
// kills the process, by what it makes it or the machine do, must not do so again after the next start. A
// *facts.RefusedHeadError: it was on record already, from another process; a key is run by one at a time.
func (e *Controller) lookAt(ctx context.Context, r *Repository, pr *forge.PullRequest, look func() error) error {
	key, mine := lookingKey(r, pr.Number), pr.Head+" "+e.opts.Owner
	raw, found, err := e.opts.Store.State(ctx, key)
	if err != nil {
		return err
	}
	head, owner, _ := strings.Cut(string(raw), " ")
	if found && head == pr.Head && owner != e.opts.Owner {
		return &facts.RefusedHeadError{Why: diedText, Err: errDied}
	}
	if err := e.opts.Store.PutState(ctx, key, []byte(mine)); err != nil {
		return err
	}
	defer func() {
		// Also where the run or the process is told to end, which is no death.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := e.opts.Store.DeleteState(ending, key); err != nil {
			e.opts.Log.Warn("that a head isn't looked at any more couldn't be written down", zap.String("repository", r.ID), zap.Int("pull", pr.Number), zap.Error(err))
		}
	}()
	return look()
}

// reportRefused says on a pull request that its head isn't looked at; the time is
// reportImpact's. It isn't fetched again only to be refused again.
func (e *Controller) reportRefused(ctx context.Context, r *Repository, pr *forge.PullRequest, s *facts.Snapshot, into facts.BranchHead, refused *facts.RefusedHeadError) (time.Time, error) {
	e.opts.Log.Warn("the head of a pull request isn't looked at", zap.String("repository", r.ID), zap.Int("pull", pr.Number), zap.String("author", pr.Author), zap.String("head", pr.Head), zap.Error(refused))
	again, err := e.reportImpact(ctx, r, pr, s, &facts.ProposedChange{Into: into, Head: pr.Head}, &facts.ChangeReport{Failed: refused.Why})
	if err != nil || !again.IsZero() {
		return again, err
	}
	if err := e.opts.Store.PutState(ctx, checkedKey(r, pr.Number), checkedState{head: pr.Head, refused: refused.Why}.encode()); err != nil {
		return time.Time{}, err
	}
	return time.Time{}, e.opts.Store.DeleteState(ctx, lookingKey(r, pr.Number))
}

// forgetChecked forgets what is known of looks at a pull request.
func (e *Controller) forgetChecked(ctx context.Context, r *Repository, number int) error {
	return e.opts.Store.Tx(ctx, "forgetChecked", func(tx *store.Tx) error {
		return errors.Join(tx.DeleteState(ctx, checkedKey(r, number)), tx.DeleteState(ctx, lookingKey(r, number)))
	})
}

// retriesHead says that a command is to have a head looked at again that isn't looked at any more.
func (e *Controller) retriesHead(ctx context.Context, r *Repository, pr *forge.PullRequest, o Command) (bool, error) {
	if o.Command.Verb != command.Retry {
		return false, nil
	}
	was, err := e.readChecked(ctx, r, pr.Number)
	return was.refused != "" && was.head == pr.Head, err
}

// retryHead has a head looked at again.
func (e *Controller) retryHead(ctx context.Context, r *Repository, pr *forge.PullRequest) (string, error) {
	if err := e.forgetChecked(ctx, r, pr.Number); err != nil {
		return "", err
	}
	return "It is looked at again.", e.opts.Store.WakeAs(ctx, store.Normal, wake.ForPull(r.ID, pr.Number).String())
}
